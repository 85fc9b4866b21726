package access

import (
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/testkit/seeded"
)

// guesses are those of a Gate.
func guesses() *limits[netip.Prefix] { return &New(Options{}).wrong }

// What is forgotten first was seen longest ago, not what came first; those that wait are seen too.
func TestMemoryOfLimitsIsBounded(t *testing.T) {
	l, now := limits[int]{every: time.Hour, burst: 1}, time.Unix(1_800_000_000, 0)
	for i := range 10 * mostRecent {
		if l.wait(i, now) != 0 {
			t.Fatalf("%d waits when it comes first", i)
		}
		if i%(mostRecent/2) == 0 && l.wait(0, now) == 0 {
			t.Fatalf("the one that asks on is forgotten after %d others", i)
		}
	}
	if n := len(l.recent) + len(l.older); n > 2*mostRecent {
		t.Errorf("remembers %d, want at most %d", n, 2*mostRecent)
	}
	if l.wait(10*mostRecent-mostRecent/2, now) == 0 || l.wait(1, now) != 0 {
		t.Error("one of the last is forgotten, or the quietest is not")
	}
}

// However the clock jumps, nobody waits longer than the longest wait, and nobody waits for ever.
func TestGuessesWithAJumpingClock(t *testing.T) {
	seeded.Check(t, func(r *rapid.T) {
		g, from, now := guesses(), netip.MustParsePrefix("10.0.0.1/32"), time.Unix(1_800_000_000, 0)
		for range rapid.IntRange(1, 60).Draw(r, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(-100_000, 100_000).Draw(r, "seconds")) * time.Second)
			wait := g.wait(from, now)
			if wait < 0 || wait > perGuess {
				r.Fatalf("waits %v", wait)
			}
			if wait > 0 && g.wait(from, now.Add(wait)) != 0 {
				r.Fatalf("still waits after %v", wait)
			}
		}
	})
}
