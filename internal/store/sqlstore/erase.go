package sqlstore

import (
	"context"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// erasures are all there are.
const erasures = "WHERE r.kind = 'erasure' ORDER BY r.record"

// Erase implements journal.Eraser.
func (s *Store) Erase(
	ctx context.Context, of journal.Subject, step func(journal.Head, *journal.Erasing) *journal.Changes,
) error {
	return s.change(ctx, "erase a subject", func(w *writer, head journal.Head) (*journal.Changes, error) {
		p, err := w.erasing(of)
		if err != nil {
			return nil, err
		}
		return step(head, p), nil
	})
}

// erasing is what there is of a subject.
func (w *writer) erasing(of journal.Subject) (p *journal.Erasing, err error) {
	p = &journal.Erasing{}
	if p.Key, err = w.keyOf(of); err != nil || p.Key == 0 {
		return p, err
	}
	for _, read := range []func() error{
		func() error { p.Base, err = w.lastPurge(); return err },
		func() error { p.Erasures, err = w.entries(erasures); return err },
		func() error { p.Records, err = w.entries("WHERE r.subject = ? ORDER BY r.record", p.Key); return err },
		func() error { p.RecordDigests, err = w.signed(p.Records); return err },
		func() error {
			p.Others, err = w.entries("WHERE r.subject = 0 AND r.kind IN ('bulk', 'purge') ORDER BY r.record")
			return err
		},
		func() error { p.OthersDigests, err = w.signed(p.Others); return err },
		func() error { p.Letters, err = w.keyedLetters("WHERE d.subject = ?", p.Key); return err },
		func() error { p.Runs, err = w.bulkRuns(""); return err },
		func() error { p.Alone, err = w.alone(p, of); return err },
		func() error { p.Failures, err = w.failures(); return err },
		func() error { p.Items, err = w.about(p.Key); return err },
		func() error { p.Waiting, err = w.keyed(p.MessageKeys(of)); return err },
	} {
		if err == nil {
			err = read()
		}
	}
	return p, err
}

// alone are the bulk runs whose filter finds the subject and no other.
func (w *writer) alone(p *journal.Erasing, of journal.Subject) (map[string]bool, error) {
	all := map[string]bool{}
	only := func(run, table string, others where) error {
		var one int64
		shared, err := w.one("SELECT 1 FROM "+table+others.String()+" LIMIT 1", others.args, &one)
		all[run] = all[run] || !shared
		return err
	}
	for i := range p.Runs {
		prefix, context := p.Finds(&p.Runs[i], of)
		if prefix != "" {
			others := where{conditions: []string{"key <> ?", "id >= ?"}, args: []any{p.Key, prefix}}
			if end, ok := deadletter.AfterPrefix(prefix); ok {
				others.and("id < ?", end)
			}
			if err := only(p.Runs[i].ID, "subjects", others); err != nil {
				return nil, err
			}
		}
		if context != "" {
			others := where{conditions: []string{"d.subject <> ?"}, args: []any{p.Key}}
			others.picks(&journal.DeadLetterFilter{Context: context})
			if err := only(p.Runs[i].ID, "dead_letters d", others); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// failures are how many are counted, by their causes.
func (w *writer) failures() (map[string]int64, error) {
	all := map[string]int64{}
	return all, w.each("SELECT cause, n FROM sums WHERE slot = 0 AND name = '"+string(journal.SumCauseFailures)+"'", func(scan scanner) error {
		var id string
		var n int64
		err := scan(&id, &n)
		all[id] = n
		return err
	})
}

// about are the items of bulk runs that are about a subject's dead letters.
func (w *writer) about(key int64) ([]journal.RunItem, error) {
	const query = "SELECT i.run, i.number FROM bulk_items i JOIN dead_letters d ON d.record = i.record WHERE d.subject = ?"
	return collect(&w.snapshot, query, []any{key}, func(scan scanner, i *journal.RunItem) error {
		return scan(&i.Run, &i.Item.Number)
	})
}

// signed are the digests of records in their order, by the ledger; that of one that no link vouches for is zero.
func (s *snapshot) signed(records []journal.KeyedRecord) ([]journal.Digest, error) {
	all := make([]journal.Digest, len(records))
	var l journal.Link
	for i := range records {
		n := records[i].Entry.Record
		if n >= l.First+int64(len(l.Digests)) {
			links, err := s.linksWhere("WHERE first <= ? ORDER BY first DESC, number DESC LIMIT 1", n)
			if err != nil {
				return nil, err
			}
			if len(links) > 0 {
				l = links[0]
			}
		}
		if at := n - l.First; at >= 0 && at < int64(len(l.Digests)) {
			all[i] = l.Digests[at]
		}
	}
	return all, nil
}

// expunge deletes what an erasure takes; its record is the last one of the changes.
func (b *batch) expunge(c *journal.Changes) {
	e := c.Erased
	if e == nil {
		return
	}
	b.add("DELETE FROM records WHERE subject = ? AND record < ?", e.Key, c.Records[len(c.Records)-1].Entry.Record)
	for _, id := range e.Causes {
		b.add("UPDATE fingerprints SET pattern = '' WHERE id = ?", id)
	}
	for i := range e.Amended {
		r := &e.Amended[i].Entry
		b.add("UPDATE records SET body = ? WHERE record = ?", r.Kept(), r.Record)
	}
}

// LastRecordBefore implements journal.Purger.
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

// Purge implements journal.Purger.
func (s *Store) Purge(
	ctx context.Context, through int64, limit int, step func(journal.Head, *journal.Purging) (*journal.Changes, error),
) (n int, err error) {
	err = s.change(ctx, "purge records", func(w *writer, head journal.Head) (*journal.Changes, error) {
		p, err := w.purging(through, limit)
		if err != nil {
			return nil, err
		}
		c, err := step(head, p)
		if c != nil {
			n = len(p.Records)
		}
		return c, err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// purging is what the purge of the next records up to through takes.
func (w *writer) purging(through int64, limit int) (*journal.Purging, error) {
	p := &journal.Purging{Stays: map[int64]journal.SubjectState{}, Ended: map[string]int64{}}
	var err error
	if p.Base, err = w.lastPurge(); err != nil {
		return p, err
	}
	p.Records, err = w.entries("WHERE r.record <= ? ORDER BY r.record LIMIT ?", through, max(limit, 0))
	if err != nil || len(p.Records) == 0 {
		return p, err
	}
	cut := p.Records[len(p.Records)-1].Entry.Record
	if p.Digests, err = w.signed(p.Records); err != nil {
		return p, err
	}
	if p.Erasures, err = w.entries(erasures); err != nil {
		return p, err
	}
	if p.Letters, err = w.keyedLetters("WHERE d.record <= ? ORDER BY d.record", cut); err != nil {
		return p, err
	}
	return p, w.stays(p, cut)
}

// stays finds the subjects that have records behind the cut, and the runs that have ended.
func (w *writer) stays(p *journal.Purging, cut int64) error {
	keys := map[int64]bool{}
	for i := range p.Records {
		keys[p.Records[i].Key] = true
	}
	for i := range p.Letters {
		keys[p.Letters[i].Key] = true
	}
	for key := range keys {
		err := w.states(" WHERE key = ? AND EXISTS (SELECT 1 FROM records WHERE subject = ? AND record > ?)",
			[]any{key, key, cut}, func(k *journal.KeyedState) { p.Stays[key] = k.State })
		if err != nil {
			return err
		}
	}
	runs, err := w.bulkRuns("WHERE state NOT IN " + unfinished)
	for i := range runs {
		p.Ended[runs[i].ID] = runs[i].Begun
	}
	return err
}
