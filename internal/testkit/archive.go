package testkit

import (
	"cmp"
	"context"
	"slices"
	"time"

	"retry-worker/internal/journal"
)

// Head implements journal.Reader.
func (m *Memory) Head(ctx context.Context) (journal.Head, error) {
	return ask(ctx, m, func() journal.Head { return m.head })
}

// Records implements journal.Reader.
func (m *Memory) Records(ctx context.Context, f journal.RecordFilter, after int64, limit int) ([]journal.Entry, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var all []journal.Entry
	until := slices.IndexFunc(m.links, func(l journal.Link) bool { // later records match only if their clock was a day slow
		return !f.Until.IsZero() && !l.At.Before(f.Until.Add(24*time.Hour))
	})
	if until >= 0 { // nor do those count that have the instant of a clock that leapt ahead, and was put right
		until = slices.IndexFunc(m.links, func(l journal.Link) bool { return l.At.After(m.links[until].At) })
	}
	for i := m.behind(after); i < len(m.records) && len(all) < limit; i++ {
		e := m.records[i]
		if until >= 0 && e.Record >= m.links[until].First {
			break
		}
		if !passes(&f, &e) {
			continue
		}
		if err := e.Decode(); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// behind returns the index of the first record after that one.
func (m *Memory) behind(record int64) int {
	i, _ := slices.BinarySearchFunc(m.records, record, func(r journal.Entry, after int64) int { return cmp.Compare(r.Record, after+1) })
	return i
}

// passes reports whether the filter lets a record through. Bounds are compared as instants are stored.
func passes(f *journal.RecordFilter, e *journal.Entry) bool {
	at := time.UnixMilli(journal.Milli(e.At))
	switch {
	case f.Subject != (journal.Subject{}) && e.Subject != f.Subject:
		return false
	case !f.Since.IsZero() && at.Before(f.Since):
		return false
	default:
		return f.Until.IsZero() || at.Before(f.Until)
	}
}

func first[T any](all []T, limit int) []T { return all[:min(len(all), max(limit, 0))] }

// LastRecordBefore implements journal.PurgeStore.
func (m *Memory) LastRecordBefore(ctx context.Context, t time.Time) (int64, error) {
	return ask(ctx, m, func() int64 {
		for i := range m.records {
			if !m.records[i].At.Before(t) {
				return m.records[i].Record - 1
			}
		}
		return m.head.Record
	})
}
