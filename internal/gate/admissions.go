package gate

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
)

// minuteOf is a destination in a minute since 1970.
type minuteOf struct {
	destination string
	minute      int64
}

// passed counts claims that go while their destination is up.
type passed map[minuteOf]int

func minuteAt(now time.Time) int64 { return now.Unix() / 60 }

// pass counts a claim that this replica let through. Where it acts, the destination's breaker knows already.
func (g *Gates) pass(d *destination.Gate) {
	at := minuteOf{d.Name, minuteAt(g.Clock.Now())}
	if g.passed[at]++; g.leads {
		g.weighed[at]++
	}
}

// addUp adds what this replica let through to the sums of all: each minute once it is over, or at once where a
// destination fails. The breakers of the one that acts then count what the others let through.
func (g *Gates) addUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	due, leads := g.duePassed()
	if len(due) > 0 {
		if err := g.Store.AddAdmissions(ctx, due); err != nil {
			return err // they are forgotten: the breakers are a little quicker for that minute
		}
	}
	if !leads {
		return nil
	}
	s := g.Settings()
	within := s.Otherwise.OpensAt.Within
	for _, of := range s.Configured {
		within = max(within, of.OpensAt.Within)
	}
	sums, err := g.Store.Admissions(ctx, minuteAt(g.Clock.Now().Add(-within)))
	if err == nil {
		g.weigh(sums)
	}
	return err
}

// duePassed takes what is to be added now, in the order in which all replicas add.
func (g *Gates) duePassed() (due []journal.Admission, leads bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := minuteAt(g.Clock.Now())
	for at, n := range g.passed {
		if g.failing || at.minute < now {
			due = append(due, journal.Admission{Destination: at.destination, Minute: at.minute, Count: n})
			delete(g.passed, at)
		}
	}
	slices.SortFunc(due, func(a, b journal.Admission) int {
		return cmp.Or(cmp.Compare(a.Minute, b.Minute), cmp.Compare(a.Destination, b.Destination))
	})
	g.failing = false
	return due, g.leads
}

// weigh tells the breakers what they have not counted of the sums of the last minutes.
func (g *Gates) weigh(sums []journal.Admission) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.known == nil {
		return
	}
	now := g.Clock.Now()
	for _, a := range sums {
		at, d := minuteOf{a.Destination, a.Minute}, g.registry.Gate(a.Destination, now)
		within := minuteAt(now.Add(-d.Settings.OpensAt.Within))
		if n := a.Count + g.passed[at] - g.weighed[at]; n > 0 && a.Minute >= within {
			d.Apply(destination.Admitted{Count: n}, now)
			g.weighed[at] += n
		}
	}
	maps.DeleteFunc(g.weighed, func(at minuteOf, _ int) bool { return at.minute < minuteAt(now)-journal.AdmissionsKept })
}
