package learning

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// lent is how many outages' worth of evidence all destinations together lend to each.
	lent = 5
	// keptOutages are the latest of a destination that count.
	keptOutages = 200

	minCanary, maxCanary = time.Minute, 15 * time.Minute
	// canaryStep is the chance of a recovery since the last canary at which the next one goes.
	canaryStep = 0.05
)

// Outage is how long a destination was down; one that goes on has not Ended.
type Outage struct {
	Length time.Duration
	Ended  bool
}

// Survival is the chance that an outage lasts longer than a time, estimated as Kaplan and Meier do.
type Survival struct {
	// at are lengths in order; left[i] is the share that lasts longer than at[i].
	at   []time.Duration
	left []float64
}

type weighted struct {
	Outage
	weight float64
}

// NewSurvival estimates from a destination's own outages, the latest last, and those of all destinations.
func NewSurvival(own, all []Outage) *Survival {
	own = own[max(0, len(own)-keptOutages):]
	seen := make([]weighted, 0, len(own)+len(all))
	for _, o := range own {
		seen = append(seen, weighted{o, 1})
	}
	for _, o := range all {
		seen = append(seen, weighted{o, lent / float64(len(all))})
	}
	slices.SortFunc(seen, func(a, b weighted) int { return cmp.Compare(a.Length, b.Length) })
	return kaplanMeier(seen)
}

// kaplanMeier takes outages in the order of their lengths.
func kaplanMeier(seen []weighted) *Survival {
	s, left, risk := &Survival{}, 1.0, 0.0
	for _, o := range seen {
		risk += o.weight
	}
	for i := 0; i < len(seen); {
		at, ended, gone := seen[i].Length, 0.0, 0.0
		for ; i < len(seen) && seen[i].Length == at; i++ {
			gone += seen[i].weight
			if seen[i].Ended {
				ended += seen[i].weight
			}
		}
		if ended > 0 {
			left *= max(0, 1-ended/risk)
			if i == len(seen) && ended == gone {
				left = 0 // what rounding leaves
			}
			s.at, s.left = append(s.at, at), append(s.left, left)
		}
		risk -= gone
	}
	return s
}

// lasting returns the chance that an outage lasts longer than d.
func (s *Survival) lasting(d time.Duration) float64 {
	i, found := slices.BinarySearch(s.at, d)
	if found {
		return s.left[i]
	}
	if i == 0 {
		return 1
	}
	return s.left[i-1]
}

// quantile returns the length within which a share q of the outages that lasted for elapsed ends.
func (s *Survival) quantile(elapsed time.Duration, q float64) (time.Duration, bool) {
	now := s.lasting(elapsed)
	if now <= 0 {
		return 0, false
	}
	most := now*(1-q) + 1e-12
	i, _ := slices.BinarySearchFunc(s.left, most, func(left, most float64) int { return cmp.Compare(most, left) })
	if i == len(s.left) {
		return 0, false
	}
	return s.at[i], true
}

// Estimate returns the length that half of the outages like one of elapsed reach at most, and those between which
// 80 % of them end. It reports false where too little is known.
func (s *Survival) Estimate(elapsed time.Duration) (median, low, high time.Duration, ok bool) {
	low, _ = s.quantile(elapsed, 0.1)
	median, _ = s.quantile(elapsed, 0.5)
	high, ok = s.quantile(elapsed, 0.9)
	return median, low, high, ok
}

// NextCanary returns how long after elapsed the next canary goes: at equal steps of the chance that the destination is
// up, 1 to 15 minutes apart.
func (s *Survival) NextCanary(elapsed time.Duration) time.Duration {
	next, ok := s.quantile(elapsed, canaryStep)
	if !ok {
		next = math.MaxInt64
	}
	return min(max(next-elapsed, minCanary), maxCanary)
}
