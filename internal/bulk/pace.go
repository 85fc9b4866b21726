package bulk

import (
	"time"

	"retry-worker/internal/clock"
)

// mostLate is how far behind its schedule a run may be and still catch up: what is later begins a schedule anew. So the
// herd after a stall is a second's worth at most.
const mostLate = time.Second

// pace is the schedule of a run's decisions: each is due an interval after the one before was, however long it took.
type pace struct {
	clock    clock.Clock
	interval time.Duration
	due      time.Time // of the next
}

// newPace begins a schedule. last is when the run's last decision was made, by whichever process; the zero time where there
// is none.
func newPace(c clock.Clock, perMinute int64, last time.Time) *pace {
	p := &pace{clock: c, interval: interval(perMinute), due: c.Now()}
	if next := last.Add(p.interval); !last.IsZero() && next.After(p.due) {
		p.due = p.due.Add(min(next.Sub(p.due), p.interval)) // another machine's clock may be ahead
	}
	return p
}

// wait is how long until the next is due; 0 where it is.
func (p *pace) wait() time.Duration {
	now := p.clock.Now()
	if now.Sub(p.due) > mostLate {
		p.due = now
	}
	return max(p.due.Sub(now), 0)
}

// spend notes that one is made.
func (p *pace) spend() { p.due = p.due.Add(p.interval) }

// refund gives back the turn of what was refused.
func (p *pace) refund() {
	if early := p.due.Sub(p.clock.Now()); early > 0 {
		p.due = p.due.Add(-min(early, p.interval))
	}
}
