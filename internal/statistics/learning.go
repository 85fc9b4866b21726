package statistics

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

const (
	// remembered is how many weeks of cases count.
	remembered = 26
	// mostCauses is how many causes at destinations are kept, those with the most closed claims, so that made-up causes
	// cannot fill the memory.
	mostCauses = 25_000
	// borrowed is the weight, in claims, of a level's prior chance, which comes from the wider level.
	borrowed = 4
)

// Learner implements journal.Learner from what the last Refresh read.
type Learner struct {
	source journal.Reader
	known  atomic.Pointer[map[level]journal.Prospects]
}

// level is a set of similar claims: those of a policy, of a reason, or of a cause at all destinations or at one.
type level struct {
	policy      string
	reason      decision.Reason
	cause       string
	destination string
}

// NewLearner returns a Learner that knows nothing until the first Refresh.
func NewLearner(source journal.Reader) *Learner {
	l := &Learner{source: source}
	l.known.Store(&map[level]journal.Prospects{})
	return l
}

// Refresh reads the cases of the weeks up to now.
func (l *Learner) Refresh(ctx context.Context, now time.Time) error {
	// Another machine's clock may be ahead, so include the next week.
	cases, err := l.source.Cases(ctx, weeksThrough(now.Add(7*24*time.Hour)), mostCauses)
	if err != nil {
		return fmt.Errorf("read what is learnt from: %w", err)
	}
	known := map[level]journal.Prospects{}
	for i := range cases {
		c := &cases[i]
		for _, at := range levels(c.Policy, c.Reason, c.Cause, c.Destination) {
			p := known[at]
			p.Add(c.Prospects)
			known[at] = p
		}
	}
	l.known.Store(&known)
	return nil
}

// weeksThrough returns the weeks that count, up to t's.
func weeksThrough(t time.Time) []int64 {
	weeks := make([]int64, remembered+1)
	for i := range weeks {
		weeks[i] = journal.WeekOf(t) - int64(i)*journal.WeekSlots
	}
	return weeks
}

// levels returns the levels of a cause at a destination, the widest first.
func levels(policy string, reason decision.Reason, cause, destination string) []level {
	all := []level{{policy: policy}, {policy: policy, reason: reason}, {policy: policy, reason: reason, cause: cause},
		{policy, reason, cause, destination}}
	if destination == "" {
		return all[:3]
	}
	return all
}

// Probability implements journal.Learner.
func (l *Learner) Probability(cause *journal.Fingerprint, destination string) float64 {
	known := *l.known.Load()
	if p := known[level{policy: cause.Policy}]; p.Closed() < journal.FewestCases {
		return 0
	}
	chance := 0.5
	for _, at := range levels(cause.Policy, cause.Reason, cause.ID, destination) {
		p := known[at]
		chance = (float64(p.Recovered) + borrowed*chance) / (float64(p.Closed()) + borrowed)
	}
	return min(max(math.Round(chance*1000)/1000, 0.001), 0.999)
}

// Prospects implements journal.Learner.
func (l *Learner) Prospects(cause *journal.Fingerprint) journal.Prospects {
	return (*l.known.Load())[level{policy: cause.Policy, reason: cause.Reason, cause: cause.ID}]
}
