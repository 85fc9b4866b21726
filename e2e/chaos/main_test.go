package chaos_test

import (
	"fmt"
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

// jobTimeout is the default of RETRY_WORKER_JOB_TIMEOUT.
const jobTimeout = 10 * time.Second

func TestMain(m *testing.M) { harness.Main(m, harness.Parallel(4)) }

// report adds a test's line.
func report(t *testing.T, what, figures string, args ...any) {
	harness.Report(t, "chaos %-44s %s", what, fmt.Sprintf(figures, args...))
}
