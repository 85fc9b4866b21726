package scenarios

import (
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

// askEvery is the pause between two looks at what nobody tells of.
const askEvery = 50 * time.Millisecond

func TestMain(m *testing.M) { harness.Main(m, harness.Parallel(14)) }
