package sqlstore

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"retry-worker/internal/journal"
)

const (
	entryColumns = "r.record, r.kind, r.subject, r.at, r.body, coalesce(s.tenant, ''), coalesce(s.policy, ''), coalesce(s.id, '')"
	fromEntries  = " FROM records r LEFT JOIN subjects s ON s.key = r.subject "

	selectEntries = "SELECT " + entryColumns + fromEntries
)

// ofEntry returns where to scan entryColumns.
func ofEntry(r *journal.Entry) []any {
	return []any{&r.Record, &r.Kind, &r.Key, milli{&r.At}, &r.Body, &r.Subject.Tenant, &r.Subject.Policy, &r.Subject.ID}
}

// readEntry reads a row of selectEntries.
func readEntry(scan scanner, r *journal.Entry) error { return scan(ofEntry(r)...) }

func (s *snapshot) entries(clause string, args ...any) ([]journal.Entry, error) {
	return collect(s, selectEntries+clause, args, readEntry)
}

// keyOf returns the subject's key; 0 if it is unknown.
func (s *snapshot) keyOf(of journal.Subject) (key int64, err error) {
	_, err = s.one("SELECT key FROM subjects WHERE id = ? AND policy = ? AND tenant = ?",
		[]any{of.ID, of.Policy, of.Tenant}, &key)
	return key, err
}

// Story implements journal.Reader.
func (r *Reader) Story(ctx context.Context, of journal.Subject) (story journal.Story, found bool, err error) {
	err = r.read(ctx, "read the story of a subject", func(s *snapshot) error {
		story = journal.Story{Subject: of}
		key, err := s.keyOf(of)
		if found = key != 0; err != nil || !found {
			return err
		}
		records, err := s.entries("WHERE r.subject = ? ORDER BY r.record", key)
		if err == nil {
			story, err = journal.Tell(of, records)
		}
		return err
	})
	return story, found && err == nil, err
}

const selectStates = "SELECT key, tenant, policy, id, body FROM subjects"

// readKeyed reads a row of selectStates. An unreadable body sets Unreadable.
func readKeyed(scan scanner, k *journal.KeyedState) error {
	var body string
	err := scan(&k.Key, &k.Subject.Tenant, &k.Subject.Policy, &k.Subject.ID, &body)
	k.State, k.Unreadable = readState(body)
	return err
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
		func(scan scanner, of *journal.Subject) error { return scan(&of.Tenant, &of.Policy, &of.ID) })
}

// Held implements journal.Holding.
func (r *Reader) Held(ctx context.Context, take func(*journal.KeyedState)) (journal.Head, error) {
	return reading(ctx, r, "read what is held", func(s *snapshot) (head journal.Head, err error) {
		if head, err = s.Head(); err != nil {
			return head, err
		}
		return head, stream(s, selectStates+" WHERE destination <> '' ORDER BY key", nil, readKeyed,
			func(k *journal.KeyedState) error {
				take(k)
				return nil
			})
	})
}

// Head implements journal.Archive.
func (r *Reader) Head(ctx context.Context) (journal.Head, error) {
	return reading(ctx, r, "read the ledger's head", func(s *snapshot) (journal.Head, error) { return s.head("") })
}

const selectLinks = "SELECT number, at, first, digests, answered, message, messages, letgo, hash FROM ledger "

