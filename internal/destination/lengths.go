package destination

import (
	"cmp"
	"slices"
	"time"
)

const (
	// keptOutages of a destination are remembered, the latest.
	keptOutages = 20
	// lent is how many outages' worth of evidence all other destinations together lend to each.
	lent = 5
	// mostLent are how many outages of others are looked at; where there are many destinations, fewer of each.
	mostLent = 1000
	// fewestOutages must have ended before something is expected of the next.
	fewestOutages = 5
	// testStep is the chance of a recovery since the last canary at which the next one goes.
	testStep = 0.03
)

// Lasted is how long an outage was. Where it was Cut, by a person or because it goes on, it would have been longer.
type Lasted struct {
	For time.Duration `json:"for"`
	Cut bool          `json:"cut,omitempty"`
}

// lasted remembers the outage that ends now. What a person held tells nothing.
func (m *machine) lasted(cut bool) {
	if m.Outage.Cause == CausePerson {
		return
	}
	kept := m.Lasted[max(0, len(m.Lasted)+1-keptOutages):]
	m.Lasted = append(slices.Clone(kept), Lasted{m.Outage.Until.Sub(m.Outage.Since), cut}) // not in another State's
}

// Back is when a destination is expected back: half of the outages like its own end by Median, and 80 % of them between
// Low and High.
type Back struct{ Median, Low, High time.Time }

// Back returns when the destination is expected back, by how long its own outages and those of others lasted. It reports
// false where it is not down, a person says until when, or too little is known.
func (g *Gate) Back(now time.Time) (b Back, ok bool) {
	s := &g.State
	if !s.isDown() || !s.HeldUntil.IsZero() {
		return b, false
	}
	lengths, elapsed := g.lengths(now), now.Sub(s.Outage.Since)
	for _, end := range []struct {
		at *time.Time
		q  float64
	}{{&b.Low, 0.1}, {&b.Median, 0.5}, {&b.High, 0.9}} {
		length, known := lengths.quantile(elapsed, end.q)
		if !known {
			return Back{}, false
		}
		*end.at = s.Outage.Since.Add(length).Round(time.Second)
	}
	return b, true
}

const (
	// leastRest and mostRest bound how much longer an outage is expected to last.
	leastRest, mostRest = 25 * time.Minute, 2 * time.Hour
)

// Expected returns when a destination that is down is expected back; zero where it is not down. Where too few outages are
// known it is taken to last as long again as it has: those that users reported do at the median (13,363 of them:
// docs/destinations.md).
func (g *Gate) Expected(now time.Time) time.Time {
	s := &g.State
	switch {
	case !s.isDown():
		return time.Time{}
	case !s.HeldUntil.IsZero():
		return s.HeldUntil
	}
	if b, ok := g.Back(now); ok {
		return b.Median
	}
	return now.Add(min(max(now.Sub(s.Outage.Since), leastRest), mostRest))
}

// testDistance returns how long after now another canary goes, at equal steps of the chance that the destination is up,
// from firstTest to the settings' Every; 0 where too little is known. Longer steps where few recoveries are to be expected
// cost claims more than they save tries: a portal that is up for a while between two outages is missed (docs/destinations.md).
func (g *Gate) testDistance(now time.Time) time.Duration {
	lengths, elapsed := g.lengths(now), now.Sub(g.State.Outage.Since)
	next, known := lengths.quantile(elapsed, testStep)
	if !known {
		return 0
	}
	return min(max(next-elapsed, firstTest), g.Settings.Probe.Every)
}

// survival is the chance that an outage lasts longer than a time, estimated as Kaplan and Meier do.
type survival struct {
	// at are lengths in order; left[i] is the share that lasts longer than at[i].
	at   []time.Duration
	left []float64
}

// lengths returns what estimate says as of the minute: decisions ask for it while a destination is down, and to go through
// all outages costs too much for each.
func (g *Gate) lengths(now time.Time) *survival {
	if minute := now.Truncate(time.Minute); g.curve == nil || !g.curveAt.Equal(minute) {
		g.curve, g.curveAt = g.estimate(minute), minute
	}
	return g.curve
}

// estimate is of the destination's outages and, with less weight, of others'; of none where too few are known.
func (g *Gate) estimate(now time.Time) *survival {
	type weighted struct {
		Lasted
		weight float64
	}
	var seen []weighted
	ended := 0
	add := func(l Lasted, weight float64) {
		if seen = append(seen, weighted{l, weight}); !l.Cut {
			ended++
		}
	}
	for _, l := range g.State.Lasted {
		add(l, 1)
	}
	own := len(seen)
	if g.all != nil {
		each := (mostLent + len(g.all.gates) - 1) / len(g.all.gates)
		g.all.Each(func(other *Gate) {
			if other == g {
				return
			}
			of := other.State.Lasted
			for _, l := range of[max(0, len(of)-each):] {
				add(l, 0)
			}
			if s := &other.State; s.isDown() && s.Outage.Cause != CausePerson {
				add(Lasted{max(0, now.Sub(s.Outage.Since)), true}, 0)
			}
		})
	}
	for i := range seen[own:] {
		seen[own+i].weight = lent / float64(len(seen)-own)
	}
	s := &survival{}
	if ended < fewestOutages {
		return s
	}
	slices.SortFunc(seen, func(a, b weighted) int { // by weight, too, as sums of floats hang on their order
		return cmp.Or(cmp.Compare(a.For, b.For), cmp.Compare(a.weight, b.weight))
	})
	risk, left := 0.0, 1.0
	for i := range seen {
		risk += seen[i].weight
	}
	for i := 0; i < len(seen); {
		at, over, gone := seen[i].For, 0.0, 0.0
		for ; i < len(seen) && seen[i].For == at; i++ {
			if gone += seen[i].weight; !seen[i].Cut {
				over += seen[i].weight
			}
		}
		if over > 0 {
			left *= max(0, 1-over/risk)
			if i == len(seen) && over == gone {
				left = 0 // what rounding leaves
			}
			s.at, s.left = append(s.at, at), append(s.left, left)
		}
		risk -= gone
	}
	return s
}

// lasting returns the share of outages that last longer than d.
func (s *survival) lasting(d time.Duration) float64 {
	i, _ := slices.BinarySearch(s.at, d)
	if i == len(s.at) {
		return s.left[i-1]
	}
	from, left := s.point(i - 1)
	return left + (s.left[i]-left)*float64(d-from)/float64(s.at[i]-from)
}

// point returns a length and what share lasts longer; between two of them the shares lie on a line.
func (s *survival) point(i int) (time.Duration, float64) {
	if i < 0 {
		return 0, 1
	}
	return s.at[i], s.left[i]
}

// quantile returns the length within which a share q of the outages that lasted for elapsed ends; false where that is not
// known.
func (s *survival) quantile(elapsed time.Duration, q float64) (time.Duration, bool) {
	if len(s.at) == 0 {
		return 0, false
	}
	most := s.lasting(elapsed) * (1 - q)
	i, _ := slices.BinarySearchFunc(s.left, most, func(left, most float64) int { return cmp.Compare(most, left) })
	if most <= 0 || i == len(s.left) {
		return 0, false
	}
	from, left := s.point(i - 1)
	return from + time.Duration(float64(s.at[i]-from)*(left-most)/(left-s.left[i])), true
}
