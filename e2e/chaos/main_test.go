// Package chaos kills, starves and misleads the worker while it decides, and then reads from outside what its
// journal and its engine made of it: one attempt and one answer per claim and count, nothing forgotten.
//
// The worker is the built binary, its stores are real SQLite files and a real PostgreSQL. The engine is the
// development engine, as a process, or behind the faults of testkit/gateway. `make chaos` plays the long version; CHAOS_KILLS and CHAOS_SEED say how many kills, and which.
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
