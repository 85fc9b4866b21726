package sqlstore

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"time"

	"retry-worker/internal/journal"
)

const (
	entryColumns = "r.record, r.kind, r.subject, r.at, r.body, coalesce(s.tenant, ''), coalesce(s.policy, ''), coalesce(s.id, '')"
	fromEntries  = " FROM records r LEFT JOIN subjects s ON s.key = r.subject "

	selectEntries = "SELECT " + entryColumns + fromEntries
)

// readEntry reads entryColumns and the columns behind them.
func readEntry(scan scanner, r *journal.Entry, behind ...any) {
	of := &r.Subject
	scan(append([]any{&r.Record, &r.Kind, &r.Key, milli{&r.At}, &r.Body, &of.Tenant, &of.Policy, &of.ID}, behind...)...)
}

func (t *tx) entries(clause string, args ...any) []journal.Entry {
	return collect(t, selectEntries+clause, args, func(scan scanner, r *journal.Entry) { readEntry(scan, r) })
}

// keyOf returns the subject's key; 0 if it is unknown.
func (t *tx) keyOf(of journal.Subject) (key int64) {
	t.one("SELECT key FROM subjects WHERE id = ? AND policy = ? AND tenant = ?", []any{of.ID, of.Policy, of.Tenant}, &key)
	return key
}

// Story implements journal.Reader.
func (r *Reader) Story(ctx context.Context, of journal.Subject) (story journal.Story, found bool, err error) {
	story, err = reading(ctx, r, "read the story of a subject", func(t *tx) journal.Story {
		key := t.keyOf(of)
		if found = key != 0; !found {
			return journal.Story{Subject: of}
		}
		story, err := journal.Tell(of, t.entries("WHERE r.subject = ? ORDER BY r.record", key))
		t.fail(err)
		return story
	})
	return story, found && err == nil, err
}

const selectStates = "SELECT key, tenant, policy, id, body FROM subjects"

// readKeyed reads a row of selectStates. An unreadable body sets Unreadable.
func readKeyed(scan scanner, k *journal.KeyedState) {
	var body string
	scan(&k.Key, &k.Subject.Tenant, &k.Subject.Policy, &k.Subject.ID, &body)
	k.Unreadable = asJSON{&k.SubjectState}.Scan(body)
}

// PendingRetries implements journal.Reader.
func (r *Reader) PendingRetries(ctx context.Context, after int64, limit int) ([]journal.KeyedState, error) {
	return list(ctx, r, "list the pending retries", selectStates+" WHERE key > ? "+
		"AND body -> 'ep' ->> 'state' IN ('scheduled', 'reprocessing') ORDER BY key LIMIT ?", []any{after, max(limit, 0)}, readKeyed)
}

// Named implements journal.Reader.
func (r *Reader) Named(ctx context.Context, part string, limit int) ([]journal.Subject, error) {
	return list(ctx, r, "find subjects by their ids", "SELECT tenant, policy, id FROM subjects WHERE tenant <> '' AND ("+
		r.Contains+"(id, ?) > 0 OR "+r.Contains+"(id, ?) > 0) ORDER BY key DESC LIMIT ?", []any{part, strings.ToUpper(part), limit},
		func(scan scanner, of *journal.Subject) { scan(&of.Tenant, &of.Policy, &of.ID) })
}

// Held implements journal.Reader.
func (r *Reader) Held(ctx context.Context, take func(*journal.KeyedState)) (journal.Head, error) {
	return reading(ctx, r, "read what is held", func(t *tx) journal.Head {
		head := t.head("")
		for scan := range t.rows(selectStates + " WHERE destination <> '' ORDER BY key") {
			var k journal.KeyedState
			if readKeyed(scan, &k); t.err == nil {
				take(&k)
			}
		}
		return head
	})
}

// Head implements journal.Reader.
func (r *Reader) Head(ctx context.Context) (journal.Head, error) {
	return reading(ctx, r, "read the ledger's head", func(t *tx) journal.Head { return t.head("") })
}

const linkColumns = "number, at, first, digests, answered, message, messages, letgo, hash"

// readLink reads linkColumns.
func readLink(scan scanner, l *journal.Link) {
	var digests, messages, hash []byte
	var answered, letGo string
	scan(&l.Number, milli{&l.At}, &l.First, &digests, &answered, &l.Message, &messages, &letGo, &hash)
	l.Digests, l.Messages = digestsOf(digests), digestsOf(messages)
	l.Answered, l.LetGo = runsOf(answered), runsOf(letGo)
	copy(l.Hash[:], hash)
}

