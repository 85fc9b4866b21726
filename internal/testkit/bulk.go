package testkit

import (
	"context"
	"maps"
	"slices"
	"testing"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// run is a bulk run as Memory keeps it.
type run struct {
	journal.BulkRun
	items []journal.BulkItem
}

// told returns the run as a store returns it.
func (r *run) told() journal.BulkRun {
	all := r.BulkRun
	all.Counts = map[journal.BulkOutcome]int64{}
	for _, i := range r.items {
		all.Counts[i.Outcome]++
	}
	return all
}

// keepRuns saves new and changed bulk runs, and the outcomes of their items.
func (m *Memory) keepRuns(c *journal.Changes) {
	for _, n := range c.Runs {
		n.Counts = nil
		if old := m.runs[n.ID]; old != nil {
			old.BulkRun = n
		} else {
			m.runs[n.ID] = &run{BulkRun: n}
		}
	}
	for _, i := range c.NewItems {
		if m.letters[i.Record] != nil {
			m.runs[i.Run].items = append(m.runs[i.Run].items, i)
		}
	}
	for _, change := range c.Items {
		r := m.runs[change.Run]
		for i := 0; r != nil && i < len(r.items); i++ {
			if n := &r.items[i]; n.Record == change.Record {
				n.Became(&change)
			}
		}
	}
}

// named returns the item with its dead letter's id and subject.
func (m *Memory) named(i journal.BulkItem) journal.BulkItem {
	d := m.letters[i.Record]
	i.DeadLetter, i.Subject = d.ID, d.Subject
	return i
}

// Open returns, in order, the records of the open dead letters that match the filter, up to one.
func Open(t testing.TB, s deadletter.BulkStore, f journal.DeadLetterFilter, through int64) (records []int64) {
	t.Helper()
	items, _, err := s.DeadLettersOpen(t.Context(), f, through, journal.MostBulkItems)
	Must(t, err)
	for i := range items {
		records = append(records, items[i].Record)
	}
	return records
}

// chosen returns the open dead letters with a record of at most through that match the filter, the most urgent first.
func (m *Memory) chosen(f journal.DeadLetterFilter, through int64) []deadletter.Item {
	f.State = ""
	p, _ := deadletter.NewQuery(f, "", 1) // only a cursor can make it fail
	all := slices.DeleteFunc(m.passing(p), func(i deadletter.Item) bool { return i.Record > through })
	sortItems(all, p)
	return all
}

// DeadLettersOpen implements deadletter.BulkStore.
func (m *Memory) DeadLettersOpen(ctx context.Context, f journal.DeadLetterFilter, through int64, limit int) ([]deadletter.Item, int64, error) {
	if err := m.enter(ctx); err != nil {
		return nil, 0, err
	}
	defer m.mu.Unlock()
	if through == 0 {
		through = m.head.Record
	}
	f.Sort = deadletter.ByAge
	all := first(m.chosen(f, through), limit)
	for i := range all {
		all[i] = deadletter.Item{DeadLetter: all[i].DeadLetter}
	}
	return all, through, nil
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

// ofRuns returns the wanted runs in the order of their ids.
func (m *Memory) ofRuns(wanted func(r *run) bool) (all []journal.BulkRun) {
	for _, id := range slices.Sorted(maps.Keys(m.runs)) {
		if r := m.runs[id]; wanted(r) {
			all = append(all, r.told())
		}
	}
	return all
}

// BulkRuns implements deadletter.BulkStore.
func (m *Memory) BulkRuns(ctx context.Context, after string, limit int) ([]journal.BulkRun, error) {
	return ask(ctx, m, func() []journal.BulkRun {
		all := m.ofRuns(func(r *run) bool { return after == "" || r.ID < after })
		slices.Reverse(all)
		return first(all, limit)
	})
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
			for _, i := range r.items {
				if i.Number > after && (outcome == "" || i.Outcome == outcome) {
					all = append(all, m.named(i))
				}
			}
		}
		return first(all, limit)
	})
}
