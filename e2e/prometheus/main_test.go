package prometheus_test

import (
	"testing"

	"retry-worker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
