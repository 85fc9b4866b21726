package sqlstore

import (
	"context"
	"time"

	"retry-worker/internal/journal"
)

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
