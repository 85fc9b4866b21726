package decision

import (
	"time"

	"retry-worker/internal/calendar"
)

// Opening says when claims can be sent to a destination. The zero value is always open.
type Opening struct {
	Calendar *calendar.Calendar
	// Spread is the time after an opening over which the waiting retries are spread.
	Spread time.Duration
}

// Opening returns the opening of a destination.
func (p *Policy) Opening(destination string) Opening {
	if o, ok := p.Openings[destination]; ok {
		return o
	}
	return p.Openings[""]
}

// Open returns at or, if the destination is closed then, a time in the first half of its next opening. The time depends
// on subject and count alone, so it is the same each time. It is not after until (zero: no limit), unless the opening
// itself is.
func (p *Policy) Open(destination, subject string, count int64, at, until time.Time) time.Time {
	o := p.Opening(destination)
	next := o.Calendar.Next(at)
	if next.Equal(at) {
		return at
	}
	spread := time.Duration(p.draw(subject, count) * float64(o.Room(next, until)))
	return next.Add(spread.Truncate(time.Second)).UTC()
}

// Room returns how long after the opening at next a waiting retry may be made.
func (o Opening) Room(next, until time.Time) time.Duration {
	room := o.Spread
	if end := o.Calendar.OpenUntil(next); !end.IsZero() {
		room = min(room, end.Sub(next)/2)
	}
	if !until.IsZero() {
		room = min(room, until.Sub(next))
	}
	return max(room, 0)
}

// wholeMinutes rounds at up so that the wait since from is whole minutes, if the destination is open then and until is
// kept; otherwise it returns at.
func (o Opening) wholeMinutes(from, at, until time.Time) time.Time {
	rounded := from.Add(time.Duration(Minutes(at.Sub(from))) * time.Minute)
	if o.Calendar.IsOpen(rounded) && (until.IsZero() || !rounded.After(until)) {
		return rounded
	}
	return at
}

// TimeLimit returns the end of the total limit for a first failure at an instant; zero if there is none. Hours in which
// the destination is closed do not count (R27).
func (p *Policy) TimeLimit(destination string, first time.Time) time.Time {
	if p.TotalLimit == 0 {
		return time.Time{}
	}
	return p.Opening(destination).Calendar.Add(first, p.TotalLimit)
}

// stretchSpread is the time over which retries are spread that wait for a destination to come back.
const stretchSpread = 10 * time.Minute

// stretched returns when to retry if the destination is down and expected back only after wanted: whole minutes after
// AnalysedAt. It returns zero if the retry need not wait.
func (d *Decision) stretched(p *Policy, f *Failure, wanted time.Time) time.Time {
	if !p.Stretch || !f.Expected.After(wanted) {
		return time.Time{}
	}
	spread := time.Duration(p.draw(d.SubjectID, d.RetryCount) * float64(stretchSpread))
	return d.AnalysedAt.Add(time.Duration(Minutes(f.Expected.Add(spread).Sub(d.AnalysedAt))) * time.Minute)
}
