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
	if err := m.readable(ctx); err != nil {
		return journal.Head{}, err
	}
	return m.End(), nil
}

// Links implements journal.Archive.
func (m *Memory) Links(ctx context.Context, after int64, limit int) ([]journal.Link, error) {
	if err := m.readable(ctx); err != nil {
		return nil, err
	}
	all := slices.DeleteFunc(m.Ledger(), func(l journal.Link) bool { return l.Number <= after })
	return first(all, limit), nil
}

// Records implements journal.Archive.
func (m *Memory) Records(ctx context.Context, f journal.RecordFilter, after int64, limit int) ([]journal.Record, error) {
	if err := m.readable(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := slices.DeleteFunc(m.records(), func(r journal.Record) bool { return number(&r) <= after || !passes(&f, &r) })
	return first(all, limit), nil
}

// records are all of them, in order.
func (m *Memory) records() []journal.Record {
	var all []journal.Record
	for _, s := range m.subjects {
		if s == nil {
			continue
		}
		for _, a := range s.attempts {
			all = append(all, journal.Record{Subject: s.name, Attempt: &a})
		}
	}
	for _, e := range m.entries {
		all = append(all, journal.Record{Subject: e.Subject, Entry: &e})
	}
	slices.SortFunc(all, func(a, b journal.Record) int { return cmp.Compare(number(&a), number(&b)) })
	return all
}

func number(r *journal.Record) int64 {
	if r.Attempt != nil {
		return r.Attempt.Record
	}
	return r.Entry.Record
}

// passes tells whether the filter lets r through. Bounds are compared as instants are stored.
func passes(f *journal.RecordFilter, r *journal.Record) bool {
	var at time.Time
	if r.Attempt != nil {
		at = r.Attempt.Decision.AnalysedAt
	} else {
		at = r.Entry.At
	}
	at = time.UnixMilli(journal.Milli(at))
	switch {
	case f.Subject != (journal.Subject{}) && r.Subject != f.Subject:
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
	if err := m.readable(ctx); err != nil {
		return 0, err
	}
	last := int64(0)
	for _, l := range m.Ledger() {
		if !l.At.Before(t) {
			break
		}
		last = l.First + int64(len(l.Digests)) - 1
	}
	return last, nil
}

// Purge implements journal.Purger, straight from what journal.Purger says: a subject goes with its last record;
// before that, the episodes before the first that still has an attempt, and the dead letters of purged records
// that no episode names.
func (m *Memory) Purge(ctx context.Context, through int64, limit int) (int, error) {
	if err := m.readable(ctx); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	victims := first(slices.DeleteFunc(m.records(), func(r journal.Record) bool { return number(&r) > through }), limit)
	if len(victims) == 0 {
		return 0, nil
	}
	m.purged = number(&victims[len(victims)-1])
	m.entries = slices.DeleteFunc(m.entries, func(e journal.Entry) bool { return e.Record <= m.purged })
	for i := range victims {
		if key, s := m.find(victims[i].Subject); s != nil {
			m.forget(key, s)
		}
	}
	m.forgetRuns()
	return len(victims), nil
}

// forget takes what is purged from a subject, of which a record was.
func (m *Memory) forget(key int64, s *subject) {
	s.attempts = slices.DeleteFunc(s.attempts, func(a journal.Attempt) bool { return a.Record <= m.purged })
	if len(s.attempts) == 0 && !slices.ContainsFunc(m.entries, func(e journal.Entry) bool { return e.Subject == s.name }) {
		m.uncount(s, s.deadLetters)
		m.subjects[key-1] = nil
		delete(m.keys, s.name)
		return
	}
	if len(s.attempts) > 0 {
		earliest := slices.MinFunc(s.attempts, func(a, b journal.Attempt) int { return cmp.Compare(a.Episode, b.Episode) }).Episode
		s.episodes = slices.DeleteFunc(s.episodes, func(e journal.Episode) bool { return e.Number < earliest })
	}
	gone := func(d journal.DeadLetter) bool {
		named := slices.ContainsFunc(s.episodes, func(e journal.Episode) bool { return e.DeadLetter == d.ID })
		return d.Record <= m.purged && !named
	}
	for _, d := range s.deadLetters {
		if gone(d) {
			m.uncount(s, []journal.DeadLetter{d})
			delete(s.causes, d.ID)
		}
	}
	s.deadLetters = slices.DeleteFunc(s.deadLetters, gone)
}

// uncount lowers the running totals by dead letters that are purged.
func (m *Memory) uncount(s *subject, all []journal.DeadLetter) {
	for _, d := range all {
		total := journal.Figure{Policy: s.name.Policy, Name: journal.FigureDeadLetters + journal.FigureName(d.State)}
		if _, known := m.figures[total]; known {
			m.figures[total]--
		}
	}
}
