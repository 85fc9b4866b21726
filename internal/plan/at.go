package plan

import (
	"time"

	"retry-worker/internal/decision"
)

// when is how an instant is shown.
const when = "Mon 2006-01-02 15:04 -0700"

// At places the retries of a claim that fails first at an instant: one that would be made while the destination is
// closed is made when that opens (R29), and closed hours do not count toward the total limit (R27).
func (p *Plan) At(policy *decision.Policy, destination string, first time.Time) {
	o := policy.Opening(destination)
	if o.Calendar != nil {
		first = first.In(o.Calendar.Zone())
	}
	p.Destination, p.FirstFailure = destination, &first
	limit := policy.TimeLimit(destination, first)
	if !limit.IsZero() {
		p.TotalLimit = Duration(limit.Sub(first))
	}
	earliest, nominal, latest := first, first, first
	for i := range p.Retries {
		r := &p.Retries[i]
		wanted := nominal.Add(time.Duration(r.Wait.Nominal))
		earliest = opened(o, earliest.Add(time.Duration(r.Wait.Earliest)), 0)
		nominal = opened(o, wanted, 0.5)
		latest = opened(o, latest.Add(time.Duration(r.Wait.Latest)), 1)
		if p.TotalLimit > 0 && earliest.After(limit) {
			p.Retries = p.Retries[:i]
			break
		}
		r.FromFirst = Range{Duration(earliest.Sub(first)), Duration(nominal.Sub(first)), Duration(latest.Sub(first))}
		r.MayPassLimit = p.TotalLimit > 0 && latest.After(limit)
		r.At, r.Why = new(nominal), o.Calendar.Why(wanted)
	}
	p.shut(o, first)
	p.Remarks = nil
	p.countTheRest()
	p.remark()
}

// opened returns t, or where that is closed a time in the next opening: that share of the time over which they are
// spread.
func opened(o decision.Opening, t time.Time, share float64) time.Time {
	next := o.Calendar.Next(t)
	if next.Equal(t) {
		return t
	}
	return next.Add(time.Duration(share * float64(o.Room(next, time.Time{}))))
}

// shut notes when the destination is closed, as far as the plan goes.
func (p *Plan) shut(o decision.Opening, first time.Time) {
	end := time.Duration(p.TotalLimit)
	if last := len(p.Retries) - 1; last >= 0 {
		end = max(end, time.Duration(p.Retries[last].FromFirst.Latest))
	}
	closed := first
	for _, open := range o.Calendar.Openings(first, first.Add(end)) {
		if open.From.After(closed) {
			p.Closed = append(p.Closed, Span{Duration(closed.Sub(first)), Duration(open.From.Sub(first))})
		}
		closed = open.Until
	}
	if left := first.Add(end); left.After(closed) {
		p.Closed = append(p.Closed, Span{Duration(closed.Sub(first)), Duration(end)})
	}
}
