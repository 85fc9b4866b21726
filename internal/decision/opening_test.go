package decision_test

import (
	"fmt"
	"testing"
	"time"
)

// at is an instant of December 2026 in São Paulo.
func at(day, hour, minute int) time.Time {
	return time.Date(2026, 12, day, hour+3, minute, 0, 0, time.UTC)
}

// TestR29Spread: those that wait for an opening do not come at once, and each comes when it did before.
func TestR29Spread(t *testing.T) {
	p := office(t)
	count := map[time.Time]int{}
	for n := range 1000 {
		id := fmt.Sprintf("CLM-1-%d", n)
		next := p.Open("unimed-sp", id, 1, at(25, 10, 0), time.Time{})
		if again := p.Open("unimed-sp", id, 1, at(26, 11, 0), time.Time{}); !again.Equal(next) {
			t.Fatalf("%s comes at %s, then at %s", id, next, again)
		}
		count[next.Truncate(time.Minute)]++
	}
	if len(count) != 10 {
		t.Errorf("they come in %d minutes, want 10", len(count))
	}
	for minute, n := range count {
		if n < 50 || n > 150 {
			t.Errorf("%d come in the minute of %s", n, minute)
		}
	}
}
