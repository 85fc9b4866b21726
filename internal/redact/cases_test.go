package redact_test

import (
	"testing"

	"retry-worker/internal/redact"
	"retry-worker/internal/testkit/golden"
)

// cases are texts, and what becomes of each. The synthetic numbers are filled in.
func cases(t testing.TB, file string) (all [][2]string) {
	t.Helper()
	for _, lines := range golden.Cases(t, "testdata/"+file) {
		all = append(all, [2]string{fill(lines[0]), fill(lines[len(lines)-1])})
	}
	return all
}

// files of cases: what is personal, what is secret (R32), and what stays.
var files = []string{"taken.txt", "secrets.txt", "kept.txt"}

func TestText(t *testing.T) {
	for _, file := range files {
		for _, c := range cases(t, file) {
			if got := redact.Text(c[0]); got != c[1] {
				t.Errorf("%s:\n text %q\n got  %q\n want %q", file, c[0], got, c[1])
			}
		}
	}
}
