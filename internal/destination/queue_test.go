package destination

import (
	"testing"
	"time"
)

// TestInstant: an instant of 1970 is one, and none is none.
func TestInstant(t *testing.T) {
	if InstantOf(time.Unix(0, 0)) == 0 || InstantOf(time.Time{}) != 0 || !Instant(0).Time().IsZero() {
		t.Error("the first instant of 1970 is none, or none is an instant")
	}
	if at := start.Add(time.Millisecond); InstantOf(at).Time() != at {
		t.Errorf("%s becomes %s", at, InstantOf(at).Time())
	}
}
