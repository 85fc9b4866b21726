package sqlstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"retry-worker/internal/journal"
)

// Transact implements journal.Store.
func (s *Store) Transact(ctx context.Context, lookups []journal.Lookup, decide func(journal.Head, []journal.History) *journal.Changes) error {
	return s.write(ctx, "record decisions", func(w *writer) (bool, error) {
		head, err := w.head(w.Lock)
		if err != nil {
			return false, err
		}
		histories, err := w.recall(lookups)
		if errors.Is(err, journal.ErrUnreadable) { // one subject's: others go on
			return false, invalid("%w", err)
		}
		if err != nil {
			return false, err
		}
		changes := decide(head, histories)
		if changes == nil {
			return false, nil
		}
		return true, w.save(head, changes)
	})
}

// Probe implements journal.Store. It asks for the room of a batch as well: less would be enough for itself.
func (s *Store) Probe(ctx context.Context) error {
	if s.Room != nil {
		if err := s.Room(); err != nil {
			return err
		}
	}
	return s.write(ctx, "write a probe", func(w *writer) (bool, error) {
		return true, w.exec("UPDATE ledger_head SET probed_at = ? WHERE one = 1", time.Now().UnixMilli())
	})
}

// head is the ledger's; lock is what takes it.
func (s *snapshot) head(lock string) (h journal.Head, err error) {
	var hash []byte
	var at int64
	found, err := s.one("SELECT link, record, subject, hash, at FROM ledger_head WHERE one = 1"+lock, nil, &h.Link, &h.Record, &h.Subject, &hash, &at)
	if err == nil && (!found || len(hash) != len(h.Hash)) {
		err = journal.ErrNoHead
	}
	copy(h.Hash[:], hash)
	h.At = journal.FromMilli(at)
	return h, err
}

const (
	recallHead = "WITH asked (n, id, policy, tenant, letter) AS (VALUES "
	recallRow  = "(CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT))"
	recallTail = `)
SELECT a.n, s.key, s.body, l.record, l.at, l.body, d.seen, d.body
FROM asked a CROSS JOIN subjects s
LEFT JOIN records l ON l.record = s.last AND l.subject = s.key
LEFT JOIN dead_letters d ON d.id = CASE a.letter WHEN '' THEN s.dead_letter ELSE a.letter END AND d.subject = s.key
WHERE s.id = a.id AND s.policy = a.policy AND s.tenant = a.tenant`
)

// recall loads the history of each lookup.
func (w *writer) recall(lookups []journal.Lookup) ([]journal.History, error) {
	histories := make([]journal.History, len(lookups))
	for at := 0; at < len(lookups); {
		size := w.Rows[0]
		for _, n := range w.Rows {
			if size < len(lookups)-at {
				size = n
			}
		}
		n := min(size, len(lookups)-at)
		if err := w.recallSome(lookups[at:at+n], histories[at:at+n], size); err != nil {
			return nil, err
		}
		at += n
	}
	for i := range lookups {
		if err := w.recallMore(&lookups[i], &histories[i]); err != nil {
			return nil, err
		}
	}
	return histories, nil
}

// recallSome asks for size lookups, of which the last may be none.
func (w *writer) recallSome(lookups []journal.Lookup, histories []journal.History, size int) error {
	query, args := recallHead, make([]any, 0, 5*size)
	for i := range size {
		if i > 0 {
			query += ", "
		}
		query += recallRow
		if i >= len(lookups) {
			args = append(args, nil, nil, nil, nil, nil)
			continue
		}
		l := &lookups[i]
		args = append(args, int64(i), l.Subject.ID, l.Subject.Policy, l.Subject.Tenant, l.DeadLetter)
	}
	var purged []int // their last attempts are
	err := w.each(query+recallTail, func(scan scanner) error {
		var n, key int64
		var last nullRecord
		var seen *int64
		var state string
		var letter *string
		err := scan(&n, &key, &state, &last.record, &last.at, &last.body, &seen, &letter)
		if err != nil {
			return err
		}
		h, s := &histories[n], lookups[n].Subject
		h.Key = key
		h.SubjectState, err = readState(state)
		if err == nil {
			h.Last, err = last.attempt(s)
		}
		if h.LastRecord != 0 && h.Last == nil {
			purged = append(purged, int(n))
		} else if h.Last != nil && h.Last.Identity == lookups[n].Identity {
			h.Same = h.Last
		}
		if err == nil && letter != nil {
			h.DeadLetter, err = readLetter(*letter, *seen)
		}
		return err
	}, args...)
	if err != nil || len(purged) == 0 {
		return err
	}
	base, err := w.lastPurge()
	for _, n := range purged {
		if err == nil {
			histories[n].Last, err = journal.CarriedLast(lookups[n].Subject, base)
		}
	}
	return err
}