// readLink reads a row of selectLinks.
func readLink(scan scanner, l *journal.Link) error {
	var digests, messages, hash []byte
	var answered, letGo string
	err := scan(&l.Number, milli{&l.At}, &l.First, &digests, &answered, &l.Message, &messages, &letGo, &hash)
	l.Digests, l.Messages = digestsOf(digests), digestsOf(messages)
	l.Answered, l.LetGo = runsOf(answered), runsOf(letGo)
	copy(l.Hash[:], hash)
	return err
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

// Records implements journal.Archive.
func (r *Reader) Records(
	ctx context.Context, f journal.RecordFilter, after int64, limit int,
) ([]journal.Entry, error) {
	return reading(ctx, r, "read the audit's records", func(s *snapshot) (all []journal.Entry, err error) {
		w, possible, err := s.filter(&f, after)
		if err != nil || !possible {
			return nil, err
		}
		all, err = s.entries(w.String()+" ORDER BY r.record LIMIT ?", append(w.args, max(limit, 0))...)
		for i := range all {
			if failed := all[i].Decode(); failed != nil {
				return all[:i+1], failed
			}
		}
		return all, err
	})
}

// reached returns the first record of the last link that was written before t, with journal.ClockTolerance as a margin;
// 0 for none. As links' instants do not go back, no earlier record is of t or later.
func (s *snapshot) reached(t time.Time) (record int64, err error) {
	record, _, _, err = s.linkBefore(t.Add(-journal.ClockTolerance), 0)
	return record, err
}

// longestLag is how slow a clock may have been for RecordFilter.Until still to find its records.
const longestLag = 24 * time.Hour

// linkBefore returns the first record and the instant of the last link before t, or of the link that many links after
// it, and reports whether there is one.
func (s *snapshot) linkBefore(t time.Time, behind int) (record int64, written time.Time, found bool, err error) {
	const query = `WITH RECURSIVE halves (low, high) AS (
		SELECT CAST(0 AS BIGINT), link + 1 FROM ledger_head WHERE one = 1
		UNION ALL
		SELECT CASE WHEN l.at < ? THEN l.number ELSE h.low END, CASE WHEN l.at < ? THEN h.high ELSE l.number END
		FROM halves h JOIN ledger l ON l.number = (h.low + h.high) / 2 WHERE h.low + 1 < h.high
	) SELECT first, at FROM ledger WHERE number = (SELECT max(low) FROM halves) + ?`
	at := journal.CeilMilli(t)
	found, err = s.one(query, []any{at, at, behind}, &record, milli{&written})
	return record, written, found, err
}

// filter returns the conditions of a filter on records r above after; possible is false if none can match.
func (s *snapshot) filter(f *journal.RecordFilter, after int64) (w where, possible bool, err error) {
	if !f.Since.IsZero() {
		reached, err := s.reached(f.Since)
		if err != nil {
			return w, false, err
		}
		after = max(after, reached-1)
		w.and("r.at >= ?", journal.CeilMilli(f.Since))
	}
	w.and("r.record > ?", after)
	if f.Subject != (journal.Subject{}) {
		key, err := s.keyOf(f.Subject)
		if err != nil || key == 0 {
			return w, false, err
		}
		w.and("r.subject = ?", key)
	}
	if !f.Until.IsZero() {
		w.and("r.at < ?", journal.CeilMilli(f.Until))
		end, written, found, err := s.linkBefore(f.Until.Add(longestLag), 1)
		if err == nil && found { // all links since a clock leapt ahead, and was put right, have the same instant
			end, _, found, err = s.linkBefore(written.Add(time.Millisecond), 1)
		}
		if err != nil {
			return w, false, err
		}
		if found {
			w.and("r.record < ?", end)
		}
	}
	return w, true, nil
}

// Sums implements journal.Statistics.
func (r *Reader) Sums(ctx context.Context, from int64, names ...journal.SumName) ([]journal.Sum, error) {
	var w where
	w.and("slot >= ? AND cause = ''", from)
	if len(names) > 0 {
		oneOf(&w, "name", names)
	}
	query := "SELECT slot, name, policy, bucket, n FROM sums" + w.String() + " ORDER BY slot, name, policy, bucket"
	return list(ctx, r, "read the sums", query, w.args, func(scan scanner, s *journal.Sum) error {
		return scan(&s.Slot, &s.Name, &s.Policy, &s.Bucket, &s.N)
	})
}

// sumOf returns the SQL for the sum of that name over a group of rows of sums g.
func sumOf(name journal.SumName) string {
	return "CAST(SUM(CASE WHEN g.name = '" + string(name) + "' THEN g.n ELSE 0 END) AS BIGINT)"
}

// Cases implements journal.Statistics.
func (r *Reader) Cases(ctx context.Context, weeks []int64, limit int) ([]journal.Cases, error) {
	var w where
	oneOf(&w, "g.slot", weeks)
	recovered, lost := sumOf(journal.SumCaseRecovered), sumOf(journal.SumCaseLost)
	query := "SELECT g.policy, g.cause, g.destination, f.reason, " + recovered + ", " + lost + ", " + sumOf(journal.SumCaseTime) +
		" FROM sums g JOIN fingerprints f ON f.id = g.cause " + w.String() +
		" GROUP BY g.policy, g.cause, g.destination, f.reason ORDER BY " + recovered + " + " + lost +
		" DESC, g.policy, g.cause, g.destination LIMIT ?"
	read := func(scan scanner, c *journal.Cases) error {
		var took int64
		err := scan(&c.Policy, &c.Cause, &c.Destination, &c.Reason, &c.Recovered, &c.Lost, &took)
		c.Took = time.Duration(took) * time.Millisecond
		return err
	}
	return list(ctx, r, "read what is learnt from", query, append(w.args, max(limit, 0)), read)
}

// Causes implements journal.Statistics.
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
		if !since.IsZero() {
			w.and("f."+column+" >= ?", journal.CeilMilli(since))
			of.and("g.cause IN (SELECT id FROM fingerprints WHERE "+column+" >= ?)", journal.CeilMilli(since))
		}
	}
	if after != nil {
		w.and("(-n.failures, f.id) > (?, ?)", -after.Failures, after.ID)
	}
	of.and("g.slot = 0")
	query := "SELECT f." + strings.Join(journal.FingerprintsTable.Columns, ", f.") + `, n.failures, n.exhausted, n.permanent,
		n.recovered, t.taught FROM fingerprints f
		JOIN (SELECT cause, ` + sumOf(journal.SumCauseFailures) + " AS failures, " + sumOf(journal.SumCauseExhausted) + " AS exhausted, " +
		sumOf(journal.SumCausePermanent) + " AS permanent, " + sumOf(journal.SumCauseRecovered) + " AS recovered FROM sums g" +
		of.String() + ` GROUP BY cause) n ON n.cause = f.id
		LEFT JOIN (SELECT id, policy, body->>'taught' AS taught FROM subjects WHERE tenant = '') t
		ON t.id = f.id AND t.policy = f.policy` + w.String() + " ORDER BY -n.failures, f.id LIMIT ?"
	args := append(append(of.args, w.args...), max(limit, 0))
	return list(ctx, r, "read the causes", query, args, func(scan scanner, c *journal.Cause) error {
		var news string
		var taught *string
		var told int64
		err := scan(&c.ID, &c.Policy, &c.Reason, &c.Classification, &c.Pattern, milli{&c.FirstSeen}, milli{&c.LastSeen},
			milli{&c.Began}, milli{&c.Prior}, &told, &news, &c.Failures, &c.Exhausted, &c.Permanent, &c.Recovered, &taught)
		c.Retried = c.Failures - c.Exhausted - c.Permanent
		if err == nil && news != "" {
			err = json.Unmarshal([]byte(news), &c.News)
		}
		if err == nil && taught != nil {
			err = json.Unmarshal([]byte(*taught), &c.Taught)
		}
		return err
	})
}
