package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"retry-worker/internal/journal"
)

// change runs decide in a transaction that locks the ledger's head, and saves the changes that it returns, if any.
func (s *Store) change(
	ctx context.Context, doing string, decide func(w *writer, head journal.Head) (*journal.Changes, error),
) error {
	return s.write(ctx, doing, func(w *writer) (bool, error) {
		head, err := w.head(w.Lock)
		if err != nil {
			return false, err
		}
		c, err := decide(w, head)
		if err != nil || c == nil {
			return false, err
		}
		return true, w.save(head, c)
	})
}

// Transact implements journal.Store.
func (s *Store) Transact(
	ctx context.Context, lookups []journal.Lookup, decide func(journal.Head, []journal.History) *journal.Changes,
) error {
	return s.change(ctx, "record decisions", func(w *writer, head journal.Head) (*journal.Changes, error) {
		histories, err := w.recall(lookups)
		if err != nil {
			return nil, err
		}
		return decide(head, histories), nil
	})
}

// Holds implements journal.Store.
func (s *Store) Holds(ctx context.Context, l *journal.Link) (found bool, err error) {
	err = s.write(ctx, "ask for a link", func(w *writer) (bool, error) {
		if _, err := w.head(w.Lock); err != nil {
			return false, err
		}
		var number int64
		found, err = w.one("SELECT number FROM ledger WHERE number = ? AND hash = ?", []any{l.Number, l.Hash[:]}, &number)
		return false, err
	})
	return found, err
}

// Probe implements journal.Store. It also requires room for a batch.
func (s *Store) Probe(ctx context.Context) error {
	if s.Room != nil {
		if err := s.Room(); err != nil {
			return err
		}
	}
	return s.write(ctx, "write a probe", func(w *writer) (bool, error) {
		// The value must differ: SQLite writes nothing if nothing changes.
		_, err := w.exec("UPDATE ledger_head SET probed_at = ? WHERE one = 1", time.Now().UnixNano())
		return true, err
	})
}

// head returns the ledger's head. lock is Dialect.Lock, or empty.
func (s *snapshot) head(lock string) (h journal.Head, err error) {
	var hash []byte
	found, err := s.one("SELECT link, record, subject, message, hash, at FROM ledger_head WHERE one = 1"+lock, nil, &h.Link,
		&h.Record, &h.Subject, &h.Message, &hash, milli{&h.At})
	if err == nil && (!found || len(hash) != len(h.Hash)) {
		err = journal.ErrNoHead
	}
	copy(h.Hash[:], hash)
	return h, err
}

const recalled = `SELECT CAST(a.value ->> 0 AS BIGINT), s.key, s.body,
	coalesce(l.record, 0), coalesce(l.at, 0), coalesce(l.body, '{}'), ` + maybeLetter + `
FROM %s CROSS JOIN subjects s
LEFT JOIN records l ON l.record = s.last AND l.subject = s.key
LEFT JOIN dead_letters d ON d.id = CASE a.value ->> 4 WHEN '' THEN s.dead_letter ELSE a.value ->> 4 END AND d.subject = s.key
WHERE s.id = a.value ->> 1 AND s.policy = a.value ->> 2 AND s.tenant = a.value ->> 3`

// recall loads the history of each lookup.
func (w *writer) recall(lookups []journal.Lookup) ([]journal.History, error) {
	histories, asked := make([]journal.History, len(lookups)), make([][]any, len(lookups))
	for i := range lookups {
		l := &lookups[i]
		asked[i] = []any{i, l.Subject.ID, l.Subject.Policy, l.Subject.Tenant, l.DeadLetter}
	}
	list, _ := json.Marshal(asked)
	err := w.each(fmt.Sprintf(recalled, w.Elements), func(scan scanner) error {
		var n, key int64
		var state string
		last, letter := journal.Entry{Kind: journal.AttemptEntry}, journal.DeadLetter{}
		err := scan(append([]any{&n, &key, &state, &last.Record, milli{&last.At}, &last.Body}, ofLetter(&letter)...)...)
		if err != nil {
			return err
		}
		h := &histories[n]
		h.Key, last.Subject = key, lookups[n].Subject
		h.SubjectState, err = readState(state)
		if err == nil && last.Record != 0 {
			h.Last, err = attemptOf(&last)
		}
		if h.Last != nil && h.Last.Identity == lookups[n].Identity {
			h.Same = h.Last
		}
		if letter.Record != 0 {
			h.DeadLetter = &letter
		}
		return err
	}, string(list))
	for i := range lookups {
		if err == nil {
			err = w.recallMore(&lookups[i], &histories[i])
		}
	}
	return histories, err
}