// nullRecord is a record that may not be there.
type nullRecord struct {
	record, at *int64
	body       *string
}

func (r *nullRecord) attempt(s journal.Subject) (*journal.Attempt, error) {
	if r.record == nil {
		return nil, nil
	}
	e := journal.Entry{Record: *r.record, Kind: journal.AttemptEntry, Subject: s, At: journal.FromMilli(*r.at)}
	e.Keep(*r.body)
	d, err := e.Decode()
	return d.Attempt, err
}

func readState(body string) (s journal.SubjectState, err error) {
	if err = json.Unmarshal([]byte(body), &s); err != nil {
		err = fmt.Errorf("%w state of a subject: %w", journal.ErrUnreadable, err)
	}
	return s, err
}

func readLetter(body string, seen int64) (*journal.DeadLetter, error) {
	d := &journal.DeadLetter{}
	if err := json.Unmarshal([]byte(body), d); err != nil {
		return nil, fmt.Errorf("%w dead letter: %w", journal.ErrUnreadable, err)
	}
	d.ReviewSeen = journal.FromMilli(seen)
	return d, nil
}

// recallMore loads what few lookups ask for.
func (w *writer) recallMore(l *journal.Lookup, h *journal.History) (err error) {
	if l.Run != "" {
		run, found, err := w.run(l.Run)
		if err != nil {
			return err
		}
		if found {
			h.Run = &run
		}
	}
	if l.Item != 0 {
		items, err := w.items("WHERE run = ? AND number = ?", l.Run, l.Item)
		if err != nil {
			return err
		}
		if len(items) > 0 {
			h.Item = &items[0]
		}
	}
	if h.Same == nil && l.Identity != (journal.Identity{}) && h.MayBe(l.Identity) {
		var same nullRecord
		if _, err := w.one("SELECT record, at, body FROM records WHERE subject = ? AND kind = 'attempt' AND body ->> 'identity' = ? ORDER BY record DESC LIMIT 1",
			[]any{h.Key, l.Identity.String()}, &same.record, &same.at, &same.body); err != nil {
			return err
		}
		if h.Same, err = same.attempt(l.Subject); err != nil {
			return err
		}
	}
	if h.Same == nil {
		return nil
	}
	// All revisions of the attempt are looked at: a late answer to the first may be taken when another worker has made a second.
	var one int64
	h.SameAnswered, err = w.one(`SELECT 1 FROM records r WHERE r.subject = ? AND r.kind = 'attempt' AND CAST(r.body ->> 'number' AS BIGINT) = ?
		AND r.record <= (SELECT last FROM answered WHERE first <= r.record ORDER BY first DESC LIMIT 1) LIMIT 1`, []any{h.Key, h.Same.Number}, &one)
	if err == nil && h.Same.DeadLetter != "" {
		_, err = w.one("SELECT state FROM dead_letters WHERE id = ? AND subject = ?", []any{h.Same.DeadLetter, h.Key}, &h.SameDeadLetter)
	}
	return err
}

// errLink is the caller's mistake, and would be the chain's end if it got in.
var errLink = errors.New("it does not follow the ledger's head, or has not one digest for each record")

// save writes everything that one transaction changes.
func (w *writer) save(head journal.Head, c *journal.Changes) error {
	statements, err := w.link(nil, head, c)
	if err != nil {
		return err
	}
	for _, step := range []func([]Statement, *journal.Changes) ([]Statement, error){w.records, w.subjects, w.letters, w.runs, w.sums, w.queue, w.forget, w.expunge} {
		if statements, err = step(statements, c); err != nil {
			return err
		}
	}
	return w.all(statements)
}

