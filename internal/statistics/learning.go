package statistics

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

const (
	remembered = 26 // weeks of cases that count
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

const (
	// newFor is how long a cause can count as new, or back: one that fails once in the evening may break out in the
	// morning.
	newFor      = 24 * time.Hour
	outbreak    = 5    // failures within an hour that make a new cause worth an announcement (R34)
	recordsPage = 1000 // records that are read at once
)

// Store is what FindNew reads and writes.
type Store interface {
	journal.Reader
	TellCause(ctx context.Context, c *journal.Cause) (bool, error)
}

// FindNew returns the causes to announce as new, or back: those that had never failed, or not for journal.Silence, and
// now fail five times within an hour (R34). It returns each once among all replicas.
func FindNew(ctx context.Context, s Store, now time.Time) (found []journal.Cause, err error) {
	causes, err := s.Causes(ctx, journal.CauseFilter{Began: now.Add(-newFor)}, nil, mostCauses)
	if err != nil {
		return nil, err
	}
	since, suspects := now, map[string]*suspect{}
	for i := range causes {
		if c := &causes[i]; c.Failures >= outbreak && (c.News == nil || c.News.At.Before(c.Began)) {
			suspects[c.ID] = &suspect{Cause: c, news: journal.News{First: c.Began}, claims: map[journal.Subject]bool{},
				destinations: map[string]int{}}
			since = slices.MinFunc([]time.Time{since, c.Began}, time.Time.Compare)
		}
	}
	for after, more := int64(0), len(suspects) > 0; more; {
		page, err := s.Records(ctx, journal.RecordFilter{Since: since}, after, recordsPage)
		if err != nil {
			return nil, fmt.Errorf("read the failures of causes that may be new: %w", err)
		}
		for i := range page {
			after = page[i].Record
			if a := page[i].Attempt; a != nil && a.Revision == 0 && suspects[a.Fingerprint] != nil {
				suspects[a.Fingerprint].fails(page[i].Subject, a)
			}
		}
		more = len(page) == recordsPage
	}
	for i := range causes {
		if one := suspects[causes[i].ID]; one != nil && one.breaksOut {
			told, err := one.tell(ctx, s, now)
			if err != nil {
				return found, err
			}
			if told {
				found = append(found, causes[i])
			}
		}
	}
	return found, nil
}

// suspect is a cause that may be new.
type suspect struct {
	*journal.Cause
	news         journal.News
	failures     []time.Time
	claims       map[journal.Subject]bool
	destinations map[string]int
	breaksOut    bool // outbreak failures lie within an hour
}

func (o *suspect) fails(s journal.Subject, a *journal.Attempt) {
	o.claims[s] = true
	if o.destinations[a.Destination]++; o.destinations[a.Destination] > o.destinations[o.news.Destination] {
		o.news.Destination = a.Destination
	}
	o.news.Last = a.Decision.AnalysedAt
	o.failures = append(o.failures, o.news.Last)
	n := len(o.failures)
	o.breaksOut = o.breaksOut || n >= outbreak && o.news.Last.Sub(o.failures[n-outbreak]) <= time.Hour
}

// tell records the announcement of the cause, and reports whether no other replica has.
func (o *suspect) tell(ctx context.Context, s Store, now time.Time) (bool, error) {
	n := &o.news
	n.At = slices.MaxFunc([]time.Time{now, o.Began}, time.Time.Compare)
	if n.Failures, n.Claims = int64(len(o.failures)), int64(len(o.claims)); !o.Prior.IsZero() {
		n.Before = &journal.Before{Last: o.Prior, Failures: max(o.Cause.Failures-n.Failures, 0)}
		cases, err := s.Cases(ctx, weeksThrough(o.Prior.Add(journal.Silence/2)), mostCauses)
		if err != nil {
			return false, err
		}
		for i := range cases {
			if c := &cases[i]; c.Cause == o.ID {
				n.Before.Recovered, n.Before.Closed = n.Before.Recovered+c.Recovered, n.Before.Closed+c.Closed()
			}
		}
	}
	o.News = n
	return s.TellCause(ctx, o.Cause)
}
