package sim

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/decision"
)

// spread is the time over which the retries are made that wait for a portal to open.
const spread = 10 * time.Minute

// shut draws when a portal is closed, each day.
func (w *portal) shut(dice *rand.Rand, began time.Time, horizon time.Duration) {
	minutes := func(n int) time.Duration { return time.Duration(dice.IntN(n)+1) * time.Minute }
	var open []calendar.Window
	at := time.Duration(0)
	for from := minutes(90); from < horizon; from = at + 10*time.Minute + minutes(120) {
		open = append(open, calendar.Window{Hours: calendar.Hours{From: at, Until: from}})
		at = from + minutes(60)
		for day := range 4 {
			midnight := began.AddDate(0, 0, day)
			w.closed = append(w.closed, stretch{from: midnight.Add(from), until: midnight.Add(at)})
		}
	}
	slices.SortFunc(w.closed, func(a, b stretch) int { return a.from.Compare(b.from) })
	open = append(open, calendar.Window{Hours: calendar.Hours{From: at, Until: 24 * time.Hour}})
	w.calendar, _ = calendar.New(time.UTC, open, nil)
}

// dropHours has a portal have no hours any more.
func (s *sim) dropHours(name string) {
	w := s.portals[name]
	w.calendar, w.closed, w.droppedAt = nil, nil, time.Now()
	s.reload(func(p *decision.Policy) {
		p.Openings = maps.Clone(p.Openings)
		p.Openings[name] = decision.Opening{Spread: spread}
	})
	s.configure()
	s.say("%s has no hours any more", name)
}

// hoursDropped reports whether somebody may not know yet that the portal has no hours any more.
func (w *portal) hoursDropped() bool { return time.Since(w.droppedAt) < lateness }

// closing is the stretch in which the portal is closed at an instant; its zero value where it is open.
func (w *portal) closing(at time.Time) stretch {
	for _, c := range w.closed {
		if !at.Before(c.from) && at.Before(c.until) {
			return c
		}
	}
	return stretch{}
}

// nextOpen is an instant, or when the portal opens that is closed then.
func (w *portal) nextOpen(at time.Time) time.Time {
	if c := w.closing(at); !c.until.IsZero() {
		return c.until
	}
	return at
}

// sendBy is the last instant up to a deadline at which the portal is open.
func (w *portal) sendBy(deadline time.Time) time.Time {
	if c := w.closing(deadline); !c.from.IsZero() {
		return c.from.Add(-time.Millisecond)
	}
	return deadline
}

// openFor is when the portal has been open for so long since an instant.
func (w *portal) openFor(long time.Duration, since time.Time) time.Time {
	end := since.Add(long)
	for _, c := range w.closed {
		if c.until.After(since) && c.from.Before(end) {
			end = end.Add(c.until.Sub(slices.MaxFunc([]time.Time{c.from, since}, time.Time.Compare)))
		}
	}
	return end
}

// openSince is how long it is open; 0 where it is closed.
func (w *portal) openSince() time.Duration {
	since := time.Since(w.droppedAt)
	for _, c := range w.closed {
		if time.Since(c.from) >= 0 {
			since = max(time.Since(c.until), 0)
		}
	}
	return since
}

// isClosed reports whether everybody's clock says so.
func (w *portal) isClosed() bool {
	c := w.closing(time.Now())
	return time.Since(c.from) > clocksApart && time.Until(c.until) > clocksApart
}

// isMade reports whether a retry that is wanted at an instant is made then, or soon after the portal opens that is closed.
func (w *portal) isMade(at, wanted time.Time) bool {
	opens, within := w.nextOpen(wanted), spread
	for _, c := range w.closed {
		if c.from.After(opens) {
			within = min(within, c.from.Sub(opens)/2)
		}
	}
	return at.Equal(wanted) && opens.Equal(at) || !opens.Equal(wanted) && !at.Before(opens) && at.Sub(opens) <= within+time.Minute && w.nextOpen(at).Equal(at)
}
