package bulk

import (
	"fmt"
	"testing"

	"retry-worker/e2e/harness"
)

const (
	// version of Zeebe that it is tried on.
	version = "8.6.0"
	// enough for anything that is expected to happen soon, on a busy machine too.
	enough = harness.Enough
)

func TestMain(m *testing.M) { harness.Main(m) }

// done adds a test's line.
func done(t *testing.T, what, figures string, args ...any) {
	harness.Report(t, "e2e  %-6s %-34s %s", version, what, fmt.Sprintf(figures, args...))
}
