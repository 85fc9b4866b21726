// Package upgrade holds the tests of an upgrade: two programs on one journal, side by side and one after the other, there and
// back. The one before is this version, until there is a released one.
package upgrade

import (
	"fmt"
	"testing"

	"retry-worker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// done adds a test's line.
func done(t *testing.T, what, figures string, args ...any) {
	harness.Report(t, "upgrade  %-28s %s", what, fmt.Sprintf(figures, args...))
}
