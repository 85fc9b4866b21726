package sqlstore

import (
	"context"
	"errors"

	"retry-worker/internal/journal"
)

// Rebuild implements audit.Rebuilder.
func (s *Store) Rebuild(ctx context.Context, do func(journal.Rebuilding) (*journal.Changes, error)) error {
	return s.write(ctx, "rebuild the journal", func(w *writer) (bool, error) {
		err := w.prepareLong()
		if err == nil {
			err = w.mend()
		}
		if err != nil {
			return false, err
		}
		c, err := do(w)
		if err != nil {
			return false, err
		}
		head, err := w.head("")
		if err != nil {
			return false, err
		}
		return true, w.save(head, c)
	})
}

// mend makes the ledger's head anew from its last link, and locks it; the row stays, as others wait for it. Dead
// letters go back to the subjects of their records.
func (w *writer) mend() error {
	if _, err := w.head(w.Lock); err != nil && !errors.Is(err, journal.ErrNoHead) {
		return err
	}
	key, err := w.IdentityKey()
	if err != nil {
		return err
	}
	start := key.Start().Hash
	_, err = w.exec(`INSERT INTO ledger_head (one, link, record, subject, message, hash, at, probed_at)
		SELECT 1, number, first - 1 + length(digests) / 32, (SELECT coalesce(max(key), 0) FROM subjects),
			message - 1 + length(messages) / 32, hash, at, 0
		FROM ledger WHERE number = (SELECT max(number) FROM ledger)
		UNION ALL SELECT 1, 0, 0, 0, 0, ?, 0, 0 WHERE NOT EXISTS (SELECT 1 FROM ledger)
		ON CONFLICT (one) DO UPDATE SET link = excluded.link, record = excluded.record, subject = excluded.subject,
			message = excluded.message, hash = excluded.hash, at = excluded.at`, start[:])
	if err != nil {
		return err
	}
	_, err = w.exec("UPDATE dead_letters SET subject = r.subject FROM records r " +
		"WHERE r.record = dead_letters.record AND r.subject <> dead_letters.subject")
	return err
}

// The methods below, and those of snapshot, implement journal.Rebuilding.

func (w *writer) ReplaceSubjects(after int64, p *journal.SubjectPage) error {
	b := &batch{Dialect: w.Dialect}
	b.add("DELETE FROM dead_letters WHERE subject > ? AND subject <= ?", after, p.Through)
	b.add("DELETE FROM subjects WHERE key > ? AND key <= ?", after, p.Through)
	b.upsert(journal.SubjectsTable, p.Subjects, "")
	b.upsert(journal.DeadLettersTable, p.Letters, "")
	return w.execute(b)
}

func (w *writer) Replace(t *journal.Table, rows []journal.Row) error {
	b := &batch{Dialect: w.Dialect}
	b.add("DELETE FROM " + t.Name)
	b.upsert(t, rows, "")
	return w.execute(b)
}

func (w *writer) ReplaceAnswered(runs []journal.Run) error {
	b := &batch{Dialect: w.Dialect}
	b.add("DELETE FROM answered")
	b.answered(runs)
	return w.execute(b)
}

func (w *writer) RemoveMessage(sequence int64) error {
	_, err := w.exec("DELETE FROM outbox WHERE sequence = ?", sequence)
	return err
}
