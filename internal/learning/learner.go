package learning

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"time"
	"unique"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

const (
	// DefaultHalfLife is how long it takes until a recorded outcome weighs half, where the policy does not say.
	DefaultHalfLife = 90 * 24 * time.Hour
	// pastCells and recentCells are how many are kept of weeks that grow no more, and of those that do: some 40 MB.
	pastCells, recentCells = 75_000, 25_000
	// remembered is how many half-lives what is read lies back at most: it weighs less than 1 in 250 then.
	remembered = 8
)

// Source reads what is learnt from (journal.Statistics does).
type Source interface {
	Learnt(ctx context.Context, weeks []int64, take func(*journal.LearntFigure)) (journal.Head, error)
}

// Learner reads sums of recorded outcomes now and then, and tells of a cause what they say. Prospects is safe for
// concurrent use, beside one Refresh at a time.
type Learner struct {
	source  Source
	current atomic.Pointer[snapshot]
	// past are figures of the weeks before the slot since, by the half-lives of then.
	past      *Figures
	since     int64
	halfLives map[string]time.Duration
}

// snapshot is what was learnt up to a record. It never changes.
type snapshot struct {
	version int64
	at      time.Time
	*Figures
}

// NewLearner returns a Learner that knows nothing before the first Refresh.
func NewLearner(source Source) *Learner {
	l := &Learner{source: source}
	l.current.Store(&snapshot{Figures: New(nil, 0)})
	return l
}

// Refresh reads what was recorded since, and weighs it as of now by the policies' half-lives.
func (l *Learner) Refresh(ctx context.Context, policies decision.Policies, now time.Time) error {
	halfLives, longest := map[string]time.Duration{}, time.Duration(0)
	for name, p := range policies {
		halfLives[name] = cmp.Or(p.HalfLife, DefaultHalfLife)
		longest = max(longest, halfLives[name])
	}
	// What is recorded next may be of last week by another machine's clock.
	grows := journal.WeekOf(now.Add(-time.Hour))
	if l.since != grows || !maps.Equal(l.halfLives, halfLives) {
		l.past = nil // two at a time are too many
		past := New(halfLives, pastCells)
		if _, err := l.read(ctx, past, weeks(journal.WeekOf(now.Add(-remembered*longest)), grows-1)); err != nil {
			return err
		}
		l.past, l.since, l.halfLives = past, grows, halfLives
	}
	recent := New(halfLives, recentCells)
	recent.past = l.past
	head, err := l.read(ctx, recent, weeks(grows, journal.SlotOf(now)))
	if err != nil {
		return err
	}
	l.current.Store(&snapshot{head.Record, now, recent})
	return nil
}

// read adds the figures of those weeks to what is known.
func (l *Learner) read(ctx context.Context, to *Figures, weeks []int64) (journal.Head, error) {
	head, err := l.source.Learnt(ctx, weeks, func(f *journal.LearntFigure) {
		if to.halfLives[f.Policy] == 0 {
			return
		}
		middle := journal.SlotTime(f.Slot).Add(7 * 24 * time.Hour / 2) // of its week
		once := func(s string) string { return unique.Make(s).Value() }
		c := Cause{once(f.Policy), once(string(f.Reason)), f.Cause, once(f.Destination)}
		to.AddSum(c, middle, f.Name, f.Bucket, f.Value)
	})
	if err != nil {
		return head, fmt.Errorf("read what is learnt from: %w", err)
	}
	return head, nil
}

// weeks are the slots of those from first to last.
func weeks(first, last int64) (all []int64) {
	for slot := first; slot <= last; slot += journal.WeekSlots {
		all = append(all, slot)
	}
	return all
}

// Prospects returns what is known of a cause at a destination; nil where its policy learns nothing.
func (l *Learner) Prospects(p *decision.Policy, cause *journal.Fingerprint, destination string) decision.Prospects {
	if p.HandOver == decision.LearnNothing {
		return nil
	}
	return prospects{l.current.Load(), Cause{p.Name, string(cause.Reason), cause.ID, destination}}
}

// prospects are those of a cause in a snapshot.
type prospects struct {
	*snapshot
	cause Cause
}

func (p prospects) Version() int64 { return p.version }

func (p prospects) Probability(retry int64, since time.Duration) (float64, bool) {
	return p.Figures.Probability(p.cause, int(min(retry, journal.MaxLearntRetries)), since, p.at)
}

func (p prospects) Hopeless() (closed, recovered int64, hopeless bool) {
	return p.Figures.Hopeless(p.cause, p.at)
}