// link appends the link to the ledger, where there is one, and moves the head.
func (w *writer) link(all []Statement, head journal.Head, c *journal.Changes) ([]Statement, error) {
	l := &c.Link
	switch {
	case len(l.Digests) != len(c.Records):
		return nil, invalid("save the link: %w", errLink)
	case len(l.Digests)+len(l.Answered) == 0:
		return all, nil
	case l.Number != head.Link+1 || l.First != head.Record+1 || l.Hash != l.HashAfter(head.Hash):
		return nil, invalid("save the link: %w", errLink)
	}
	digests := make([]byte, 0, len(l.Digests)*len(journal.Digest{}))
	for i := range l.Digests {
		if c.Records[i].Entry.Record != l.First+int64(i) {
			return nil, invalid("save the link: %w", errLink)
		}
		digests = append(digests, l.Digests[i][:]...)
	}
	subject := head.Subject
	for i := range c.Subjects {
		subject = max(subject, c.Subjects[i].Key)
	}
	at, record := journal.Milli(l.At), head.Record+int64(len(l.Digests))
	all = append(all,
		Statement{"INSERT INTO ledger (number, at, first, digests, answered, hash) VALUES (?, ?, ?, ?, ?, ?)",
			[]any{l.Number, at, l.First, digests, encode(l.Answered), l.Hash[:]}},
		Statement{"UPDATE ledger_head SET link = ?, record = ?, subject = ?, hash = ?, at = ? WHERE one = 1", []any{l.Number, record, subject, l.Hash[:], at}})
	rows := make([]journal.Row, len(l.Answered))
	for i, r := range l.Answered {
		rows[i] = journal.Row{r.First, r.Last}
	}
	return w.insert(all, "answered (first, last)", " ON CONFLICT (first) DO UPDATE SET last = CASE WHEN answered.last > excluded.last THEN answered.last ELSE excluded.last END", 2, rows), nil
}

func invalid(format string, args ...any) error {
	return &journal.StoreError{Kind: journal.Invalid, Err: fmt.Errorf(format, args...)}
}

// encode is v as JSON; nothing is the empty text.
func encode(v []journal.Run) string {
	if len(v) == 0 {
		return ""
	}
	text, err := json.Marshal(v)
	if err != nil { // cannot be: numbers
		return ""
	}
	return string(text)
}

func (w *writer) records(all []Statement, c *journal.Changes) ([]Statement, error) {
	rows := make([]journal.Row, len(c.Records))
	for i := range c.Records {
		r := &c.Records[i]
		if r.Key == 0 && r.Entry.Subject != (journal.Subject{}) {
			return nil, invalid("save record %d: its subject has no key", r.Entry.Record)
		}
		rows[i] = journal.Row{r.Entry.Record, string(r.Entry.Kind), r.Key, journal.Milli(r.Entry.At), r.Entry.Kept()}
	}
	return w.insert(all, "records (record, kind, subject, at, body)", "", 5, rows), nil
}

func (w *writer) subjects(all []Statement, c *journal.Changes) ([]Statement, error) {
	rows := make([]journal.Row, len(c.Subjects))
	for i := range c.Subjects {
		rows[i] = c.Subjects[i].Row()
	}
	return w.upsert(all, journal.SubjectsTable, rows, replaced("id", "next_retry", "last", "dead_letter", "body")), nil
}

func (w *writer) letters(all []Statement, c *journal.Changes) ([]Statement, error) {
	rows := make([]journal.Row, len(c.DeadLetters))
	for i := range c.DeadLetters {
		rows[i] = c.DeadLetters[i].Row()
	}
	return w.upsert(all, journal.DeadLettersTable, rows, replaced("id", "state", "seen", "body")), nil
}

