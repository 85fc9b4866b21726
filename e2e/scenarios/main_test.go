package scenarios

import (
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// enough for anything that is expected to happen soon, on a busy machine too.
	enough = 60 * time.Second
	// stopTime bounds the stop of a process.
	stopTime = 30 * time.Second
)

func TestMain(m *testing.M) { harness.Main(m) }
