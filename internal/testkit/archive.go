package testkit

import (
	"cmp"
	"context"
	"slices"
	"time"

	"retry-worker/internal/journal"
)

// Head implements journal.Archive.
func (m *Memory) Head(ctx context.Context) (journal.Head, error) {
	return ask(ctx, m, func() journal.Head { return m.head })
}

// Records implements journal.Archive.
func (m *Memory) Records(ctx context.Context, f journal.RecordFilter, after int64, limit int) ([]journal.Record, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var all []journal.Record
	until := slices.IndexFunc(m.links, func(l journal.Link) bool { // what follows is of a clock too far behind
		return !f.Until.IsZero() && !l.At.Before(f.Until.Add(24*time.Hour))
	})
	for i := m.behind(after); i < len(m.records) && len(all) < limit; i++ {
		e := m.records[i].Entry
		if until >= 0 && e.Record >= m.links[until].First {
			break
		}
		if !passes(&f, &e) {
			continue
		}
		r, err := e.Decode()
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, nil
}

// behind is the place of the first record behind one.
func (m *Memory) behind(record int64) int {
	i, _ := slices.BinarySearchFunc(m.records, record, func(r journal.KeyedRecord, after int64) int { return cmp.Compare(r.Entry.Record, after+1) })
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

// LastRecordBefore implements journal.Purger.
func (m *Memory) LastRecordBefore(ctx context.Context, t time.Time) (int64, error) {
	return ask(ctx, m, func() int64 {
		for i := range m.records {
			if !m.records[i].Entry.At.Before(t) {
				return m.records[i].Entry.Record - 1
			}
		}
		return m.head.Record
	})
}

// lastPurge is the record of the last purge; nil where there was none.
func (m *Memory) lastPurge() *journal.Entry {
	for i := range slices.Backward(m.records) {
		if m.records[i].Entry.Kind == journal.PurgeEntry {
			return new(m.records[i].Entry)
		}
	}
	return nil
}

// Purge implements journal.Purger.
func (m *Memory) Purge(ctx context.Context, through int64, limit int, step func(journal.Head, *journal.Purging) (*journal.Changes, error)) (int, error) {
	if err := m.enter(ctx); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	p := m.purging(through, limit)
	c, err := step(m.head, p)
	if err != nil || c == nil {
		return 0, err
	}
	m.keep(c)
	return len(p.Records), nil
}

// PurgeAt returns a step of a purge at that instant, for Purger.Purge.
func PurgeAt(at time.Time) func(journal.Head, *journal.Purging) (*journal.Changes, error) {
	return func(head journal.Head, p *journal.Purging) (*journal.Changes, error) {
		return p.Step(head, at, false, nil)
	}
}

func (m *Memory) purging(through int64, limit int) *journal.Purging {
	p := &journal.Purging{Base: m.lastPurge(), Stays: map[int64]journal.SubjectState{}, Ended: map[string]int64{},
		Erasures: m.erasures()}
	cut := int64(0)
	for _, r := range m.records {
		if r.Entry.Record <= through && len(p.Records) < limit {
			p.Records, cut = append(p.Records, r), r.Entry.Record
			p.Digests = append(p.Digests, m.digest(cut))
		} else if s := m.subjects[r.Key]; s != nil {
			p.Stays[r.Key] = s.State
		}
	}
	for _, d := range m.letters {
		if d.DeadLetter.Record <= cut {
			p.Letters = append(p.Letters, *d)
		}
	}
	for id, r := range m.runs {
		if r.State.Ended() {
			p.Ended[id] = r.Begun
		}
	}
	return p
}

// digest of a record, as the ledger has it.
func (m *Memory) digest(record int64) journal.Digest {
	for i := range m.links {
		if l := &m.links[i]; record >= l.First && record < l.First+int64(len(l.Digests)) {
			return l.Digests[record-l.First]
		}
	}
	return journal.Digest{}
}

// forget takes what is purged.
func (m *Memory) forget(f *journal.Forgotten) {
	m.records = slices.DeleteFunc(m.records, func(r journal.KeyedRecord) bool { return r.Entry.Record <= f.Through })
	for _, key := range f.Subjects {
		delete(m.keys, m.subjects[key].Subject)
		delete(m.subjects, key)
	}
	for _, record := range f.DeadLetters {
		delete(m.letters, record)
	}
	for _, id := range f.Runs {
		delete(m.runs, id)
	}
}
