// Package notify tells teams of their dead letters end to end: the worker's own process with a clock that goes faster, a real
// mail server, and a receiver of webhooks that checks their signatures with the standard's own library.
package notify

import (
	"fmt"
	"testing"

	"retry-worker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// done adds a test's line.
func done(t *testing.T, what, figures string, args ...any) {
	t.Helper()
	harness.Report(t, "e2e  %-6s %-34s %s", "", what, fmt.Sprintf(figures, args...))
}
