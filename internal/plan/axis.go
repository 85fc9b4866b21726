package plan

import (
	"math"
	"strconv"
	"time"
)

// axis maps a time from the first failure on to a place from 0 to width.
type axis struct {
	width float64
	// from and to are the times at its ends; from is 0 unless logarithmic.
	from, to    time.Duration
	logarithmic bool
	// limit is where the total limit stands, below 0 where there is none; farLimit tells that it is later than the axis
	// reaches, which then breaks off before it.
	limit    float64
	farLimit bool
}

const (
	// breakWidth is kept at the right end for a limit that is too far off to be drawn to scale.
	breakWidth = 40
	// muchFarther than the last retry is such a limit.
	muchFarther = 1.5
	// leastPlace is how near the left end the first retry may stand on a linear axis, in pixels.
	leastPlace = 3
	// tickGap between the names of two ticks, in pixels.
	tickGap = 46
)

// axisOf p's picture that is width pixels wide. It reaches to the last retry's latest instant, and to the limit where
// that is not much farther, or the axis logarithmic.
func axisOf(p *Plan, width float64) axis {
	a := axis{width: width, limit: -1, to: time.Second}
	first := time.Duration(0) // retry that does not come at once
	for _, r := range p.Retries {
		if first == 0 {
			first = time.Duration(r.FromFirst.Earliest)
		}
		if latest := time.Duration(r.FromFirst.Latest); latest > 0 {
			a.to = latest
		}
	}
	limit := time.Duration(p.TotalLimit)
	if limit > 0 {
		if a.farLimit = float64(limit) > muchFarther*float64(a.to); a.farLimit {
			a.width -= breakWidth
		} else {
			a.to = max(a.to, limit)
		}
	}
	if first > 0 && float64(first)/float64(a.to)*a.width < leastPlace {
		a.logarithmic, a.from = true, roundBelow(first)
		a.farLimit, a.width, a.to = false, width, max(a.to, limit) // which is never far on such an axis
	}
	switch {
	case a.farLimit:
		a.limit = width
	case limit > 0:
		a.limit = a.place(limit)
	}
	return a
}

// place of a time; one before the axis begins stands at its begin.
func (a *axis) place(t time.Duration) float64 {
	if t <= a.from {
		return 0
	}
	if a.logarithmic {
		return a.width * math.Log(float64(t)/float64(a.from)) / math.Log(float64(a.to)/float64(a.from))
	}
	return a.width * float64(t) / float64(a.to)
}

// tick is a named place on the axis.
type tick struct {
	at   float64
	name string
}

// title says what the axis shows, and in which unit its ticks are.
func (a *axis) title() string {
	if a.logarithmic {
		return "time from the first failure, logarithmic scale"
	}
	_, unit := a.step()
	return unit.name + " from the first failure"
}

func (a *axis) ticks() []tick {
	if a.logarithmic {
		return a.logTicks()
	}
	step, unit := a.step()
	var all []tick
	for n := range int64(a.to/step) + 1 {
		t := time.Duration(n) * step
		all = append(all, tick{a.place(t), strconv.FormatFloat(float64(t)/float64(unit.length), 'f', -1, 64)})
	}
	return all
}

// axisUnits and the steps between two ticks that read well in each.
var axisUnits = [...]axisUnit{
	{"milliseconds", time.Millisecond, []int64{1, 2, 5, 10, 20, 50, 100, 200}},
	{"seconds", time.Second, []int64{1, 2, 5, 10, 15, 30}},
	{"minutes", time.Minute, []int64{1, 2, 5, 10, 15, 30}},
	{"hours", time.Hour, []int64{1, 2, 3, 6, 12}},
	{"days", day, []int64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000}},
}

type axisUnit struct {
	name   string
	length time.Duration
	steps  []int64
}

// step returns the smallest that leaves room for the ticks' names.
func (a *axis) step() (time.Duration, axisUnit) {
	most := time.Duration(a.width / tickGap)
	for _, unit := range axisUnits {
		for _, n := range unit.steps {
			if step := time.Duration(n) * unit.length; a.to/step <= most {
				return step, unit
			}
		}
	}
	last := axisUnits[len(axisUnits)-1]
	return a.to, last
}

// round times that stand on a logarithmic axis.
var round = [...]time.Duration{
	time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute,
	10 * time.Minute,
	time.Hour, 6 * time.Hour, day, 3 * day, 10 * day, 30 * day, 100 * day, 300 * day, 1000 * day, 3000 * day, 10000 * day,
	30000 * day, 100000 * day,
}

func roundBelow(t time.Duration) time.Duration {
	below := round[0]
	for _, r := range round {
		if r <= t {
			below = r
		}
	}
	return below
}

func (a *axis) logTicks() []tick {
	var all []tick
	for _, t := range round {
		if t < a.from || t > a.to {
			continue
		}
		at := a.place(t)
		if len(all) == 0 || at-all[len(all)-1].at >= tickGap {
			all = append(all, tick{at, axisName(t)})
		}
	}
	return all
}

// axisName returns a round time by one unit: a day is 1 d here, and 10 ms are no 0.01 s.
func axisName(t time.Duration) string {
	switch {
	case t < time.Second:
		return strconv.FormatInt(t.Milliseconds(), 10) + " ms"
	case t >= day:
		return strconv.FormatInt(int64(t/day), 10) + " d"
	default:
		return Words(t)
	}
}
