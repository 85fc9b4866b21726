// Package golden compares what tests print with files. It imports nothing of this project, so that every package can
// use it.
package golden

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Updating reports whether the files are rewritten.
func Updating() bool { return *update }

// Check fails the test if got differs from the file; `go test -update` rewrites it.
func Check(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("differs from %s (`go test -update` rewrites it); got:\n%s", file, got)
	}
}

// Cases reads a file of cases, which empty lines part, and returns the lines of each. A line that begins with # is a comment; in
// the others a backslash means what it does in Go.
func Cases(t testing.TB, file string) (cases [][]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(strings.TrimSpace(string(text)), "\n\n") {
		var lines []string
		for line := range strings.SplitSeq(block, "\n") {
			if strings.HasPrefix(line, "#") {
				continue
			}
			plain, err := strconv.Unquote(`"` + strings.ReplaceAll(line, `"`, `\"`) + `"`)
			if err != nil {
				t.Fatalf("%s: %q: %v", file, line, err)
			}
			lines = append(lines, plain)
		}
		if lines != nil {
			cases = append(cases, lines)
		}
	}
	if cases == nil {
		t.Fatalf("%s has no cases", file)
	}
	return cases
}