// digestsOf splits b into digests. If the last is cut short, its link's hash reveals it.
func digestsOf(b []byte) []journal.Digest {
	const size = len(journal.Digest{})
	all := make([]journal.Digest, (len(b)+size-1)/size)
	for i := range all {
		copy(all[i][:], b[i*size:])
	}
	return all
}

// runsOf parses what textOf returns.
func runsOf(text string) (runs []journal.Run) {
	if text != "" && json.Unmarshal([]byte(text), &runs) != nil {
		return []journal.Run{{First: -1, Last: -1}} // the link's hash reveals this, too
	}
	return runs
}

const messageColumns = "sequence, id, queue, key, subject, type, body, at"

// selectMessages selects messages of the outbox, each with its digest from the ledger.
var selectMessages = "SELECT " + messageColumns + ", " + digestSQL("sequence", "message", "messages") + " FROM outbox "

// readMessage reads a row of selectMessages, and sets Forged if it does not match its digest.
func readMessage(scan scanner, m *journal.Message) {
	var signed []byte
	scan(&m.Sequence, &m.ID, &m.Queue, &m.Key, &m.Subject, &m.Type, &m.Body, milli{&m.At}, &signed)
	digest := m.Digest()
	m.Forged = !bytes.Equal(signed, digest[:])
}

func (t *tx) messages(clause string, args ...any) []journal.Message {
	return collect(t, selectMessages+clause, args, readMessage)
}

// signed returns records, with Forged set on those that do not match their digest in the ledger.
func (t *tx) signed(clause string, args ...any) []journal.Entry {
	query := "SELECT " + entryColumns + ", " + digestSQL("r.record", "first", "digests") + fromEntries + clause
	return collect(t, query, args, func(scan scanner, r *journal.Entry) {
		var signed []byte
		readEntry(scan, r, &signed)
		digest := r.Digest()
		r.Forged = !bytes.Equal(signed, digest[:])
	})
}

// digestSQL returns the SQL for the digest of a record or message with that number, from the links that begin at first
// and have digests; NULL if none has it.
func digestSQL(number, first, digests string) string {
	return strings.NewReplacer("NUMBER", number, "FIRST", "l."+first, "DIGESTS", "l."+digests).Replace(`(SELECT
		CASE WHEN NUMBER < FIRST + length(DIGESTS) / 32 THEN substr(DIGESTS, CAST(1 + 32 * (NUMBER - FIRST) AS INTEGER), 32) END
		FROM ledger l WHERE FIRST <= NUMBER ORDER BY FIRST DESC, l.number DESC LIMIT 1)`)
}

// Records implements journal.Reader.
func (r *Reader) Records(
	ctx context.Context, f journal.RecordFilter, after int64, limit int,
) ([]journal.Entry, error) {
	return reading(ctx, r, "read the audit's records", func(t *tx) []journal.Entry {
		w := t.filter(&f, after)
		all := t.entries(w.String()+" ORDER BY r.record LIMIT ?", append(w.args, max(limit, 0))...)
		for i := range all {
			if err := all[i].Decode(); err != nil {
				t.fail(err)
				return all[:i+1]
			}
		}
		return all
	})
}

// reached returns the first record of the last link that was written before at, with journal.ClockTolerance as a
// margin; 0 for none. As links' instants do not go back, no earlier record is of that instant or later.
func (t *tx) reached(at time.Time) int64 {
	record, _, _ := t.linkBefore(at.Add(-journal.ClockTolerance), 0)
	return record
}

// longestLag is how slow a clock may have been for RecordFilter.Until still to find its records.
const longestLag = 24 * time.Hour

// linkBefore returns the first record and the instant of the last link before an instant, or of the link that many
// links after it, and reports whether there is one.
func (t *tx) linkBefore(instant time.Time, behind int) (record int64, written time.Time, found bool) {
	const query = `WITH RECURSIVE halves (low, high) AS (
		SELECT CAST(0 AS BIGINT), link + 1 FROM ledger_head WHERE one = 1
		UNION ALL
		SELECT CASE WHEN l.at < ? THEN l.number ELSE h.low END, CASE WHEN l.at < ? THEN h.high ELSE l.number END
		FROM halves h JOIN ledger l ON l.number = (h.low + h.high) / 2 WHERE h.low + 1 < h.high
	) SELECT first, at FROM ledger WHERE number = (SELECT max(low) FROM halves) + ?`
	at := journal.CeilMilli(instant)
	found = t.one(query, []any{at, at, behind}, &record, milli{&written})
	return record, written, found
}

