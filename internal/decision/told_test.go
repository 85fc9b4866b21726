package decision

import (
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/classify"
	"retry-worker/internal/testkit/golden"
)

// TestTold holds testdata/told.txt. Where a claim has no destination, nobody asks it to wait.
func TestTold(t *testing.T) {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	rules := classify.New(nil, classify.Vocabulary{})
	for _, line := range slices.Concat(golden.Cases(t, "testdata/told.txt")...) {
		asked, want, _ := strings.Cut(line, " -> ")
		variable, text, _ := strings.Cut(asked, " | ")
		_, said := rules.Read(text, 0)
		f := &Failure{RetryAfter: variable, Error: text, Destination: "unimed", Said: said}
		if got := f.told(now).String(); got != want {
			t.Errorf("%q: %s, want %s", asked, got, want)
		}
		f.Destination = ""
		if got := f.told(now); got != 0 {
			t.Errorf("%q of no destination: %s", asked, got)
		}
	}
}
