package destination

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestFlow: what goes is spread evenly, and a late call makes up for nothing; a pace that changes changes what is left to
// wait.
func TestFlow(t *testing.T) {
	for pace, apart := range map[float64]time.Duration{0.5: 2 * time.Minute, 239: 251046026, 1200: 50 * time.Millisecond} {
		f := Flow{Next: start}
		f.change(pace, start)
		late := start.Add(time.Minute)
		if !f.take(late) || f.take(late) || !f.Next.Equal(late.Add(apart)) {
			t.Errorf("at %g a minute the next goes %s after the one before", pace, f.Next.Sub(late))
		}
	}
	f := Flow{Next: start.Add(time.Minute), Pace: 1}
	f.change(4, start.Add(20*time.Second))
	if left := f.Next.Sub(start.Add(20 * time.Second)); left != 10*time.Second {
		t.Errorf("of 40 s at a fourth of the pace %s are left", left)
	}
}

// TestTaken: behind a state that is taken over, a claim goes no sooner than if one had gone just then.
func TestTaken(t *testing.T) {
	g := Gate{Settings: settings(6)}
	g.Take(New(start), start)
	if g.Admit(start) || g.Admit(start.Add(9*time.Second)) || !g.Admit(start.Add(10*time.Second)) {
		t.Errorf("the next claim goes at %s, a pace of 10 s from %s on", g.Flow.Next, start)
	}
}

// TestFastPace: whoever lets claims go takes some time over each; as many as the pace says go all the same, and no more in
// any minute.
func TestFastPace(t *testing.T) {
	for _, pace := range []int{1201, 3000, 6000, 60_000} {
		f, dice := Flow{Next: start, Pace: float64(pace)}, rand.New(rand.NewPCG(uint64(pace), 1))
		var went []time.Time
		for now := start; now.Before(start.Add(3 * time.Minute)); now = now.Add(time.Duration(dice.Int64N(int64(lateBy)))) {
			for f.take(now) {
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
