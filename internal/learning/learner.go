package learning

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

const (
	// DefaultHalfLife is how long it takes until a recorded outcome weighs half, where the policy does not say.
	DefaultHalfLife = 90 * 24 * time.Hour
	// maxCells of a policy's figures; some 35 MB where all are used.
	maxCells = 100_000
	// remembered is how many half-lives what is read lies back at most: it weighs less than 1 in 250 then.
	remembered = 8
)

// Source reads what is learnt from (journal.Statistics does).
type Source interface {
	Learnt(ctx context.Context, weeks []int64) ([]journal.LearntFigure, journal.Head, error)
}

// Learner reads sums of recorded outcomes now and then, and tells of a cause what they say. Prospects is safe for
// concurrent use, beside one Refresh at a time.
type Learner struct {
	source  Source
	current atomic.Pointer[snapshot]
	// past are the figures of slots that grow no more, before the slot since.
	past  []journal.LearntFigure
	since int64
}

// snapshot is what was learnt up to a record. It never changes.
type snapshot struct {
	version  int64
	at       time.Time
	policies map[string]*Figures
}

// NewLearner returns a Learner that knows nothing before the first Refresh.
func NewLearner(source Source) *Learner {
	l := &Learner{source: source}
	l.current.Store(&snapshot{})
	return l
}

// Refresh reads what was recorded since, and weighs it as of now by the policies' half-lives.
func (l *Learner) Refresh(ctx context.Context, policies decision.Policies, now time.Time) error {
	longest := time.Duration(0)
	for _, p := range policies {
		longest = max(longest, halfLife(p))
	}
	// What is recorded next may be of last week by another machine's clock.
	grows := journal.WeekOf(now.Add(-time.Hour))
	if l.since != grows {
		past, _, err := l.source.Learnt(ctx, weeks(journal.WeekOf(now.Add(-remembered*longest)), grows-1))
		if err != nil {
			return fmt.Errorf("read what was learnt from: %w", err)
		}
		l.past, l.since = past, grows
	}
	recent, head, err := l.source.Learnt(ctx, weeks(grows, journal.SlotOf(now)))
	if err != nil {
		return fmt.Errorf("read what is learnt from: %w", err)
	}
	s := &snapshot{version: head.Record, at: now, policies: map[string]*Figures{}}
	for _, all := range [][]journal.LearntFigure{l.past, recent} {
		for i := range all {
			s.add(&all[i], policies)
		}
	}
	l.current.Store(s)
	return nil
}

// weeks returns those that begin in the slots from the first, which is one, to the last.
func weeks(first, last int64) (all []int64) {
	for slot := first; slot <= last; slot += journal.WeekSlots {
		all = append(all, slot)
	}
	return all
}

func halfLife(p *decision.Policy) time.Duration {
	if p.HalfLife > 0 {
		return p.HalfLife
	}
	return DefaultHalfLife
}

func (s *snapshot) add(f *journal.LearntFigure, policies decision.Policies) {
	p := policies[f.Policy]
	if p == nil {
		return
	}
	of := s.policies[f.Policy]
	if of == nil {
		of = New(halfLife(p), maxCells)
		s.policies[f.Policy] = of
	}
	middle := journal.SlotTime(f.Slot).Add(7 * 24 * time.Hour / 2) // of its week
	of.AddSum(Cause{f.Policy, string(f.Reason), f.Cause, f.Destination}, middle, f.Name, f.Bucket, f.Value)
}

// Prospects returns what was learnt of a cause at a destination; nil where that is nothing.
func (l *Learner) Prospects(p *decision.Policy, cause *journal.Fingerprint, destination string) decision.Prospects {
	s := l.current.Load()
	figures := s.policies[p.Name]
	if figures == nil || p.HandOver == decision.LearnNothing {
		return nil
	}
	return prospects{s, figures, Cause{p.Name, string(cause.Reason), cause.ID, destination}}
}

// prospects of a cause, as a snapshot has them.
type prospects struct {
	*snapshot
	figures *Figures
	cause   Cause
}

func (p prospects) Version() int64 { return p.version }

func (p prospects) Probability(retry int64, since time.Duration) (float64, bool) {
	return p.figures.Probability(p.cause, int(min(retry, journal.MaxLearntRetries)), since, p.at)
}

func (p prospects) Hopeless() (closed, recovered int64, hopeless bool) {
	return p.figures.Hopeless(p.cause, p.at)
}

func (p prospects) Explores(subject string, retryCount int64) bool {
	return Explores(subject, retryCount)
}
