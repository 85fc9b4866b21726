package text

import (
	"fmt"
	"strings"
	"testing"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"jitter", "jitter", 0}, {"jiter", "jitter", 1}, {"jitter", "jiter", 1}, {"", "min", 3}, {"max", "min", 2},
		{"maxRetry", "maxRetries", 3}, {"ab", "ba", 2},
	} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q are %d apart, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"team", "policy", "older-than", "q", "all", "RETRY_WORKER_POLICIES_FILE"}
	for text, want := range map[string]string{
		"team": "team", "tem": "team", "Team": "team", "TEAMS": "team", "polcy": "policy", "older_than": "older-than", "olderthan": "older-than",
		"x": "", "": "", "Q": "q", "state": "", "al": "all", "newer-than": "", "older": "older-than", "policy-name": "policy", "newer": "", "olde": "", "RETRY_WORKER_POLICY_FILE": "RETRY_WORKER_POLICIES_FILE",
		"RETRY_WORKER_POLIFILE": "", "older-than-older-than-older-than-older-than-older-than-older-than-older-than-older-than": "",
	} {
		if got := Nearest(text, known); got != want {
			t.Errorf("%q is nearest to %q, want %q", text, got, want)
		}
	}
}

// TestDecodeNested: what is nested deeply costs no more than what is not.
func TestDecodeNested(t *testing.T) {
	const n = 500
	var members strings.Builder
	for i := range n {
		fmt.Fprintf(&members, `"%d":1,`, i)
	}
	nested := strings.Repeat(`{"a":`, n) + "{" + members.String() + `"a":1}` + strings.Repeat("}", n)
	allocs := testing.AllocsPerRun(1, func() {
		if _, err := Decode([]byte(nested)); err != nil {
			t.Error(err)
		}
	})
	if allocs > 50*n {
		t.Errorf("an object with %d members, nested as deeply, takes %.0f allocations", n, allocs)
	}
}
