package destination

import (
	"fmt"
	"testing"
	"time"
)

// TestRegistryForgets the longest idle and empty first, and has room for what waits.
func TestRegistryForgets(t *testing.T) {
	r := NewRegistry(Configured{map[string]Settings{"unimed-sp": settings(20)}, Defaults()}, start)
	for i := range mostUnconfigured {
		r.Gate(fmt.Sprint("d", i), start.Add(time.Duration(i/10)*time.Second))
	}
	r.Gate("d0", start).Queue.Add(Held{Claim: 1})
	if r.Gate("new", start.Add(time.Hour)).Name != "new" || r.gates["d1"] != nil || r.Gate("d0", start.Add(time.Hour)).Queue.Len() != 1 ||
		r.Gate("unimed-sp", start).Settings.Pace.Most != 20 {
		t.Error("the wrong one is forgotten")
	}
	for _, g := range r.All() {
		g.Queue.Add(Held{Claim: 1})
	}
	if name := r.Gate("one more", start.Add(2*time.Hour)).Name; name != Other {
		t.Errorf("%s, where all others are busy", name)
	}
	r.Configure(Configured{map[string]Settings{"d2": settings(5)}, settings(9)}, start)
	for name, most := range map[string]float64{"d2": 5, "unimed-sp": 9, Other: 9} {
		if got := r.gates[name].Settings.Pace.Most; got != most {
			t.Errorf("%s has a pace of %g", name, got)
		}
	}
}

// TestReplanned: where the policies change a destination's hours, what waits must be sent before it closes by the new ones.
func TestReplanned(t *testing.T) {
	r := NewRegistry(Configured{Others: settings(60)}, start)
	g := r.Gate("unimed-sp", start)
	for claim, deadline := range []time.Duration{40 * time.Hour, 35 * time.Hour} { // 00:00, 19:00
		g.Hold(Held{Claim: int64(claim + 1), Since: start, Deadline: start.Add(deadline), Cents: int64(-claim)})
	}
	closes := settings(60)
	closes.Calendar = closing(t, "10:00-18:00")
	for _, tt := range []struct {
		settings Settings
		first    int64
		endsAt   time.Time
	}{
		{settings(60), 2, start.Add(34 * time.Hour)},
		{closes, 1, start.Add(33*time.Hour - time.Millisecond)}, // both have to be sent by 18:00, and this is worth more
		{settings(60), 2, start.Add(34 * time.Hour)},
	} {
		r.Configure(Configured{Others: tt.settings}, start)
		if first := g.Queue.Next(1)[0].Claim; first != tt.first || !g.Queue.endsAt.Equal(tt.endsAt) {
			t.Errorf("%d goes first, one is given up at %s, want %d and %s", first, g.Queue.endsAt, tt.first, tt.endsAt)
		}
	}
}
