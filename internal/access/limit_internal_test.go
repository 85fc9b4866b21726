package access

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/testkit/seeded"
	"retry-worker/internal/web"
)

// guesses are those of a Gate.
func guesses() *limits[netip.Prefix] { return &New(Options{}).wrong }

func at(t *testing.T, address string) netip.Prefix {
	t.Helper()
	return web.Network(netip.MustParseAddr(address))
}

// The waits that one address is given when it comes again as soon as it may, twice: six in all for nothing, then one in
// half a minute.
func TestGuessesOfOneAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, from := guesses(), at(t, "10.0.0.1")
		var waits []time.Duration
		for len(waits) < 6 {
			wait := g.wait(from, time.Now())
			if wait == 0 {
				wait = g.wait(from, time.Now()) // at once
			}
			waits = append(waits, wait)
			time.Sleep(wait)
		}
		if want := []time.Duration{0, 0, 0, 30 * time.Second, 30 * time.Second, 30 * time.Second}; !slices.Equal(waits, want) {
			t.Errorf("waits %v, want %v", waits, want)
		}
		if wait := g.wait(at(t, "10.0.0.2"), time.Now()); wait != 0 {
			t.Errorf("another address waits %v", wait)
		}
	})
}

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
