package decision

import "time"

// Open returns at or, if the destination is closed then, a time in the first half of its next opening. The time depends
// on subject and count alone, so it is the same each time. It is not after until (zero: no limit), unless the opening
// itself is.
func (p *Policy) Open(destination, subject string, count int64, at, until time.Time) time.Time {
	to := p.Destinations.Of(destination)
	return to.Open(at, until, p.draw(subject, count))
}

// TimeLimit returns the end of the total limit for a first failure at an instant; zero if there is none. Hours in which
// the destination is closed do not count (R27).
func (p *Policy) TimeLimit(destination string, first time.Time) time.Time {
	if p.TotalLimit == 0 {
		return time.Time{}
	}
	return p.Destinations.Of(destination).Calendar.Add(first, p.TotalLimit)
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