func (w *writer) runs(all []Statement, c *journal.Changes) ([]Statement, error) {
	var runs, items, counts []journal.Row
	for i := range c.Runs {
		runs = append(runs, c.Runs[i].Row())
	}
	count := map[[2]string]int64{}
	for i := range c.NewItems {
		n := &c.NewItems[i]
		items = append(items, n.Row())
		count[[2]string{n.Run, string(n.Item.Outcome)}]++
	}
	all = w.upsert(all, journal.RunsTable, runs, replaced("state", "body"))
	all = w.upsert(all, journal.ItemsTable, items, replaced())
	for i := range c.Items {
		n := &c.Items[i]
		statement, err := w.item(n)
		if err != nil {
			return nil, err
		}
		if statement.Query != "" {
			all = append(all, statement)
			count[[2]string{n.Run, string(n.From)}]--
			count[[2]string{n.Run, string(n.To)}]++
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(count), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		counts = append(counts, journal.Row{key[0], key[1], count[key]})
	}
	return w.upsert(all, journal.RunCountsTable, counts, summed(journal.RunCountsTable)), nil
}

// item is the statement that changes an item; it is empty where the run does not have it.
func (w *writer) item(c *journal.BulkItemChange) (Statement, error) {
	var was string
	found, err := w.one("SELECT body FROM bulk_items WHERE dead_letter = ? AND run = ? ORDER BY number LIMIT 1", []any{c.DeadLetter, c.Run}, &was)
	if err != nil || !found {
		return Statement{}, err
	}
	var i journal.BulkItem
	if err := json.Unmarshal([]byte(was), &i); err != nil {
		return Statement{}, err
	}
	i.Outcome, i.Code, i.ChangedAt, i.DecidedAt = c.To, c.Code, c.ChangedAt, c.DecidedAt
	return Statement{"UPDATE bulk_items SET outcome = ?, body = ? WHERE run = ? AND number = ?", []any{string(i.Outcome), (&journal.RunItem{Run: c.Run, Item: i}).Row()[4], c.Run, i.Number}}, nil
}

func (w *writer) sums(all []Statement, c *journal.Changes) ([]Statement, error) {
	var counts, figures, causes []journal.Row
	for i := range c.Counts {
		counts = append(counts, c.Counts[i].Row())
	}
	for i := range c.Figures {
		figures = append(figures, c.Figures[i].Row())
	}
	for i := range c.Fingerprints {
		causes = append(causes, c.Fingerprints[i].Row())
	}
	all = w.upsert(all, journal.CountsTable, counts, summed(journal.CountsTable))
	all = w.upsert(all, journal.FiguresTable, figures, summed(journal.FiguresTable))
	return w.upsert(all, journal.FingerprintsTable, causes, summed(journal.FingerprintsTable)), nil
}

func (w *writer) queue(all []Statement, c *journal.Changes) ([]Statement, error) {
	rows := make([]journal.Row, len(c.Outbox))
	for i := range c.Outbox {
		rows[i] = messageRow(&c.Outbox[i])
	}
	all = w.insert(all, messageHead, "", 6, rows)
	for _, sequence := range c.Published {
		all = append(all, Statement{"DELETE FROM outbox WHERE sequence = ?", []any{sequence}})
	}
	return all, nil
}

const messageHead = "outbox (id, queue, key, type, body, at)"

func messageRow(m *journal.Message) journal.Row {
	return journal.Row{m.ID, m.Queue, m.Key, m.Type, m.Body, journal.Milli(m.At)}
}

// forget deletes what a purge takes; its record is the last one of the changes.
func (w *writer) forget(all []Statement, c *journal.Changes) ([]Statement, error) {
	f := c.Forgotten
	if f == nil {
		return all, nil
	}
	all = append(all,
		Statement{"UPDATE ledger_head SET purged = ? WHERE one = 1", []any{c.Records[len(c.Records)-1].Entry.Record}},
		Statement{"DELETE FROM records WHERE record <= ?", []any{f.Through}},
		Statement{"DELETE FROM answered WHERE last <= ?", []any{f.Through}})
	for _, key := range f.Subjects {
		all = append(all, Statement{"DELETE FROM subjects WHERE key = ?", []any{key}})
	}
	for _, record := range f.DeadLetters {
		all = append(all, Statement{"DELETE FROM dead_letters WHERE record = ?", []any{record}})
	}
	for _, run := range f.Runs {
		for _, table := range []string{"bulk_items WHERE run", "bulk_counts WHERE run", "bulk_runs WHERE id"} {
			all = append(all, Statement{"DELETE FROM " + table + " = ?", []any{run}})
		}
	}
	return all, nil
}
