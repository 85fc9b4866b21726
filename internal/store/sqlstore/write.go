package sqlstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"retry-worker/internal/journal"
)

// Transact implements journal.Store.
func (s *Store) Transact(
	ctx context.Context, lookups []journal.Lookup, decide func(journal.Head, []journal.History) *journal.Changes,
) error {
	return s.change(ctx, "record decisions", func(t *tx, head journal.Head) *journal.Changes {
		histories := t.recall(lookups)
		if t.err != nil {
			return nil
		}
		return decide(head, histories)
	})
}

// Holds implements journal.Store.
func (s *Store) Holds(ctx context.Context, l *journal.Link) (found bool, err error) {
	err = s.write(ctx, "ask for a link", func(t *tx) {
		t.head(t.Lock)
		var number int64
		found = t.one("SELECT number FROM ledger WHERE number = ? AND hash = ?", []any{l.Number, l.Hash[:]}, &number)
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
	return s.write(ctx, "write a probe", func(t *tx) {
		// The value must differ: SQLite writes nothing if nothing changes.
		t.add("UPDATE ledger_head SET probed_at = ? WHERE one = 1", time.Now().UnixNano())
	})
}

// head returns the ledger's head. lock is Dialect.Lock, or empty.
func (t *tx) head(lock string) (h journal.Head) {
	var hash []byte
	found := t.one("SELECT link, record, subject, message, hash, at FROM ledger_head WHERE one = 1"+lock, nil, &h.Link,
		&h.Record, &h.Subject, &h.Message, &hash, milli{&h.At})
	if !found || len(hash) != len(h.Hash) {
		t.fail(journal.ErrNoHead)
	}
	copy(h.Hash[:], hash)
	return h
}

const recalled = `SELECT CAST(a.value ->> 0 AS BIGINT), s.body,
	coalesce(l.record, 0), coalesce(l.at, 0), coalesce(l.body, '{}'), ` + maybeLetter + `
FROM %s CROSS JOIN subjects s
LEFT JOIN records l ON l.record = s.last AND l.subject = s.key
LEFT JOIN dead_letters d ON d.id = CASE a.value ->> 4 WHEN '' THEN s.dead_letter ELSE a.value ->> 4 END AND d.subject = s.key
WHERE s.id = a.value ->> 1 AND s.policy = a.value ->> 2 AND s.tenant = a.value ->> 3`

// recall loads the history of each lookup.
func (t *tx) recall(lookups []journal.Lookup) []journal.History {
	histories, asked := make([]journal.History, len(lookups)), make([][]any, len(lookups))
	for i := range lookups {
		l := &lookups[i]
		asked[i] = []any{i, l.Subject.ID, l.Subject.Policy, l.Subject.Tenant, l.DeadLetter}
	}
	list, _ := json.Marshal(asked)
	for scan := range t.rows(fmt.Sprintf(recalled, t.Elements), string(list)) {
		var n int64
		last, letter, state := journal.Entry{Kind: journal.AttemptEntry}, journal.DeadLetter{}, journal.SubjectState{}
		scan(append([]any{&n, asJSON{&state}, &last.Record, milli{&last.At}, &last.Body}, ofLetter(&letter)...)...)
		h := &histories[n]
		h.Key, h.Subject, h.SubjectState, last.Subject = letter.Key, letter.Subject, state, letter.Subject
		if last.Record != 0 {
			h.Last = t.attempt(&last)
		}
		if h.Last != nil && h.Last.Identity == lookups[n].Identity {
			h.Same = h.Last
		}
		if letter.Record != 0 {
			h.DeadLetter = &letter
		}
	}
	for i := range lookups {
		t.recallMore(&lookups[i], &histories[i])
	}
	return histories
}

func (t *tx) attempt(e *journal.Entry) *journal.Attempt {
	t.fail(e.Decode())
	return e.Attempt
}

// recallMore loads what only few lookups need.
func (t *tx) recallMore(l *journal.Lookup, h *journal.History) {
	if l.Run != "" {
		if run := t.runs("WHERE id = ?", l.Run); len(run) > 0 {
			h.Run = &run[0]
			if l.Subject == (journal.Subject{}) {
				t.count(h.Run)
			}
		}
	}
	if l.Item != 0 {
		if items := t.items(" WHERE i.run = ? AND i.number = ?", l.Run, l.Item); len(items) > 0 {
			h.Item = &items[0]
		}
	}
	if h.Same == nil && l.Identity != (journal.Identity{}) && h.MayBe(l.Identity) {
		same := journal.Entry{Kind: journal.AttemptEntry, Subject: l.Subject}
		if t.one("SELECT record, at, body FROM records WHERE subject = ? AND kind = 'attempt' AND body ->> 'id' = ? "+
			"ORDER BY record DESC LIMIT 1", []any{h.Key, l.Identity.Kept()}, &same.Record, milli{&same.At}, &same.Body) {
			h.Same = t.attempt(&same)
		}
	}
	if h.Same == nil {
		return
	}
	// All revisions of the attempt count: the engine may take a late answer to the first when another worker has made a
	// second. Runs of several workers may overlap.
	var answered, until int64
	t.one(`SELECT count(*), coalesce(max(a.until), 0), coalesce(max(CAST(r.body ->> 'until' AS BIGINT)), 0)
		FROM records r JOIN answered a ON a.first > r.record - ? AND a.first <= r.record AND a.last >= r.record
		WHERE r.subject = ? AND r.kind = 'attempt' AND CAST(r.body ->> 'n' AS BIGINT) = ?`,
		[]any{journal.MostRun, h.Key, h.Same.Number}, &answered, &h.SameUntil, &until)
	h.SameAnswered, h.SameUntil = answered > 0, max(h.SameUntil, until)
	if h.Same.DeadLetter != "" {
		t.one("SELECT state FROM dead_letters WHERE id = ? AND subject = ?", []any{h.Same.DeadLetter, h.Key},
			&h.SameDeadLetter)
	}
}

// save adds the statements that save the changes of a transaction.
func (t *tx) save(head journal.Head, c *journal.Changes) {
	t.link(head, c)
	t.records(c.Records)
	t.upsert(journal.SubjectsTable, rowsOf(c.Subjects), replaceSubject)
	t.upsert(journal.DeadLettersTable, rowsOf(c.DeadLetters), replaceDeadLetter)
	t.steps(c)
	t.upsert(journal.SumsTable, rowsOf(c.Sums), addSum)
	t.upsert(journal.FingerprintsTable, rowsOf(c.Fingerprints), addFingerprint)
	var messages []journal.Row
	for i := range c.Outbox {
		m := &c.Outbox[i]
		row := journal.Row{m.Sequence, m.ID, m.Queue, m.Key, m.Subject, m.Type, m.Body, journal.Milli(m.At)}
		messages = append(messages, row)
	}
	t.insert("outbox ("+messageColumns+")", "", messages)
	for _, r := range c.Link.LetGo {
		t.add("DELETE FROM outbox WHERE sequence >= ? AND sequence <= ?", r.First, r.Last)
	}
	if c.Expunged != nil {
		t.expunge(c.Expunged)
	}
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
func (t *tx) link(head journal.Head, c *journal.Changes) {
	l := &c.Link
	if len(l.Digests)+len(l.Answered)+len(c.Records)+len(l.Messages)+len(c.Outbox)+len(l.LetGo) == 0 {
		return
	}
	sound := len(l.Digests) == len(c.Records) && len(l.Messages) == len(c.Outbox) && l.Number == head.Link+1 &&
		l.First == head.Record+1 && l.Message == head.Message+1 && l.Hash == l.HashAfter(head.Hash)
	for i := range c.Records {
		sound = sound && c.Records[i].Record == l.First+int64(i)
	}
	for i := range c.Outbox {
		sound = sound && c.Outbox[i].Sequence == l.Message+int64(i)
	}
	if !sound {
		t.fail(errLink)
	}
	subject := head.Subject
	for i := range c.Subjects {
		subject = max(subject, c.Subjects[i].Key)
	}
	at, record, message := journal.Milli(l.At), head.Record+int64(len(l.Digests)), head.Message+int64(len(l.Messages))
	t.insert("ledger ("+linkColumns+")", "", []journal.Row{{l.Number, at, l.First, bytesOf(l.Digests), textOf(l.Answered),
		l.Message, bytesOf(l.Messages), textOf(l.LetGo), l.Hash[:]}})
	t.add("UPDATE ledger_head SET link = ?, record = ?, subject = ?, message = ?, hash = ?, at = ? WHERE one = 1",
		l.Number, record, subject, message, l.Hash[:], at)
	t.answered(l.Answered)
}

func invalid(format string, args ...any) error {
	return &journal.StoreError{Kind: journal.Invalid, Err: fmt.Errorf(format, args...)}
}

// bytesOf returns the digests one behind another; not nil, even if there are none.
func bytesOf(digests []journal.Digest) []byte {
	all := []byte{}
	for i := range digests {
		all = append(all, digests[i][:]...)
	}
	return all
}

// textOf returns runs as JSON; empty for none.
func textOf(runs []journal.Run) string {
	if len(runs) == 0 {
		return ""
	}
	text, _ := json.Marshal(runs)
	return string(text)
}

func (t *tx) records(records []journal.Entry) {
	all := make([]journal.Row, len(records))
	for i := range records {
		r := &records[i]
		if r.Key == 0 && r.Subject != (journal.Subject{}) {
			t.fail(invalid("save record %d: its subject has no key", r.Record))
		}
		all[i] = journal.Row{r.Record, string(r.Kind), r.Key, journal.Milli(r.At), r.Body}
	}
	t.insert("records (record, kind, subject, at, body)", "", all)
}

func (t *tx) answered(runs []journal.Run) {
	var all []journal.Row
	known := map[[2]int64]int64{} // PostgreSQL refuses to change a row twice in a statement
	for _, r := range runs {
		for ; r.First <= r.Last; r.First += journal.MostRun {
			key := [2]int64{r.First, r.Until}
			known[key] = max(known[key], min(r.Last, r.First+journal.MostRun-1))
		}
	}
	for key, last := range known {
		all = append(all, journal.Row{key[0], last, key[1]})
	}
	t.insert("answered (first, last, until)", " ON CONFLICT (first, until) DO UPDATE SET "+replaceAnswered, all)
}

// steps saves the changes of bulk runs.
func (t *tx) steps(c *journal.Changes) {
	t.upsert(journal.RunsTable, rowsOf(c.Runs), replaceRun)
	t.upsert(journal.ItemsTable, rowsOf(c.NewItems), "")
	if len(c.NewItems) > 0 { // a dead letter may have been expunged since it was found
		t.add("DELETE FROM bulk_items WHERE run = ? "+
			"AND NOT EXISTS (SELECT 1 FROM dead_letters d WHERE d.record = bulk_items.record)", c.NewItems[0].Run)
	}
	for i := range c.Items {
		n := &c.Items[i]
		t.add("UPDATE bulk_items SET outcome = ?, code = ?, changed = ?, decided = ? WHERE record = ? AND run = ? "+
			"AND outcome <> ? AND outcome IN ('planned', 'refused', 'decided', 'taken')", string(n.Outcome), n.Code,
			journal.Milli(n.ChangedAt), journal.Milli(n.DecidedAt), n.Record, n.Run, string(n.Outcome))
	}
}

// insert adds statements that insert the rows. head is the table with its columns, tail what follows the values.
func (t *tx) insert(head, tail string, rows []journal.Row) {
	for len(rows) > 0 {
		n := 1
		for n*16 <= min(len(rows), 256) { // few statements, whatever the number of rows
			n *= 16
		}
		args := make([]any, 0, n*len(rows[0]))
		for _, row := range rows[:n] {
			args = append(args, row...)
		}
		values := "(" + strings.Repeat("?, ", len(rows[0])-1) + "?)"
		t.add("INSERT INTO "+head+" VALUES "+strings.Repeat(values+", ", n-1)+values+tail, args...)
		rows = rows[n:]
	}
}

// upsert adds statements that save rows of a projection. set is what to change in existing rows; empty for new rows
// only.
func (t *tx) upsert(table *journal.Table, rows []journal.Row, set string) {
	if set != "" {
		set = " ON CONFLICT (" + strings.Join(table.Columns[:table.Keys], ", ") + ") DO UPDATE SET " + set
	}
	t.insert(table.Name+" ("+strings.Join(table.Columns, ", ")+")", set, rows)
}

// rowsOf returns the rows of the values.
func rowsOf[T any, P interface {
	*T
	Row() journal.Row
}](values []T) []journal.Row {
	all := make([]journal.Row, len(values))
	for i := range values {
		all[i] = P(&values[i]).Row()
	}
	return all
}
