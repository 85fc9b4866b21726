package testkit

import (
	"context"
	"maps"
	"slices"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// run is everything that is kept of a bulk run.
type run struct {
	journal.BulkRun
	items []journal.BulkItem
}

// told is the run as a store tells it.
func (r *run) told() journal.BulkRun {
	all := r.BulkRun
	all.Counts, all.Total = map[journal.BulkOutcome]int64{}, int64(len(r.items))
	for _, i := range r.items {
		all.Counts[i.Outcome]++
	}
	return all
}

// keepRuns saves bulk runs that are new or changed, and what became of their dead letters.
func (m *Memory) keepRuns(c *journal.Changes) {
	for _, n := range c.Runs {
		n.Total, n.Counts = 0, nil
		if old := m.runs[n.ID]; old != nil {
			old.BulkRun = n
		} else {
			m.runs[n.ID] = &run{BulkRun: n}
		}
	}
	for _, i := range c.NewItems {
		m.runs[i.Run].items = append(m.runs[i.Run].items, i.Item)
	}
	for _, change := range c.Items {
		r := m.runs[change.Run]
		for i := 0; r != nil && i < len(r.items); i++ {
			if n := &r.items[i]; n.Letter == change.Letter {
				change.Apply(n)
			}
		}
	}
}

// chosen are the open dead letters with a record of at most through that the filter lets through, the most urgent first.
func (m *Memory) chosen(f journal.DeadLetterFilter, through int64) []deadletter.Item {
	all := m.passing(deadletter.OpenQuery(f, through))
	sortItems(all, deadletter.ByDeadline)
	return all
}

// busy reports whether a run that has not ended has planned the dead letter.
func (m *Memory) busy(letter int64) bool {
	for _, r := range m.runs {
		if !r.State.Ended() && slices.ContainsFunc(r.items, func(i journal.BulkItem) bool {
			return i.Letter == letter && i.Outcome == journal.BulkPlanned
		}) {
			return true
		}
	}
	return false
}

// DeadLetterTallies implements deadletter.BulkStore.
func (m *Memory) DeadLetterTallies(ctx context.Context, f journal.DeadLetterFilter, through int64, now time.Time) ([]deadletter.Tally, int64, error) {
	if err := m.enter(ctx); err != nil {
		return nil, 0, err
	}
	defer m.mu.Unlock()
	if through == 0 {
		through = m.head.Record
	}
	all := m.chosen(f, through)
	sums := deadletter.Sums{}
	for i := range all {
		d := &all[i]
		sums.Merge(deadletter.Tally{Policy: d.Subject.Policy, Team: d.Team, Reason: d.Reason,
			AtLimit: d.AtLimit(), Late: d.Due() <= journal.Milli(now), Waits: d.Waits(), Gone: d.Delivery == journal.DeliveryNobody,
			Recent: journal.Milli(d.CreatedAt) >= journal.CeilMilli(now.Add(-deadletter.ExpectedFor)), Busy: m.busy(d.Record),
			N: 1, Cents: d.Cents, Oldest: d.CreatedAt, Newest: d.CreatedAt, Sum: d.Record})
	}
	return sums.Tallies(), through, nil
}

// BulkRun implements deadletter.BulkStore.
func (m *Memory) BulkRun(ctx context.Context, id string) (journal.BulkRun, bool, error) {
	if err := m.enter(ctx); err != nil {
		return journal.BulkRun{}, false, err
	}
	defer m.mu.Unlock()
	if r := m.runs[id]; r != nil {
		return r.told(), true, nil
	}
	return journal.BulkRun{}, false, nil
}

// ofRuns are the runs that are wanted, in the order of their ids.
func (m *Memory) ofRuns(wanted func(r *run) bool) (all []journal.BulkRun) {
	for _, id := range slices.Sorted(maps.Keys(m.runs)) {
		if r := m.runs[id]; wanted(r) {
			all = append(all, r.told())
		}
	}
	return all
}

// BulkRuns implements deadletter.BulkStore.
func (m *Memory) BulkRuns(ctx context.Context, cursor string, limit int) ([]journal.BulkRun, string, error) {
	after, err := deadletter.AfterRun(cursor)
	if err == nil {
		err = m.enter(ctx)
	}
	if err != nil {
		return nil, "", err
	}
	defer m.mu.Unlock()
	all := m.ofRuns(func(r *run) bool { return after == "" || r.ID < after })
	slices.Reverse(all)
	all, next := deadletter.RunPage(all, min(max(limit, 1), deadletter.MostItems))
	return all, next, nil
}

// ActiveBulkRuns implements deadletter.BulkStore.
func (m *Memory) ActiveBulkRuns(ctx context.Context) ([]journal.BulkRun, error) {
	return ask(ctx, m, func() []journal.BulkRun {
		return m.ofRuns(func(r *run) bool { return !r.State.Ended() })
	})
}

// BulkItems implements deadletter.BulkStore.
func (m *Memory) BulkItems(ctx context.Context, id string, outcome journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error) {
	return ask(ctx, m, func() []journal.BulkItem {
		var all []journal.BulkItem
		if r := m.runs[id]; r != nil {
			all = slices.DeleteFunc(slices.Clone(r.items), func(i journal.BulkItem) bool {
				return i.Number <= after || outcome != "" && i.Outcome != outcome
			})
		}
		all = first(all, limit)
		for i := range all {
			m.tell(&all[i])
		}
		return all
	})
}

// tell names an item's dead letter, where that is there.
func (m *Memory) tell(i *journal.BulkItem) {
	if d := m.letters[i.Letter]; d != nil {
		i.DeadLetter, i.Subject = d.DeadLetter.ID, d.Subject
	}
}

// GatherBulkItems implements deadletter.BulkStore.
func (m *Memory) GatherBulkItems(ctx context.Context, id string, limit int, step func(journal.Head, *journal.Gathering) *journal.Changes) (bool, error) {
	return ask(ctx, m, func() bool {
		r := m.runs[id]
		if r == nil || r.State.Ended() || !r.StartedAt.IsZero() {
			return true
		}
		all := slices.DeleteFunc(m.chosen(r.Filter, r.Through), func(d deadletter.Item) bool {
			at := d.Place()
			return r.Gathered != (journal.Place{}) && deadletter.Compare(deadletter.ByDeadline, &at, &r.Gathered) <= 0
		})
		limit = min(max(limit, 1), 1000)
		told := r.told()
		g := &journal.Gathering{Run: &told, Through: r.Gathered, Last: len(all) < limit}
		for _, d := range first(all, limit) {
			g.Found = append(g.Found, journal.Candidate{Record: d.Record, Busy: m.busy(d.Record)})
		}
		if !g.Last {
			g.Through = all[limit-1].Place()
		}
		m.keep(step(m.head, g))
		return g.Last
	})
}
