// Package golden holds what tests print against files.
package golden

import (
	"flag"
	"os"
	"testing"

	"retry-worker/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Check fails the test where got differs from the file; `go test -update` rewrites it.
func Check(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		testkit.Must(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	testkit.Must(t, err)
	if got != string(want) {
		t.Errorf("differs from %s (`go test -update` rewrites it); got:\n%s", file, got)
	}
}
