package sim

import (
	"fmt"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/journal"
)

// portal is where claims go, in trouble for stretches of time. It answers within so many seconds.
type portal struct {
	troubles []stretch
	slowest  int
	closed   []stretch // of the days, in their order
	calendar *calendar.Calendar
	changed  time.Time // when its hours did last
	probed   bool      // by its URL, too

	orders map[string]bool // that people gave

	recorded recorded    // as it was last
	version  int64       // of what is recorded
	wasUp    time.Time   // when it was last recorded as up, or ceased to be
	notDown  time.Time   // when it was last seen not to be
	paces    []time.Time // when claims went
	asked    []time.Time // when a claim asked to go, or was let go
	failures []time.Time // that speak of it
	row      []time.Time // those without an answer between them
	ramped   time.Time   // when a ramp was last recorded
	failed   time.Time   // when the claim went that failed last, as its gate tells
	answered []time.Time // claims that were submitted
	tested   *process    // the claim that it is tested with
	canary   int64       // that claim's gate's job
	word     time.Time   // when what came of it was recorded
	testedAt time.Time   // when it was recorded that the last canary goes
	ordered  time.Time   // when a person last ordered something
	order    int64       // the record of that, until it is followed
	probing  time.Time   // when its URL was asked last
	well     time.Time   // when its URL was last found to answer
	held     hold        // by a person
	treated  time.Time   // when a person said that it is up, or let claims go
	upUntil  time.Time   // until when it is to be taken for up
	command  journal.DestinationCommand
	limited  time.Time // when the claim went that it refused last for coming too fast
	heard    time.Time // when that was recorded
	bad      int       // probes that failed in a row
	paused   hold      // as it asked for
	opens    time.Time // when most of many claims had failed, and it was not recorded as down
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
func (s *sim) ordered(name string, c *journal.DestinationCommand) {
	w := s.portals[name]
	if !w.orders[order(c)] {
		s.fail("nobody ordered of %s: %+v", name, *c)
	}
	w.held, w.ordered, w.opens, w.command = hold{}, time.Now(), time.Time{}, *c
	switch c.Verb {
	case journal.HoldClaims:
		w.held, w.upUntil = hold{time.Now(), c.Until}, time.Time{}
	case journal.TreatAsUp:
		w.treated, w.upUntil = time.Now(), c.Until
	case journal.ReleaseAt:
		w.treated = time.Now()
	}
}
