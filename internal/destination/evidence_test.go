package destination

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestEvidence: what opens the breaker, and what does not.
func TestEvidence(t *testing.T) {
	for _, tt := range []struct {
		name             string
		admitted, failed int // a second apart from one another
		answered         bool
		want             Phase
	}{
		{"five in a row", 5, 5, false, Down},
		{"four in a row", 4, 4, false, Up},
		{"five with a success between", 5, 5, true, Up},
		{"one in three", 60, 20, false, Up},
		{"every second", 40, 20, false, Down},
		{"every second of the fewest", 20, 10, false, Down},
		{"every second of fewer", 18, 9, false, Up},
	} {
		f := newFixture(t, settings(6000))
		for i := range tt.admitted {
			f.now = f.now.Add(time.Second)
			claim := int64(i + 1)
			f.arrive(claim)
			if (i+1)*tt.failed/tt.admitted > i*tt.failed/tt.admitted {
				f.apply(failed(claim, f.now))
			}
			if tt.answered && i == 2 {
				f.apply(answered(anotherClaim, f.now))
			}
		}
		if f.gate.Phase != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, f.gate.Phase, tt.want)
		}
	}
}

// TestStreak: five failures in a row open where five claims at most went between them, or none in as long as the window.
func TestStreak(t *testing.T) {
	for _, tt := range []struct {
		admitted [inARow]int // before each failure
		apart    time.Duration
		want     bool
	}{
		{[inARow]int{}, 30 * time.Second, true},
		{[inARow]int{}, 31 * time.Second, false},
		{[inARow]int{1, 1, 0, 0, 0}, time.Hour, true},
		{[inARow]int{9, 2, 1, 1, 1}, time.Hour, true},
		{[inARow]int{9, 2, 2, 1, 1}, time.Hour, false},
	} {
		var e Evidence
		now, within := start, Defaults().OpensAt
		for i, n := range tt.admitted {
			if now = start.Add(time.Duration(i) * tt.apart); e.opens(within, now) {
				t.Errorf("%v: %d failures open", tt.admitted, i)
			}
			e.turn(within.Within, now)
			e.admit(n)
			e.fail(now)
		}
		if got := e.opens(within, now); got != tt.want {
			t.Errorf("%v, %s apart: it opens: %t", tt.admitted, tt.apart, got)
		}
	}
}

// TestWindow: what is counted is what came in this twelfth of the window and the eleven before, though the clock goes back.
func TestWindow(t *testing.T) {
	const within = 2 * time.Minute
	dice := rand.New(rand.NewPCG(1, 2))
	var e Evidence
	var newest int64
	want, now := map[int64]int{}, start
	for i := range 5000 {
		switch now = now.Add(time.Duration(dice.Int64N(int64(within) / []int64{1, 20, 200}[dice.IntN(3)]))); {
		case i%10 == 0:
			now = now.Add(-30 * time.Second)
		case i%100 == 1:
			e.turn(within, now.Add(-time.Hour))
			now, newest = now.Add(-30*time.Minute), 0
		}
		e.turn(within, now)
		newest = max(newest, now.UnixNano()/int64(within/slots))
		e.admit(2)
		e.fail(now)
		want[newest]++
		if i%100 == 1 {
			want = map[int64]int{newest: 1}
		}
		failed := 0
		for slot, n := range want {
			if slot > newest-slots {
				failed += n
			}
		}
		if a, f := e.counts(); a != 2*failed || f != failed {
			t.Fatalf("step %d: %d of %d failed, want %d of %d", i, f, a, failed, 2*failed)
		}
	}
}
