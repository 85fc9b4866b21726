package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"math"

	"retry-worker/internal/journal"
)

// rebuildPage is how many subjects are rebuilt at a time.
const rebuildPage = 1000

// Rebuild implements audit.Rebuilder. progress gets the last subject's key, the highest key, and the number of rebuilt
// subjects.
func (s *Store) Rebuild(ctx context.Context, check func(journal.Moment) error, progress func(at, of, counted int64),
	step func(journal.Head) (*journal.Changes, error)) error {
	return s.write(ctx, "rebuild the journal", func(w *writer) (bool, error) {
		err := w.prepareLong()
		if err == nil {
			err = w.mendHead()
		}
		if err == nil {
			err = check(&w.snapshot)
		}
		if err != nil {
			return false, err
		}
		r := &rebuild{writer: w, progress: progress, fold: journal.NewRefold()}
		return true, r.run(step)
	})
}

// mendHead makes the ledger's head anew from its last link, and locks it. The row stays, as others wait for it.
func (w *writer) mendHead() error {
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
	return err
}

type rebuild struct {
	*writer
	progress func(at, of, counted int64)
	fold     *journal.Refold
	// letGo are the messages that links say were removed.
	letGo journal.Runs
}

func (r *rebuild) run(record func(journal.Head) (*journal.Changes, error)) error {
	head, err := r.head("")
	if err == nil {
		err = r.ledger()
	}
	if err == nil {
		err = r.subjects(head.Subject)
	}
	if err == nil {
		err = r.sums()
	}
	if err != nil {
		return err
	}
	c, err := record(head)
	if err == nil {
		err = r.messages(c, head)
	}
	if err != nil {
		return err
	}
	return r.save(head, c)
}

// messages deletes forged messages from the outbox, records them and missing ones as removed, and makes lost ones again
// that carry out what people decided: answers to processes, and decisions that can still be undone.
func (r *rebuild) messages(c *journal.Changes, head journal.Head) error {
	b, kept, known := &batch{Dialect: r.Dialect}, map[string]bool{}, journal.Runs{}
	err := stream(&r.snapshot, selectMessages+"ORDER BY sequence", nil, readMessage, func(m *journal.Message) error {
		if m.Forged || r.letGo.Holds(m.Sequence) {
			b.add("DELETE FROM outbox WHERE sequence = ?", m.Sequence)
			return nil
		}
		known.Add(journal.Run{First: m.Sequence, Last: m.Sequence})
		if m.Queue == journal.ReviewQueue || m.Queue == journal.LaterQueue {
			kept[m.ID] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, run := range r.letGo.All() {
		known.Add(run)
	}
	c.Link.LetGo = known.Missing(head.Message)
	letters, err := collect(&r.snapshot, "SELECT "+letterColumns+", d.subject FROM dead_letters d JOIN subjects s "+
		"ON s.key = d.subject WHERE (d.body ->> 'answer') IS NOT NULL OR (d.body ->> 'later') IS NOT NULL "+
		"ORDER BY d.record", nil,
		func(scan scanner, k *journal.KeyedDeadLetter) error {
			return scanDeadLetter(scan, &k.Subject, &k.DeadLetter, &k.Key)
		})
	for i := range letters {
		m := letters[i].Answer(c.Link.At)
		if letters[i].DeadLetter.Answer == 0 {
			m = letters[i].Later()
		}
		if !kept[m.ID] {
			c.Outbox = append(c.Outbox, m)
		}
	}
	c.Seal(head, c.Link.At)
	return cmp.Or(err, r.execute(b))
}

// ledger takes the answered records from the links, and folds the records without a subject.
func (r *rebuild) ledger() error {
	var answered journal.Runs
	err := stream(&r.snapshot, selectLinks+"ORDER BY number", nil, readLink, func(l *journal.Link) error {
		for _, run := range l.Answered {
			answered.Add(run)
		}
		for _, run := range l.LetGo {
			r.letGo.Add(run)
		}
		return nil
	})
	if err == nil {
		err = stream(&r.snapshot, selectEntries+"WHERE r.subject = 0 ORDER BY r.record", nil, readEntry, r.fold.Entry)
	}
	if err != nil {
		return err
	}
	r.letGo.All()
	b := &batch{Dialect: r.Dialect}
	b.add("DELETE FROM answered")
	b.answered(r.fold.Gone().Left(answered.All()))
	return r.execute(b)
}

// subjects rebuilds subjects and dead letters. It keeps the subjects' names, as the records were signed with them.
func (r *rebuild) subjects(last int64) error {
	if _, err := r.exec("UPDATE dead_letters SET subject = r.subject FROM records r " + // or they would be met too late
		"WHERE r.record = dead_letters.record AND r.subject <> dead_letters.subject"); err != nil {
		return err
	}
	made := int64(0)
	for after := int64(math.MinInt64); ; { // keys below 1 were put in
		page, err := r.Subjects(after, rebuildPage)
		if err != nil {
			return err
		}
		subjects, letters, err := r.fold.Anew(&page)
		if err != nil {
			return err
		}
		b := &batch{Dialect: r.Dialect}
		b.add("DELETE FROM dead_letters WHERE subject > ? AND subject <= ?", after, page.Through)
		b.add("DELETE FROM subjects WHERE key > ? AND key <= ?", after, page.Through)
		b.upsert(journal.SubjectsTable, subjects, "")
		b.upsert(journal.DeadLettersTable, letters, "")
		if err := r.execute(b); err != nil || len(page.Subjects) == 0 {
			return err
		}
		made += int64(len(subjects))
		r.progress(page.Through, last, made)
		after = page.Through
	}
}

// sums rebuilds the tables that belong to no subject.
func (r *rebuild) sums() error {
	b := &batch{Dialect: r.Dialect}
	for _, t := range []*journal.Table{journal.SumsTable, journal.FingerprintsTable, journal.RunsTable,
		journal.ItemsTable} {
		got, err := r.rows(t, "")
		if err != nil {
			return err
		}
		b.add("DELETE FROM " + t.Name)
		b.upsert(t, r.fold.Rows(t, got), "")
	}
	return r.execute(b)
}
