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

// Rebuild implements audit.Rebuilder.
func (s *Store) Rebuild(ctx context.Context, do func(journal.Rebuilding) (*journal.Changes, error)) error {
	return s.write(ctx, "rebuild the journal", func(t *tx) {
		t.ask(t.Long)
		if t.mend(); t.err != nil {
			return
		}
		c, err := do(moment{t})
		t.fail(err)
		if head := t.head(""); t.err == nil {
			t.save(head, c)
		}
	})
}

// mend makes the ledger's head anew from its last link, and locks it; the row stays, as others wait for it. Dead
// letters go back to the subjects of their records.
func (t *tx) mend() {
	var one int64
	t.one("SELECT one FROM ledger_head WHERE one = 1"+t.Lock, nil, &one)
	key := t.identityKey()
	start := key.Start().Hash
	t.add(`INSERT INTO ledger_head (one, link, record, subject, message, hash, at, probed_at)
		SELECT 1, number, first - 1 + length(digests) / 32, (SELECT coalesce(max(key), 0) FROM subjects),
			message - 1 + length(messages) / 32, hash, at, 0
		FROM ledger WHERE number = (SELECT max(number) FROM ledger)
		UNION ALL SELECT 1, 0, 0, 0, 0, ?, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM ledger)
		ON CONFLICT (one) DO UPDATE SET link = excluded.link, record = excluded.record, subject = excluded.subject,
			message = excluded.message, hash = excluded.hash, at = excluded.at`, start[:])
	t.add("UPDATE dead_letters SET subject = r.subject FROM records r " +
		"WHERE r.record = dead_letters.record AND r.subject <> dead_letters.subject")
	t.flush()
}

// The methods below, and those in read.go, implement journal.Rebuilding.

func (m moment) ReplaceSubjects(after int64, p *journal.SubjectPage) error {
	m.add("DELETE FROM dead_letters WHERE subject > ? AND subject <= ?", after, p.Through)
	m.add("DELETE FROM subjects WHERE key > ? AND key <= ?", after, p.Through)
	m.upsert(journal.SubjectsTable, p.Subjects, "")
	m.upsert(journal.DeadLettersTable, p.Letters, "")
	return m.flush()
}

func (m moment) Replace(t *journal.Table, rows []journal.Row) error {
	m.add("DELETE FROM " + t.Name)
	m.upsert(t, rows, "")
	return m.flush()
}

func (m moment) ReplaceAnswered(runs []journal.Run) error {
	m.add("DELETE FROM answered")
	m.answered(runs)
	return m.flush()
}

func (m moment) RemoveMessage(sequence int64) error {
	m.add("DELETE FROM outbox WHERE sequence = ?", sequence)
	return m.flush()
}
