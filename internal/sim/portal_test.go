package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
)

// portal is where claims go, in trouble for stretches of time. It answers within so many seconds.
type portal struct {
	troubles []stretch
	slowest  int
	closed   []stretch // of the days, in their order
	calendar *calendar.Calendar
	changed  time.Time // when its hours did last
	probed   bool      // by its URL, too

	recorded recorded    // as it was last
	wasUp    time.Time   // when it was last recorded as up, or ceased to be
	notDown  time.Time   // when it was last seen not to be
	paces    []time.Time // when claims went
	failures []time.Time // that speak of it
	row      []time.Time // those without an answer between them
	ramped   time.Time   // when a ramp was last recorded
	answered []time.Time // claims that were submitted
	tested   *process    // the claim that it is tested with
	canary   int64       // that claim's gate's job
	word     time.Time   // when what came of it was recorded
	testedAt time.Time   // when it was recorded that the last canary goes
	ordered  time.Time   // when a person last ordered something
	order    int64       // the record of that, until it is followed
	probing  time.Time   // when its URL was asked last
	held     hold        // by a person
	treated  time.Time   // when a person said that it is up, or let claims go
	upUntil  time.Time   // until when it is to be taken for up
	command  destination.Order
	limited  time.Time // when the claim went that it refused last for coming too fast
	heard    time.Time // when that was recorded
	bad      int       // probes that failed in a row
	paused   hold      // as it asked for
}

type stretch struct {
	from, until time.Time
	how         trouble
}

type trouble int

const (
	isDown trouble = iota
	answersOneInThree
	refusesAll // of one credential, say
	isFlapping
)

func (w *portal) problem(s *sim, dice interface{ IntN(int) int }) string {
	for _, t := range w.troubles {
		if !s.calm && !time.Now().Before(t.from) && time.Now().Before(t.until) {
			switch t.how {
			case isDown:
				return "Read timed out after 30000 ms"
			case answersOneInThree:
				if dice.IntN(3) > 0 {
					return "HTTP 503 Service Unavailable"
				}
			case refusesAll:
				return permanentError
			case isFlapping:
				if dice.IntN(3) == 0 {
					return "Read timed out after 30000 ms"
				}
				if time.Since(s.began)%(2*time.Minute) > 30*time.Second {
					return fmt.Sprint("HTTP 429 Too Many Requests, Retry-After: ", 20+dice.IntN(2)*680)
				}
			}
		}
	}
	return ""
}

// hold is for how long claims are held, by a person's order or as the portal asks for.
type hold struct{ since, until time.Time }

// holds reports whether all know of it, and it is not over, beside what clocks are apart.
func (h hold) holds() bool {
	return time.Since(h.since) > noLongerDown && time.Until(h.until) > clocksApart
}

// ordered notes what a person holds.
func (s *sim) ordered(name string, c *destination.Order) {
	w := s.portals[name]
	w.held, w.ordered, w.command = hold{}, time.Now(), *c
	switch c.Verb {
	case destination.HoldClaims:
		w.held, w.upUntil = hold{time.Now(), c.Until}, time.Time{}
	case destination.TreatAsUp:
		w.treated, w.upUntil = time.Now(), c.Until
	case destination.ReleaseAt:
		w.treated = time.Now()
	}
}

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
	clock := func(t time.Time) string {
		minutes := int(t.Sub(began).Minutes())
		return fmt.Sprintf("%02d:%02d", minutes/60, minutes%60)
	}
	at := "00:00"
	for _, c := range today {
		open = append(open, calendar.Window{Hours: at + "-" + clock(c.from)})
		at = clock(c.until)
		for day := range 4 {
			w.closed = append(w.closed, stretch{from: c.from.AddDate(0, 0, day), until: c.until.AddDate(0, 0, day)})
		}
	}
	slices.SortFunc(w.closed, func(a, b stretch) int { return a.from.Compare(b.from) })
	open = append(open, calendar.Window{Hours: at + "-24:00"})
	var err error
	if w.calendar, err = calendar.New(time.UTC, open, nil); err != nil { // beyond the day
		w.closed = nil
	}
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
		p.Destinations.Named = maps.Clone(p.Destinations.Named)
		p.Destinations.Named[name] = w.settings()
	})
	s.configure()
	s.say("%s %s from now on", name, hours)
}

// settings are what the policy knows of the portal: its pace makes spread of the time for those who wait for it.
func (w *portal) settings() destination.Settings {
	return destination.Settings{Calendar: w.calendar, Pace: destination.Defaults().Pace}
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
