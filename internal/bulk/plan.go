package bulk

import (
	"cmp"
	"slices"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

// planner sorts what a command would find into what would be decided and what would not.
type planner struct {
	Plan
	// policies in force; early tells that a process which has not come yet may still.
	policies decision.Policies
	early    bool

	refused map[Refused]int64
	ready   map[Tally]int64
	seen    seen
}

// add sorts some that are alike.
func (p *planner) add(t *journal.DeadLetterTally) {
	p.Total += t.N
	p.seen.n, p.seen.sum = p.Total, int64((uint64(p.seen.sum)+uint64(t.Sum))&(1<<63-1))
	if p.Oldest.IsZero() || t.Oldest.Before(p.Oldest) {
		p.Oldest = t.Oldest
	}
	if t.Newest.After(p.Newest) {
		p.Newest = t.Newest
	}
	if why := p.refusal(t); why != nil {
		p.refused[Refused{Code: why.Code, Message: why.Message}] += t.N
		return
	}
	p.Ready += t.N
	p.ready[Tally{Policy: t.Policy, Team: t.Team, Reason: t.Reason}] += t.N
}

// refusal is why they would not be decided; nil where they would. It follows review.Service.
func (p *planner) refusal(t *journal.DeadLetterTally) *review.Refusal {
	c := &p.Command
	switch {
	case t.Busy:
		return refuse(InOtherRun, "another bulk run that has not ended has them in its plan; wait for it, or cancel it")
	case c.Action == journal.BulkDiscard:
		return nil
	case t.Waits && !t.Gone:
	case !t.Gone && (p.early || t.Recent):
		return refuse(review.InvalidRetryState, "the process has not come to its review task yet, so nothing would carry a retry out; plan again in a minute")
	default:
		return refuse(review.InvalidRetryState, "no process waits for them, so nothing would carry a retry out; start the processes again, or discard them")
	}
	switch {
	case t.AtLimit && !c.Force:
		return refuse(review.MaxRetriesExceeded, "all their retries are made; set forceRetry for one more, and fresh with it for the whole ladder again")
	case c.When == review.Backoff && p.policies[t.Policy] == nil:
		return refuse(review.PolicyNotFound, "policy %.60q is no longer in the catalogue, so its backoff is not known; retry with when now, or add the policy again", t.Policy)
	}
	return nil
}

// plan is what all that was added comes to.
func (p *planner) plan() Plan {
	for r, n := range p.refused {
		r.N = n
		p.Refused = append(p.Refused, r)
	}
	slices.SortFunc(p.Refused, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	for t, n := range p.ready {
		t.N = n
		p.Tallies = append(p.Tallies, t)
	}
	slices.SortFunc(p.Tallies, func(a, b Tally) int {
		return cmp.Or(cmp.Compare(b.N, a.N), cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Team, b.Team), cmp.Compare(a.Reason, b.Reason))
	})
	p.Takes = time.Duration(p.Ready) * interval(p.Command.PerMinute)
	p.Token = p.seen.token(&p.Command)
	return p.Plan
}
