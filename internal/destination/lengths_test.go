package destination

import (
	"slices"
	"testing"
	"time"
)

// registered returns a fixture whose gate is in a Registry with those of others.
func registered(t *testing.T) (*fixture, *Registry) {
	f, r := newFixture(t, settings(600)), NewRegistry(Configured{Others: Defaults()}, start)
	r.gates[f.gate.Name] = &f.gate
	return f, r
}

// Outages that end by themselves are remembered, the last 20; what a person began or ended is not.
func TestLasted(t *testing.T) {
	f := newFixture(t, settings(600))
	outage := func(end func()) {
		f.fail()
		f.arrive(1)
		end()
		f.until(f.now.Add(time.Hour))
		f.want(Up)
	}
	answered := func(after time.Duration) func() {
		return func() {
			for f.gate.Phase != Testing {
				f.until(f.now.Add(time.Minute))
			}
			f.until(f.gate.Outage.Since.Add(after))
			f.apply(answered(f.gate.Canary.Claim, f.now))
		}
	}
	outage(answered(9 * time.Minute))
	outage(func() { f.apply(Order{Verb: HoldClaims, Until: f.now.Add(time.Minute)}); answered(9 * time.Minute)() })
	outage(func() { f.now = f.now.Add(time.Minute); f.apply(Order{Verb: TreatAsUp, Until: f.now.Add(time.Minute)}) })
	outage(func() { f.now = f.now.Add(time.Minute); f.apply(Order{Verb: ReleaseAt, PerMinute: 1}) })
	outage(answered(4 * time.Minute))
	if want := []time.Duration{9 * time.Minute, 4 * time.Minute}; !slices.Equal(f.gate.Lasted, want) {
		t.Errorf("remembered are %v, want %v", f.gate.Lasted, want)
	}
	for range 19 {
		outage(answered(3 * time.Minute))
	}
	if kept := f.gate.Lasted; len(kept) != 20 || kept[0] != 4*time.Minute || kept[1] != 3*time.Minute {
		t.Errorf("remembered are %v", kept)
	}
}

// TestBack: a destination is expected back by its own outages once there are five, otherwise by those of all, and of
// these by the ones that lasted longer than its own has.
func TestBack(t *testing.T) {
	minutes := func(all ...time.Duration) (d []time.Duration) {
		for _, m := range all {
			d = append(d, m*time.Minute)
		}
		return d
	}
	for name, tt := range map[string]struct {
		own, others      []time.Duration
		elapsed          time.Duration
		low, median, top time.Duration // minutes; 0 is not known
	}{
		"nothing known":         {nil, nil, 0, 0, 0, 0},
		"four of all":           {minutes(10, 20), minutes(30, 40), 0, 0, 0, 0},
		"five of all":           {minutes(10, 20), minutes(50, 30, 40), 0, 20, 30, 40},
		"five of its own":       {minutes(9, 1, 3, 7, 5), minutes(100, 200, 300), 0, 3, 5, 7},
		"eight":                 {minutes(1, 2, 3, 4, 5, 6, 7, 8), nil, 0, 2, 4, 6},
		"the longer ones":       {minutes(1, 2, 3, 4, 5, 6, 7, 8), nil, 4, 5, 6, 7},
		"longer than all but 1": {minutes(1, 2, 3, 4, 5, 6, 7, 8), nil, 7, 8, 8, 8},
		"longer than all":       {minutes(1, 2, 3, 4, 5), minutes(100), 5, 0, 0, 0},
	} {
		f, r := registered(t)
		f.gate.Lasted = tt.own
		r.Gate("other", start).State.Lasted = tt.others
		if _, known := r.Back(&f.gate.State, f.now); known {
			t.Errorf("%s: it is up, and expected back", name)
		}
		f.fail()
		since := f.gate.Outage.Since
		b, known := r.Back(&f.gate.State, since.Add(tt.elapsed*time.Minute))
		want := Back{since.Add(tt.median * time.Minute), since.Add(tt.low * time.Minute), since.Add(tt.top * time.Minute)}
		if known != (tt.median > 0) || known && b != want {
			t.Errorf("%s: %t, %+v, want %+v", name, known, b, want)
		}
		if known && !r.Expected(&f.gate.State, since.Add(tt.elapsed*time.Minute)).Equal(b.Median) {
			t.Errorf("%s: it is expected back at another time than the median's", name)
		}
		f.apply(Order{Verb: HoldClaims, Until: f.now.Add(time.Hour)})
		if _, known := r.Back(&f.gate.State, f.now); known {
			t.Errorf("%s: a person holds it, and it is expected back", name)
		}
	}
}

// TestExpected: where too little is known an outage is expected to last as long again as it has lasted, within bounds,
// or until when a person said.
func TestExpected(t *testing.T) {
	f, r := registered(t)
	if at := r.Expected(&f.gate.State, f.now); !at.IsZero() {
		t.Errorf("up, it is expected back at %v", at)
	}
	f.fail()
	since := f.gate.Since
	for lasted, more := range map[time.Duration]time.Duration{
		time.Minute: 25 * time.Minute, 40 * time.Minute: 40 * time.Minute, 5 * time.Hour: 2 * time.Hour,
	} {
		if at := r.Expected(&f.gate.State, since.Add(lasted)); !at.Equal(since.Add(lasted + more)) {
			t.Errorf("after %v it is expected back at %v", lasted, at.Sub(since))
		}
	}
	until := f.now.Add(3 * time.Hour)
	f.apply(Order{Verb: HoldClaims, Until: until})
	if at := r.Expected(&f.gate.State, f.now); !at.Equal(until) {
		t.Errorf("held until %v, it is expected back at %v", until, at)
	}
}