func attemptOf(e *journal.Entry) (*journal.Attempt, error) {
	err := e.Decode()
	return e.Attempt, err
}

func readState(body string) (s journal.SubjectState, err error) {
	if err = json.Unmarshal([]byte(body), &s); err != nil {
		err = fmt.Errorf("%w state of a subject: %w", journal.ErrUnreadable, err)
	}
	return s, err
}

// recallMore loads what only few lookups need.
func (w *writer) recallMore(l *journal.Lookup, h *journal.History) (err error) {
	if l.Run != "" {
		run, found, err := w.run(l.Run)
		if found && err == nil && l.Subject == (journal.Subject{}) {
			err = w.count(&run)
		}
		if err != nil {
			return err
		}
		if found {
			h.Run = &run
		}
	}
	if l.Item != 0 {
		items, err := w.items(" WHERE i.run = ? AND i.number = ?", l.Run, l.Item)
		if err != nil {
			return err
		}
		if len(items) > 0 {
			h.Item = &items[0]
		}
	}
	if h.Same == nil && l.Identity != (journal.Identity{}) && h.MayBe(l.Identity) {
		same := journal.Entry{Kind: journal.AttemptEntry, Subject: l.Subject}
		found, err := w.one("SELECT record, at, body FROM records WHERE subject = ? AND kind = 'attempt' AND body ->> "+
			"'id' = ? ORDER BY record DESC LIMIT 1", []any{h.Key, l.Identity.Kept()}, &same.Record, milli{&same.At}, &same.Body)
		if found {
			h.Same, err = attemptOf(&same)
		}
		if err != nil {
			return err
		}
	}
	if h.Same == nil {
		return nil
	}
	// All revisions of the attempt count: the engine may take a late answer to the first when another worker has made a
	// second. Runs of several workers may overlap.
	var answered, until int64
	_, err = w.one(`SELECT count(*), coalesce(max(a.until), 0), coalesce(max(CAST(r.body ->> 'until' AS BIGINT)), 0)
		FROM records r JOIN answered a ON a.first > r.record - ? AND a.first <= r.record AND a.last >= r.record
		WHERE r.subject = ? AND r.kind = 'attempt' AND CAST(r.body ->> 'n' AS BIGINT) = ?`,
		[]any{journal.MostRun, h.Key, h.Same.Number}, &answered, &h.SameUntil, &until)
	h.SameAnswered, h.SameUntil = answered > 0, max(h.SameUntil, until)
	if err == nil && h.Same.DeadLetter != "" {
		_, err = w.one("SELECT state FROM dead_letters WHERE id = ? AND subject = ?", []any{h.Same.DeadLetter, h.Key},
			&h.SameDeadLetter)
	}
	return err
}

// save saves the changes of a transaction.
func (w *writer) save(head journal.Head, c *journal.Changes) error {
	b := &batch{Dialect: w.Dialect}
	if err := b.link(head, c); err != nil {
		return err
	}
	if err := b.records(c.Records); err != nil {
		return err
	}
	b.upsert(journal.SubjectsTable, rows(c.Subjects), replaceSubject)
	b.upsert(journal.DeadLettersTable, rows(c.DeadLetters), replaceDeadLetter)
	b.runs(c)
	b.upsert(journal.SumsTable, rows(c.Sums), addSum)
	b.upsert(journal.FingerprintsTable, rows(c.Fingerprints), addFingerprint)
	b.messages(c.Outbox...)
	for _, r := range c.Link.LetGo {
		b.add("DELETE FROM outbox WHERE sequence >= ? AND sequence <= ?", r.First, r.Last)
	}
	b.expunge(c.Expunged)
	return w.execute(b)
}

// What a new row changes in an existing one. Columns that never change are not set: SQLite would write their indexes
// anew.
const (
	replaceSubject = "last = excluded.last, dead_letter = excluded.dead_letter, destination = excluded.destination," +
		" body = excluded.body"
	replaceDeadLetter = "state = excluded.state, deadline = excluded.deadline, assignee = excluded.assignee," +
		" follow_up = excluded.follow_up, body = excluded.body"
	replaceRun      = "state = excluded.state, body = excluded.body"
	replaceAnswered = "last = CASE WHEN answered.last > excluded.last THEN answered.last ELSE excluded.last END"
	addSum          = "n = sums.n + excluded.n"
)

