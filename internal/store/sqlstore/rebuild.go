package sqlstore

import (
	"context"

	"retry-worker/internal/journal"
)

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
