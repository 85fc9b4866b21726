package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/decision"
)

// spread is the time over which the retries are made that wait for a portal to open.
const spread = 10 * time.Minute

// shut draws when a portal is closed.
func (w *portal) shut(dice *rand.Rand, began time.Time, horizon time.Duration) {
	minutes := func(n int) time.Duration { return time.Duration(dice.IntN(n)+1) * time.Minute }
	var today []stretch
	for at := minutes(90); at < horizon; {
		from := at
		at = from + minutes(60)
		today = append(today, stretch{from: began.Add(from), until: began.Add(at)})
		at += 10*time.Minute + minutes(120)
	}
	w.close(today, began)
}

// close has a portal be closed then, each day.
func (w *portal) close(today []stretch, began time.Time) {
	var open []calendar.Window
	at := time.Duration(0)
	for _, c := range today {
		open = append(open, calendar.Window{Hours: calendar.Hours{From: at, Until: c.from.Sub(began)}})
		at = c.until.Sub(began)
		for day := range 4 {
			w.closed = append(w.closed, stretch{from: c.from.AddDate(0, 0, day), until: c.until.AddDate(0, 0, day)})
		}
	}
	slices.SortFunc(w.closed, func(a, b stretch) int { return a.from.Compare(b.from) })
	open = append(open, calendar.Window{Hours: calendar.Hours{From: at, Until: 24 * time.Hour}})
	w.calendar, _ = calendar.New(time.UTC, open, nil)
}

// changeHours has a portal have no hours any more, or close around a deadline.
func (s *sim) changeHours(name string, deadline time.Time) {
	w := s.portals[name]
	w.calendar, w.closed, w.changed = nil, nil, time.Now()
	hours := "is always open"
	if dice := s.draw("other hours of " + name); dice.IntN(2) == 0 {
		at, minutes := deadline.Sub(s.began).Truncate(time.Minute), func(n int) time.Duration { return time.Duration(dice.IntN(n)+1) * time.Minute }
		from := max(at-minutes(120), time.Minute)
		until := max(at, from) + minutes(30)
		w.close([]stretch{{from: s.began.Add(from), until: s.began.Add(until)}}, s.began)
		hours = fmt.Sprintf("is closed from %s to %s each day", from, until)
	}
	s.reload(func(p *decision.Policy) {
		p.Openings = maps.Clone(p.Openings)
		p.Openings[name] = decision.Opening{Calendar: w.calendar, Spread: spread}
	})
	s.configure()
	s.say("%s %s from now on", name, hours)
}

// hoursChanged reports whether somebody may not know yet when the portal is open now.
func (w *portal) hoursChanged() bool { return time.Since(w.changed) < lateness }

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
	since := time.Since(w.changed)
	for _, c := range w.closed {
		if time.Since(c.from) >= 0 {
			since = min(since, max(time.Since(c.until), 0))
		}
	}
	return since
}

// isClosed reports whether everybody's clock says so.
func (w *portal) isClosed() bool {
	c := w.closing(time.Now())
	return !w.hoursChanged() && time.Since(c.from) > clocksApart && time.Until(c.until) > clocksApart
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
