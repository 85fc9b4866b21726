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
	r.Gate("d0", start).Queue.Add(Held{Claim: "waits"})
	if r.Gate("new", start.Add(time.Hour)).Name != "new" || r.gates["d1"] != nil || r.Gate("d0", start.Add(time.Hour)).Queue.Len() != 1 ||
		r.Gate("unimed-sp", start).Settings.Pace.Most != 20 {
		t.Error("the wrong one is forgotten")
	}
	for _, g := range r.All() {
		g.Queue.Add(Held{Claim: "waits"})
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
