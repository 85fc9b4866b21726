package sqlstore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/journal"
)

// expunges is the condition that a record r is an expunge's.
const expunges = "r.kind IN ('purge', 'erasure')"

// LastRecordBefore implements journal.PurgeStore.
func (s *Store) LastRecordBefore(ctx context.Context, t time.Time) (int64, error) {
	return reading(ctx, &s.Reader, "find the last record before an instant", func(s *snapshot) (last int64, err error) {
		reached, err := s.reached(t)
		if err != nil {
			return 0, err
		}
		found, err := s.one("SELECT record - 1 FROM records WHERE record >= ? AND at >= ? ORDER BY record LIMIT 1",
			[]any{reached, journal.CeilMilli(t)}, &last)
		if err == nil && !found {
			_, err = s.one("SELECT record FROM ledger_head WHERE one = 1", nil, &last)
		}
		return last, err
	})
}

// Expunge implements journal.Expunger.
func (s *Store) Expunge(
	ctx context.Context, of journal.Scope, step func(journal.Head, *journal.Expunging) (*journal.Changes, error),
) error {
	var refused error
	err := s.change(ctx, "expunge records", func(w *writer, head journal.Head) (c *journal.Changes, err error) {
		p := &journal.Expunging{Scope: of, Last: of.Through}
		if of.Subject == (journal.Subject{}) {
			err = w.old(p)
		} else {
			err = w.asked(p)
		}
		if err != nil {
			return nil, err
		}
		c, refused = step(head, p)
		return c, nil
	})
	return cmp.Or(err, refused)
}

// old finds the old records of all subjects, and those without one.
func (w *writer) old(p *journal.Expunging) (err error) {
	const first = "NOT EXISTS (SELECT 1 FROM records e WHERE e.subject = r.subject AND e.record < r.record)"
	var keys []int64
	looked := 0
	err = w.each("SELECT r.record, r.subject, r.kind, r.subject <> 0 AND "+first+", "+expunges+
		" FROM records r WHERE r.record > ? AND r.record <= ? ORDER BY r.record LIMIT ?", func(scan scanner) error {
		var record, key int64
		var kind journal.EntryKind
		var begins, stays bool
		err := scan(&record, &key, &kind, &begins, &stays)
		if looked++; looked == p.Limit {
			p.Last = record
		}
		switch {
		case begins:
			keys = append(keys, key)
		case key == 0 && !stays:
			p.Loose = append(p.Loose, journal.Entry{Record: record, Kind: kind})
		}
		return err
	}, p.After, p.Through, p.Limit)
	if err == nil {
		p.Loose, err = w.loose(p.Loose, p.Through)
	}
	if err == nil {
		p.Subjects, err = w.expungeable(keys...)
	}
	return err
}

// loose reads the found records without a subject. Those of a bulk run are read together, once its start is found and
// its end is old, too.
func (w *writer) loose(found []journal.Entry, through int64) (all []journal.Entry, err error) {
	for i := range found {
		clause, args := "WHERE r.record = ?", []any{found[i].Record}
		if found[i].Kind == journal.BulkEntry {
			var id string
			var end int64
			over, err := w.one("SELECT id, CAST(body ->> 'ended' AS BIGINT) FROM bulk_runs WHERE CAST(body ->> 'begun' AS BIGINT) = ? "+
				"AND CAST(body ->> 'ended' AS BIGINT) <= ?", []any{found[i].Record, through}, &id, &end)
			if err != nil {
				return nil, err
			}
			if !over {
				continue
			}
			clause = "WHERE r.subject = 0 AND r.kind = 'bulk' AND r.record >= ? AND r.record <= ? AND r.body ->> 'bulkRun' = ? ORDER BY r.record"
			args = append(args, end, id)
		}
		records, err := w.signed(clause, args...)
		if err != nil {
			return nil, err
		}
		all = append(all, records...)
	}
	return all, nil
}

// mostStates is how many records of a destination one transaction takes. Over the years it has very many, and all that
// counts of them is its latest state.
const mostStates = 200