// filter returns the conditions of a filter on records r above after.
func (t *tx) filter(f *journal.RecordFilter, after int64) (w where) {
	if !f.Since.IsZero() {
		after = max(after, t.reached(f.Since)-1)
	}
	w.and("r.record > ?", after)
	w.at("r.at >= ?", f.Since)
	w.at("r.at < ?", f.Until)
	if f.Subject != (journal.Subject{}) {
		w.and("r.subject = (SELECT key FROM subjects WHERE id = ? AND policy = ? AND tenant = ?)", f.Subject.ID,
			f.Subject.Policy, f.Subject.Tenant)
	}
	if !f.Until.IsZero() {
		end, written, found := t.linkBefore(f.Until.Add(longestLag), 1)
		if found { // all links since a clock leapt ahead, and was put right, have the same instant
			end, _, found = t.linkBefore(written.Add(time.Millisecond), 1)
		}
		if found {
			w.and("r.record < ?", end)
		}
	}
	return w
}

// Sums implements journal.Reader.
func (r *Reader) Sums(ctx context.Context, from int64) ([]journal.Sum, error) {
	const query = "SELECT slot, name, policy, bucket, n FROM sums WHERE slot >= ? AND cause = '' " +
		"ORDER BY slot, name, policy, bucket"
	return list(ctx, r, "read the sums", query, []any{from}, func(scan scanner, s *journal.Sum) {
		scan(&s.Slot, &s.Name, &s.Policy, &s.Bucket, &s.N)
	})
}

// sumOf returns the SQL for the sum of that name over a group of rows of sums g.
func sumOf(name journal.SumName) string {
	return "CAST(SUM(CASE WHEN g.name = '" + string(name) + "' THEN g.n ELSE 0 END) AS BIGINT)"
}

// Cases implements journal.Reader.
func (r *Reader) Cases(ctx context.Context, weeks []int64, limit int) ([]journal.Cases, error) {
	var w where
	oneOf(&w, "g.slot", weeks)
	recovered, lost := sumOf(journal.SumCaseRecovered), sumOf(journal.SumCaseLost)
	query := "SELECT g.policy, g.cause, g.destination, f.reason, " + recovered + ", " + lost + ", " + sumOf(journal.SumCaseTime) +
		" FROM sums g JOIN fingerprints f ON f.id = g.cause " + w.String() +
		" GROUP BY g.policy, g.cause, g.destination, f.reason ORDER BY " + recovered + " + " + lost +
		" DESC, g.policy, g.cause, g.destination LIMIT ?"
	w.args = append(w.args, max(limit, 0))
	return list(ctx, r, "read what is learnt from", query, w.args, func(scan scanner, c *journal.Cases) {
		var took int64
		scan(&c.Policy, &c.Cause, &c.Destination, &c.Reason, &c.Recovered, &c.Lost, &took)
		c.Took = time.Duration(took) * time.Millisecond
	})
}

// Causes implements journal.Reader.
func (r *Reader) Causes(
	ctx context.Context, f journal.CauseFilter, after *journal.Fingerprint, limit int,
) ([]journal.Cause, error) {
	var w, of where
	w.is("f.policy", f.Policy)
	if len(f.IDs) > 0 {
		oneOf(&w, "f.id", f.IDs)
		oneOf(&of, "g.cause", f.IDs)
	}
	if f.Taught {
		w.and("t.taught IS NOT NULL")
	}
	for column, since := range map[string]time.Time{"began": f.Began, "told": f.Told} {
		w.at("f."+column+" >= ?", since)
		of.at("g.cause IN (SELECT id FROM fingerprints WHERE "+column+" >= ?)", since)
	}
	if after != nil {
		w.and("(-n.failures, f.id) > (?, ?)", -after.Failures, after.ID)
	}
	of.and("g.slot = 0")
	query := `SELECT f.id, f.policy, f.reason, f.classification, f.pattern, f.first_seen, f.last_seen, f.began, f.prior,
		CASE f.news WHEN '' THEN 'null' ELSE f.news END, n.failures, n.exhausted, n.permanent, n.recovered,
		coalesce(t.taught, 'null') FROM fingerprints f
		JOIN (SELECT cause, ` + sumOf(journal.SumCauseFailures) + " AS failures, " + sumOf(journal.SumCauseExhausted) + " AS exhausted, " +
		sumOf(journal.SumCausePermanent) + " AS permanent, " + sumOf(journal.SumCauseRecovered) + " AS recovered FROM sums g" +
		of.String() + ` GROUP BY cause) n ON n.cause = f.id
		LEFT JOIN (SELECT id, policy, body->>'taught' AS taught FROM subjects WHERE tenant = '') t
		ON t.id = f.id AND t.policy = f.policy` + w.String() + " ORDER BY -n.failures, f.id LIMIT ?"
	args := append(append(of.args, w.args...), max(limit, 0))
	return list(ctx, r, "read the causes", query, args, func(scan scanner, c *journal.Cause) {
		scan(&c.ID, &c.Policy, &c.Reason, &c.Classification, &c.Pattern, milli{&c.FirstSeen}, milli{&c.LastSeen},
			milli{&c.Began}, milli{&c.Prior}, asJSON{&c.News}, &c.Failures, &c.Exhausted, &c.Permanent, &c.Recovered,
			asJSON{&c.Taught})
		c.Retried = c.Failures - c.Exhausted - c.Permanent
	})
}

