package destination

import (
	"math"
	"slices"
	"time"
)

const (
	// keptOutages of a destination are remembered, the latest.
	keptOutages = 20
	// fewestOutages must be known before something is expected of the next.
	fewestOutages = 5
)

// lasted remembers how long the outage was that ends now, unless a person began or ended it.
func (m *machine) lasted() {
	if m.Outage.Cause == CausePerson || m.Flow.Fixed {
		return
	}
	kept := m.Lasted[max(0, len(m.Lasted)+1-keptOutages):]
	m.Lasted = append(slices.Clone(kept), m.Outage.Until.Sub(m.Outage.Since)) // not in another State's
}

// Back is when a destination is expected back: the median and the quartiles of the outages that lasted longer than its
// own has so far.
type Back struct{ Median, Low, High time.Time }

// Back returns when a destination is expected back, by its own last outages or, where fewer than five are known, by
// those of all destinations. It reports false where it is not down, a person says until when, or too little is known.
func (r *Registry) Back(s *State, now time.Time) (b Back, ok bool) {
	if !s.isDown() || !s.HeldUntil.IsZero() {
		return b, false
	}
	lengths := slices.Clone(s.Lasted)
	if len(lengths) < fewestOutages {
		lengths = nil
		r.Each(func(g *Gate) { lengths = append(lengths, g.State.Lasted...) })
	}
	if len(lengths) < fewestOutages {
		return b, false
	}
	elapsed := now.Sub(s.Outage.Since)
	if lengths = slices.DeleteFunc(lengths, func(d time.Duration) bool { return d <= elapsed }); len(lengths) == 0 {
		return b, false
	}
	slices.Sort(lengths)
	at := func(q float64) time.Time {
		return s.Outage.Since.Add(lengths[int(math.Ceil(q*float64(len(lengths))))-1])
	}
	return Back{Median: at(0.5), Low: at(0.25), High: at(0.75)}, true
}

const (
	// leastRest and mostRest bound how much longer an outage is expected to last.
	leastRest, mostRest = 25 * time.Minute, 2 * time.Hour
)

// Expected returns when a destination that is down is expected back; zero where it is not down. Where too little is
// known its outage is taken to last as long again as it has: those that users reported do at the median (13,363 of them:
// docs/destinations.md).
func (r *Registry) Expected(s *State, now time.Time) time.Time {
	switch {
	case !s.isDown():
		return time.Time{}
	case !s.HeldUntil.IsZero():
		return s.HeldUntil
	}
	if b, ok := r.Back(s, now); ok {
		return b.Median
	}
	return now.Add(min(max(now.Sub(s.Outage.Since), leastRest), mostRest))
}
