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

// passed counts the claims that passed while their destination was up. The keys' Count is 0.
type passed map[journal.Admission]int

func minuteAt(now time.Time) int64 { return now.Unix() / 60 }

// pass counts a claim that this replica let through. If it leads, its breaker has counted the claim already.
func (g *Gates) pass(d *destination.Gate) {
	at := journal.Admission{Destination: d.Name, Minute: minuteAt(g.Clock.Now())}
	if g.passed[at]++; g.leads {
		g.weighed[at]++
	}
}

// addUp adds this replica's passed claims to the stored admissions: each minute once it is over, or at once if a
// destination fails. The leader then counts the others' claims in its breakers.
func (g *Gates) addUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	due, leads := g.duePassed()
	if len(due) > 0 {
		if err := g.Store.AddAdmissions(ctx, due); err != nil {
			return err // due is lost: breakers open a little sooner for that minute
		}
	}
	if !leads {
		return nil
	}
	all := g.Settings().Destinations
	within := all.Others.OpensAt.Within
	for _, of := range all.Named {
		within = max(within, of.OpensAt.Within)
	}
	sums, err := g.Store.Admissions(ctx, minuteAt(g.Clock.Now().Add(-within)))
	if err == nil {
		g.weigh(sums)
	}
	return err
}

// duePassed takes the counts to add now, in an order that is the same in all replicas, and forgets jobs that left long
// ago.
func (g *Gates) duePassed() (due []journal.Admission, leads bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Clock.Now()
	maps.DeleteFunc(g.left, func(_ int64, at time.Time) bool { return now.Sub(at) >= leaversFor })
	for at, n := range g.passed {
		if g.failing || at.Minute < minuteAt(now) {
			delete(g.passed, at)
			at.Count = n
			due = append(due, at)
		}
	}
	slices.SortFunc(due, func(a, b journal.Admission) int {
		return cmp.Or(cmp.Compare(a.Minute, b.Minute), cmp.Compare(a.Destination, b.Destination))
	})
	g.failing = false
	return due, g.leads
}

// weigh counts the stored admissions of the last minutes that the breakers have not counted yet.
func (g *Gates) weigh(sums []journal.Admission) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.Clock.Now()
	for _, a := range sums {
		count, d := a.Count, g.registry.Gate(a.Destination, now)
		a.Count = 0
		within := minuteAt(now.Add(-d.Settings.OpensAt.Within))
		if n := count + g.passed[a] - g.weighed[a]; n > 0 && a.Minute >= within {
			d.Apply(destination.Admitted{Count: n}, now)
			g.weighed[a] += n
		}
	}
	maps.DeleteFunc(g.weighed, func(at journal.Admission, _ int) bool { return at.Minute < minuteAt(now)-journal.AdmissionsKept })
}