// addFingerprint is journal.Fingerprint.Add in SQL.
var addFingerprint = fmt.Sprintf(`
		began = CASE WHEN excluded.began >= fingerprints.last_seen + %[1]d
			THEN excluded.began ELSE fingerprints.began END,
		prior = CASE WHEN excluded.began >= fingerprints.last_seen + %[1]d
			THEN fingerprints.last_seen ELSE fingerprints.prior END,
		pattern = CASE fingerprints.pattern WHEN '' THEN excluded.pattern ELSE fingerprints.pattern END,
		classification = CASE WHEN fingerprints.classification < excluded.classification
			THEN fingerprints.classification ELSE excluded.classification END,
		first_seen = CASE WHEN fingerprints.first_seen < excluded.first_seen
			THEN fingerprints.first_seen ELSE excluded.first_seen END,
		last_seen = CASE WHEN fingerprints.last_seen > excluded.last_seen
			THEN fingerprints.last_seen ELSE excluded.last_seen END`, journal.Silence.Milliseconds())

// errLink is a mistake of the caller that would break the chain.
var errLink = invalid("save the link: it does not follow the ledger's head, or has not one digest for each record and message")

// link appends the link to the ledger, unless it is empty, and moves the head.
func (b *batch) link(head journal.Head, c *journal.Changes) error {
	l := &c.Link
	if len(l.Digests)+len(l.Answered)+len(c.Records)+len(l.Messages)+len(c.Outbox)+len(l.LetGo) == 0 {
		return nil
	}
	if len(l.Digests) != len(c.Records) || len(l.Messages) != len(c.Outbox) || l.Number != head.Link+1 ||
		l.First != head.Record+1 || l.Message != head.Message+1 || l.Hash != l.HashAfter(head.Hash) {
		return errLink
	}
	digests, messages := []byte{}, []byte{} // not nil, even if the link has none
	for i := range l.Digests {
		if c.Records[i].Record != l.First+int64(i) {
			return errLink
		}
		digests = append(digests, l.Digests[i][:]...)
	}
	for i := range l.Messages {
		if c.Outbox[i].Sequence != l.Message+int64(i) {
			return errLink
		}
		messages = append(messages, l.Messages[i][:]...)
	}
	subject := head.Subject
	for i := range c.Subjects {
		subject = max(subject, c.Subjects[i].Key)
	}
	at, record, message := journal.Milli(l.At), head.Record+int64(len(l.Digests)), head.Message+int64(len(l.Messages))
	b.add("INSERT INTO ledger (number, at, first, digests, answered, message, messages, letgo, hash) "+
		"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		l.Number, at, l.First, digests, textOf(l.Answered), l.Message, messages, textOf(l.LetGo), l.Hash[:])
	b.add("UPDATE ledger_head SET link = ?, record = ?, subject = ?, message = ?, hash = ?, at = ? WHERE one = 1",
		l.Number, record, subject, message, l.Hash[:], at)
	b.answered(l.Answered)
	return nil
}

func invalid(format string, args ...any) error {
	return &journal.StoreError{Kind: journal.Invalid, Err: fmt.Errorf(format, args...)}
}

func (b *batch) records(records []journal.Entry) error {
	all := make([]journal.Row, len(records))
	for i := range records {
		r := &records[i]
		if r.Key == 0 && r.Subject != (journal.Subject{}) {
			return invalid("save record %d: its subject has no key", r.Record)
		}
		all[i] = journal.Row{r.Record, string(r.Kind), r.Key, journal.Milli(r.At), r.Body}
	}
	b.insert("records (record, kind, subject, at, body)", "", all)
	return nil
}

// runs adds the changes of bulk runs.
func (b *batch) runs(c *journal.Changes) {
	b.upsert(journal.RunsTable, rows(c.Runs), replaceRun)
	b.upsert(journal.ItemsTable, rows(c.NewItems), "")
	if len(c.NewItems) > 0 { // a dead letter may have been expunged since it was found
		b.add("DELETE FROM bulk_items WHERE run = ? "+
			"AND NOT EXISTS (SELECT 1 FROM dead_letters d WHERE d.record = bulk_items.record)", c.NewItems[0].Run)
	}
	for i := range c.Items {
		n := &c.Items[i]
		b.add("UPDATE bulk_items SET outcome = ?, code = ?, changed = ?, decided = ? WHERE record = ? AND run = ? "+
			"AND outcome <> ? AND outcome IN ('planned', 'refused', 'decided', 'taken')", string(n.Outcome), n.Code,
			journal.Milli(n.ChangedAt), journal.Milli(n.DecidedAt), n.Record, n.Run, string(n.Outcome))
	}
}

func (b *batch) messages(messages ...journal.Message) {
	all := make([]journal.Row, len(messages))
	for i := range messages {
		m := &messages[i]
		all[i] = journal.Row{m.Sequence, m.ID, m.Queue, m.Key, m.Subject, m.Type, m.Body, journal.Milli(m.At)}
	}
	b.insert("outbox (sequence, id, queue, key, subject, type, body, at)", "", all)
}
