package decision

import (
	"math"
	"time"
)

// Rung is one retry of a policy's ladder: the shortest, the nominal and the longest wait before it, and the same counted
// from the first failure on.
type Rung struct {
	// Retry number, from 1.
	Retry                                    int64
	Earliest, Nominal, Latest                time.Duration
	SumOfEarliest, SumOfNominal, SumOfLatest time.Duration
}

// mostRungs of a ladder that are told; what is above repeats the last.
const mostRungs = 100

// Ladder is what p means for a failure that comes again at once after every retry: its retries, at most the first 100,
// as far as the total limit lets them be scheduled (R20). own is the policy that the job brings, if any.
func (p *Policy) Ladder(own OwnPolicy) []Rung {
	maxRetries, rule := p.Limits(own)
	var ladder []Rung
	var sum Rung
	for n := range min(maxRetries, mostRungs) {
		r := Rung{
			Retry: n + 1, Earliest: rule.After(0, n).Delay, Nominal: rule.After(0.5, n).Delay,
			Latest: rule.After(math.Nextafter(1, 0), n).Delay,
		}
		r.SumOfEarliest, r.SumOfNominal, r.SumOfLatest = add(sum.SumOfEarliest, r.Earliest), add(sum.SumOfNominal, r.Nominal), add(sum.SumOfLatest, r.Latest)
		if p.TotalLimit > 0 && r.SumOfEarliest > p.TotalLimit {
			break
		}
		ladder, sum = append(ladder, r), r
	}
	return ladder
}

// add does not overflow; a and b are not negative.
func add(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Manual is the backoff of a retry that a person asks for (R17), after count retries made: p's own, with the draw that the
// same retry would have had (R6). Beyond the ladder its last delay holds (R14: 30 s for failed-job). own is the policy
// that the job brought, if any. The total limit (R20) binds the worker, not a person.
func (p *Policy) Manual(subject string, own OwnPolicy, count int64) Backoff {
	_, rule := p.Limits(own)
	return rule.After(p.draw(subject, count), count)
}