// expungeable returns the subjects with those keys, and of a destination its first mostStates records.
func (w *writer) expungeable(keys ...int64) (all []journal.Expungeable, err error) {
	slices.Sort(keys)
	for _, key := range keys {
		of := journal.Expungeable{Key: key}
		of.Records, err = w.signed("WHERE r.subject = ? ORDER BY r.record LIMIT ?", key, mostStates)
		if len(of.Records) == mostStates && of.Records[0].Subject.Policy != "" {
			of.Records, err = w.signed("WHERE r.subject = ? ORDER BY r.record", key)
		}
		if err == nil {
			_, err = w.one("SELECT coalesce(max(r.id), '') FROM dead_letters d JOIN bulk_items i ON i.record = d.record "+
				"JOIN bulk_runs r ON r.id = i.run WHERE d.subject = ? AND r.state IN "+unfinished, []any{key}, &of.Run)
		}
		if err != nil {
			return nil, err
		}
		if len(of.Records) > 0 {
			of.Subject = of.Records[0].Subject
		}
		all = append(all, of)
	}
	return all, nil
}

// asked finds everything about the subject that is to be erased.
func (w *writer) asked(p *journal.Expunging) error {
	key, err := w.keyOf(p.Subject)
	if err != nil || key == 0 {
		return err
	}
	if p.Subjects, err = w.expungeable(key); err != nil {
		return err
	}
	s := &p.Subjects[0]
	s.Subject = p.Subject // set even if it has no records
	if s.Waiting, err = w.messages("WHERE subject = ? ORDER BY sequence", key); err != nil {
		return err
	}
	if p.Erasures, err = w.entries("WHERE " + expunges + " AND r.kind = 'erasure' ORDER BY r.record"); err != nil {
		return err
	}
	p.Failures, err = counted[string](&w.snapshot,
		"SELECT cause, n FROM sums WHERE slot = 0 AND name = '"+string(journal.SumCauseFailures)+"'")
	return err
}

// signed returns records, each with Forged set unless it has the digest in the ledger.
func (s *snapshot) signed(clause string, args ...any) ([]journal.Entry, error) {
	query := "SELECT " + entryColumns + ", " + digestSQL("r.record", "first", "digests") + fromEntries + clause
	return collect(s, query, args, func(scan scanner, r *journal.Entry) error {
		var digest []byte
		err := scan(append(ofEntry(r), &digest)...)
		r.Forged = string(digest) != string(new(r.Digest())[:])
		return err
	})
}

// digestSQL returns the SQL for the digest of a record or message with that number, from the links that begin at first
// and have digests; NULL if none has it.
func digestSQL(number, first, digests string) string {
	return strings.NewReplacer("NUMBER", number, "FIRST", "l."+first, "DIGESTS", "l."+digests).Replace(`(SELECT
		CASE WHEN NUMBER < FIRST + length(DIGESTS) / 32 THEN substr(DIGESTS, CAST(1 + 32 * (NUMBER - FIRST) AS INTEGER), 32) END
		FROM ledger l WHERE FIRST <= NUMBER ORDER BY FIRST DESC, l.number DESC LIMIT 1)`)
}

// expunge deletes what e says.
func (b *batch) expunge(e *journal.Expunged) {
	if e == nil {
		return
	}
	for _, r := range e.Records {
		b.add("DELETE FROM records WHERE record >= ? AND record <= ?", r.First, r.Last)
		b.add("DELETE FROM answered WHERE first >= ? AND first <= ? AND last <= ?", r.First, r.Last, r.Last)
		b.add("DELETE FROM dead_letters WHERE record >= ? AND record <= ?", r.First, r.Last)
		b.add("DELETE FROM bulk_items WHERE record >= ? AND record <= ?", r.First, r.Last)
	}
	for _, key := range e.Subjects {
		b.add("DELETE FROM subjects WHERE key = ?", key)
	}
	for _, run := range e.Runs {
		b.add("DELETE FROM bulk_items WHERE run = ?", run)
		b.add("DELETE FROM bulk_runs WHERE id = ?", run)
	}
	for _, id := range e.Causes {
		b.add("UPDATE fingerprints SET pattern = '' WHERE id = ?", id)
	}
}