// Moment implements audit.Journal.
func (r *Reader) Moment(ctx context.Context, do func(journal.Moment) error) error {
	return r.Snapshot(ctx, func(q Querier) error {
		t := &tx{Context: ctx, Dialect: r.Dialect, Querier: q}
		if t.ask(t.Long); t.err != nil {
			return t.err
		}
		return do(moment{t})
	})
}

// moment implements journal.Moment.
type moment struct{ *tx }

// answer returns what was read, and the error that reading it left in t. In `return t.read(), t.err` Go may take t.err
// before it reads.
func answer[T any](t *tx, read T) (T, error) { return read, t.err }

func (m moment) Head() (journal.Head, error) { return answer(m.tx, m.head("")) }

func (m moment) IdentityKey() (journal.IdentityKey, error) { return answer(m.tx, m.identityKey()) }

func (t *tx) identityKey() (k journal.IdentityKey) {
	var key []byte
	if t.one("SELECT key FROM identity_key", nil, &key); copy(k[:], key) != len(k) {
		t.fail(invalid("identity_key holds no key: restore the database from a backup"))
	}
	return k
}

func (m moment) Links(after int64, limit int) ([]journal.Link, error) {
	const query = "SELECT " + linkColumns + " FROM ledger WHERE number > ? ORDER BY number LIMIT ?"
	return answer(m.tx, collect(m.tx, query, []any{after, max(limit, 0)}, readLink))
}

func (m moment) Entries(after int64, limit int) ([]journal.Entry, error) {
	return answer(m.tx, m.entries("WHERE r.record > ? ORDER BY r.record LIMIT ?", after, limit))
}

func (m moment) Expunges(backwards bool, take func(*journal.Entry) bool) error {
	query := selectEntries + "WHERE " + expunges + " ORDER BY r.record"
	if backwards {
		query += " DESC"
	}
	for scan := range m.rows(query) {
		var e journal.Entry
		if readEntry(scan, &e); m.err != nil || !take(&e) {
			break
		}
	}
	return m.err
}

func (m moment) Subjects(after int64, limit int) (journal.SubjectPage, error) {
	return answer(m.tx, m.page(after, limit))
}

func (t *tx) page(after int64, limit int) (p journal.SubjectPage) {
	p.Subjects = t.all(journal.SubjectsTable, "WHERE key > ? ORDER BY key LIMIT ?", after, limit)
	if p.Through = math.MaxInt64; len(p.Subjects) > 0 {
		p.Through, _ = p.Subjects[len(p.Subjects)-1][0].(int64)
	}
	p.Letters = t.all(journal.DeadLettersTable, "WHERE subject > ? AND subject <= ? ORDER BY subject", after, p.Through)
	p.Records = t.entries("WHERE r.subject > ? AND r.subject <= ? ORDER BY r.subject, r.record", max(after, 0), p.Through)
	return p
}

func (m moment) Answered() ([]journal.Run, error) {
	var all journal.Runs
	for scan := range m.rows("SELECT first, last, until FROM answered ORDER BY first") {
		var r journal.Run
		scan(&r.First, &r.Last, &r.Until)
		all.Add(r)
	}
	return all.All(), m.err
}

func (m moment) Messages(after int64, limit int) ([]journal.Message, error) {
	return answer(m.tx, m.messages("WHERE sequence > ? ORDER BY sequence LIMIT ?", after, limit))
}

func (m moment) Rows(t *journal.Table) ([]journal.Row, error) { return answer(m.tx, m.all(t, "")) }

// all returns a table's rows, with the types of journal.Row.
func (t *tx) all(table *journal.Table, clause string, args ...any) []journal.Row {
	query := "SELECT " + strings.Join(table.Columns, ", ") + " FROM " + table.Name + " " + clause
	return collect(t, query, args, func(scan scanner, row *journal.Row) {
		r, to := make(journal.Row, len(table.Columns)), make([]any, len(table.Columns))
		for i := range r {
			to[i] = &r[i]
		}
		scan(to...)
		for i, v := range r {
			if b, ok := v.([]byte); ok {
				r[i] = string(b)
			}
		}
		*row = r
	})
}
