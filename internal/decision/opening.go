package decision

import (
	"time"

	"retry-worker/internal/calendar"
)

// Opening says when claims can be sent to a destination. Its zero value is at any time.
type Opening struct {
	Calendar *calendar.Calendar
	// Spread is the time over which the retries that wait for it to open are made.
	Spread time.Duration
}

// Opening returns that of a destination.
func (p *Policy) Opening(destination string) Opening {
	if o, ok := p.Openings[destination]; ok {
		return o
	}
	return p.Openings[""]
}

// Open returns at, or where that is closed a time in the next opening: the same one for the same subject and count, in
// the first half of the opening, and in no case after until, unless it opens later. Zero is no such limit.
func (p *Policy) Open(destination, subject string, count int64, at, until time.Time) time.Time {
	o := p.Opening(destination)
	next := o.Calendar.Next(at)
	if next.Equal(at) {
		return at
	}
	spread := time.Duration(p.draw(subject, count) * float64(o.Room(next, until)))
	return next.Add(spread.Truncate(time.Second)).UTC()
}

// Room returns how long after next, at which it opens, a retry may be made that waits for that.
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

// wholeMinutes returns at, or what makes the wait from then whole minutes, where it is open.
func (o Opening) wholeMinutes(from, at, until time.Time) time.Time {
	rounded := from.Add(time.Duration(Minutes(at.Sub(from))) * time.Minute)
	if o.Calendar.IsOpen(rounded) && (until.IsZero() || !rounded.After(until)) {
		return rounded
	}
	return at
}

// TimeLimit returns until when the total limit lets retries be made of what failed first at an instant: hours in which
// its destination is closed do not count (R27). Zero is no limit.
func (p *Policy) TimeLimit(destination string, first time.Time) time.Time {
	if p.TotalLimit == 0 {
		return time.Time{}
	}
	return p.Opening(destination).Calendar.Add(first, p.TotalLimit)
}

// stretchSpread is the time over which the retries are made that wait for a destination to be back.
const stretchSpread = 10 * time.Minute

// stretched returns until when a retry waits that was wanted earlier, as its destination is expected back only then, in
// whole minutes; zero where it does not.
func (d *Decision) stretched(p *Policy, f *Failure, wanted time.Time) time.Time {
	if !p.Stretch || !f.Expected.After(wanted) {
		return time.Time{}
	}
	spread := time.Duration(p.draw(d.SubjectID, d.RetryCount) * float64(stretchSpread))
	return d.AnalysedAt.Add(time.Duration(Minutes(f.Expected.Add(spread).Sub(d.AnalysedAt))) * time.Minute)
}
