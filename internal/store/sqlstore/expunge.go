package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"retry-worker/internal/journal"
)

// expunges is the condition that a record r is an expunge's.
const expunges = "r.kind IN ('purge', 'erasure')"

// LastRecordBefore implements journal.PurgeStore.
func (s *Store) LastRecordBefore(ctx context.Context, at time.Time) (int64, error) {
	return reading(ctx, &s.Reader, "find the last record before an instant", func(t *tx) (last int64) {
		if !t.one("SELECT record - 1 FROM records WHERE record >= ? AND at >= ? ORDER BY record LIMIT 1",
			[]any{t.reached(at), journal.CeilMilli(at)}, &last) {
			t.one("SELECT record FROM ledger_head WHERE one = 1", nil, &last)
		}
		return last
	})
}

// Expunge implements journal.Expunger.
func (s *Store) Expunge(
	ctx context.Context, of journal.Scope, step func(journal.Head, *journal.Expunging) (*journal.Changes, error),
) error {
	var refused error
	err := s.change(ctx, "expunge records", func(t *tx, head journal.Head) (c *journal.Changes) {
		p := &journal.Expunging{Scope: of, Last: of.Through}
		if of.Subject == (journal.Subject{}) {
			t.old(p)
		} else {
			t.asked(p)
		}
		if t.err == nil {
			c, refused = step(head, p)
		}
		return c
	})
	return cmp.Or(err, refused)
}

// old finds the old records of all subjects, and those without one.
func (t *tx) old(p *journal.Expunging) {
	const first = "NOT EXISTS (SELECT 1 FROM records e WHERE e.subject = r.subject AND e.record < r.record)"
	var keys []int64
	var loose []journal.Entry
	looked := 0
	for scan := range t.rows("SELECT r.record, r.subject, r.kind, r.subject <> 0 AND "+first+", "+expunges+
		" FROM records r WHERE r.record > ? AND r.record <= ? ORDER BY r.record LIMIT ?", p.After, p.Through, p.Limit) {
		var r journal.Entry
		var begins, stays bool
		scan(&r.Record, &r.Key, &r.Kind, &begins, &stays)
		if looked++; looked == p.Limit {
			p.Last = r.Record
		}
		switch {
		case begins:
			keys = append(keys, r.Key)
		case r.Key == 0 && !stays:
			loose = append(loose, r)
		}
	}
	slices.Sort(keys)
	for i := range loose {
		p.Loose = append(p.Loose, t.loose(&loose[i], p.Through)...)
	}
	for _, key := range keys {
		p.Subjects = append(p.Subjects, t.expungeable(key))
	}
}

// loose reads a record without a subject. Those of a bulk run are read together, once its start is found and its end is
// old, too.
func (t *tx) loose(r *journal.Entry, through int64) []journal.Entry {
	if r.Kind != journal.BulkEntry {
		return t.signed("WHERE r.record = ?", r.Record)
	}
	var id string
	var end int64
	if !t.one("SELECT id, CAST(body ->> 'ended' AS BIGINT) FROM bulk_runs WHERE CAST(body ->> 'begun' AS BIGINT) = ? "+
		"AND CAST(body ->> 'ended' AS BIGINT) <= ?", []any{r.Record, through}, &id, &end) {
		return nil
	}
	return t.signed("WHERE r.subject = 0 AND r.kind = 'bulk' AND r.record >= ? AND r.record <= ? "+
		"AND r.body ->> 'bulkRun' = ? ORDER BY r.record", r.Record, end, id)
}

// mostStates is how many records of a destination one transaction takes. Over the years it has very many, and all that
// counts of them is its latest state.
const mostStates = 200

// expungeable returns the subject with that key, and of a destination its first mostStates records.
func (t *tx) expungeable(key int64) journal.Expungeable {
	of := journal.Expungeable{Key: key}
	of.Records = t.signed("WHERE r.subject = ? ORDER BY r.record LIMIT ?", key, mostStates)
	if len(of.Records) == mostStates && of.Records[0].Subject.Policy != "" {
		of.Records = t.signed("WHERE r.subject = ? ORDER BY r.record", key)
	}
	t.one("SELECT coalesce(max(r.id), '') FROM dead_letters d JOIN bulk_items i ON i.record = d.record "+
		"JOIN bulk_runs r ON r.id = i.run WHERE d.subject = ? AND r.state IN "+unfinished, []any{key}, &of.Run)
	if len(of.Records) > 0 {
		of.Subject = of.Records[0].Subject
	}
	return of
}

// asked finds everything about the subject that is to be erased.
func (t *tx) asked(p *journal.Expunging) {
	key := t.keyOf(p.Subject)
	if key == 0 {
		return
	}
	s := t.expungeable(key)
	s.Subject = p.Subject // set even if it has no records
	s.Waiting = t.messages("WHERE subject = ? ORDER BY sequence", key)
	p.Subjects = []journal.Expungeable{s}
	p.Erasures = t.entries("WHERE " + expunges + " AND r.kind = 'erasure' ORDER BY r.record")
	p.Failures = counted[string](t,
		"SELECT cause, n FROM sums WHERE slot = 0 AND name = '"+string(journal.SumCauseFailures)+"'")
}

// expunge adds the statements that delete what e says.
func (t *tx) expunge(e *journal.Expunged) {
	for _, r := range e.Records {
		t.add("DELETE FROM records WHERE record >= ? AND record <= ?", r.First, r.Last)
		t.add("DELETE FROM answered WHERE first >= ? AND first <= ? AND last <= ?", r.First, r.Last, r.Last)
		t.add("DELETE FROM dead_letters WHERE record >= ? AND record <= ?", r.First, r.Last)
		t.add("DELETE FROM bulk_items WHERE record >= ? AND record <= ?", r.First, r.Last)
	}
	for _, key := range e.Subjects {
		t.add("DELETE FROM subjects WHERE key = ?", key)
	}
	for _, run := range e.Runs {
		t.add("DELETE FROM bulk_items WHERE run = ?", run)
		t.add("DELETE FROM bulk_runs WHERE id = ?", run)
	}
	for _, id := range e.Causes {
		t.add("UPDATE fingerprints SET pattern = '' WHERE id = ?", id)
	}
}
