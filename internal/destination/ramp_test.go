package destination

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestFlow: what goes is spread evenly, and a late call makes up for nothing; a pace that changes changes the wait.
func TestFlow(t *testing.T) {
	for pace, apart := range map[float64]time.Duration{0.5: 2 * time.Minute, 239: 251046026, 1200: 50 * time.Millisecond} {
		g, late := Gate{Settings: settings(pace), State: New(start)}, start.Add(time.Minute)
		if !g.Admit(late) || g.Admit(late) || !g.ready(late).Equal(late.Add(apart)) {
			t.Errorf("at %g a minute the next goes %s after the one before", pace, g.ready(late).Sub(late))
		}
		if g.Settings.Pace.Most *= 4; !g.ready(late).Equal(late.Add(interval(4 * pace))) {
			t.Errorf("at four times %g a minute the next goes %s after the one before", pace, g.ready(late).Sub(late))
		}
	}
}

// TestTaken: behind a state that is taken over, a claim goes no sooner than if one had gone just then.
func TestTaken(t *testing.T) {
	g := Gate{Settings: settings(6)}
	g.Take(New(start), start)
	if g.Admit(start) || g.Admit(start.Add(9*time.Second)) || !g.Admit(start.Add(10*time.Second)) {
		t.Errorf("the next claim goes at %s, a pace of 10 s from %s on", g.ready(start), start)
	}
}

// TestFastPace: whoever lets claims go takes some time over each; as many as the pace says go all the same, and no more in
// any minute.
func TestFastPace(t *testing.T) {
	for _, pace := range []int{1201, 3000, 6000, 60_000} {
		g, dice := Gate{Settings: settings(float64(pace)), State: New(start)}, rand.New(rand.NewPCG(uint64(pace), 1))
		var went []time.Time
		for now := start; now.Before(start.Add(3 * time.Minute)); now = now.Add(time.Duration(dice.Int64N(int64(lateBy)))) {
			for g.Admit(now) {
				went = append(went, now)
			}
			first, _ := slices.BinarySearchFunc(went, now.Add(-time.Minute+1), time.Time.Compare)
			if n := len(went) - first; n > pace {
				t.Fatalf("%d claims go in the minute before %s, at most %d may", n, now.Sub(start), pace)
			}
		}
		if len(went) < pace*3*998/1000 {
			t.Errorf("%d claims go in three minutes at %d a minute", len(went), pace)
		}
	}
}
