package postgres

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"retry-worker/internal/journal"
)

var _ journal.Archive = (*Reader)(nil)

// Head implements journal.Archive.
func (r *Reader) Head(ctx context.Context) (head journal.Head, err error) {
	found := false
	err = query(ctx, r.pool, func(v *values) { head, found = readHead(v), true }, headText)
	if err == nil && !found {
		err = errNoHead
	}
	if err != nil {
		return journal.Head{}, storeError("read the ledger's head", err, false)
	}
	return head, nil
}

// Links implements journal.Archive.
func (r *Reader) Links(ctx context.Context, after int64, limit int) (all []journal.Link, err error) {
	err = query(ctx, r.pool, func(v *values) {
		var l journal.Link
		v.number("number", &l.Number)
		v.instant("at", &l.At)
		v.number("first", &l.First)
		v.fixed("hash", l.Hash[:])
		l.Digests = v.digests()
		all = append(all, l)
	}, "SELECT number, at, first, hash, digests FROM ledger WHERE number > $1 ORDER BY number LIMIT $2", after, max(limit, 0))
	if err != nil {
		return nil, storeError("read the ledger", err, false)
	}
	return all, nil
}

// digests of a link, one behind the other.
func (v *values) digests() []journal.Digest {
	width := 0
	if v.at < len(v.raw) {
		width = len(v.raw[v.at])
	}
	const size = len(journal.Digest{})
	b := v.next("digests", width)
	all := make([]journal.Digest, (len(b)+size-1)/size) // a last one that was cut short is told by its link's hash
	for i := range all {
		copy(all[i][:], b[i*size:])
	}
	return all
}

// Records implements journal.Archive.
func (r *Reader) Records(ctx context.Context, f journal.RecordFilter, after int64, limit int) ([]journal.Record, error) {
	var all []journal.Record
	moment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, r.pool, moment, func(tx pgx.Tx) (err error) {
		s := selection{filter: &f, after: after, through: math.MaxInt64}
		if err := s.narrow(ctx, tx, limit); err != nil {
			return err
		}
		attempts, err := s.attempts(ctx, tx)
		if err != nil {
			return err
		}
		entries, err := s.entries(ctx, tx)
		all = journal.MergeRecords(attempts, entries)
		return err
	})
	if err != nil {
		return nil, storeError("read the audit's records", err, false)
	}
	return all, nil
}

// selection is what a filter lets through of records in a range.
type selection struct {
	filter         *journal.RecordFilter
	after, through int64 // the first excluded, the last included
}

// boundsText asks for the record up to which all are purged, and for the first ones of the links that the two
// instants lead to: as far before and after a period as records may be from their link's time.
const boundsText = `SELECT h.purged,
	coalesce((SELECT first FROM ledger WHERE latest >= $1::bigint - a.apart ORDER BY latest, number LIMIT 1), 9223372036854775807),
	coalesce((SELECT first FROM ledger WHERE latest >= $2::bigint + a.apart ORDER BY latest, number LIMIT 1), 9223372036854775807)
FROM ledger_head h, (SELECT coalesce(max(apart), 0) AS apart FROM (SELECT apart FROM ledger ORDER BY number DESC LIMIT 1) l) a
WHERE h.one = 1`

// narrow finds the range of at most limit records that the filter lets through.
func (s *selection) narrow(ctx context.Context, tx pgx.Tx, limit int) error {
	since, until := s.filter.Since, s.filter.Until
	err := query(ctx, tx, func(v *values) {
		if purged := v.integer("purged"); s.after >= 0 { // below that an auditor looks for what was put in
			s.after = max(s.after, purged)
		}
		if first := v.integer("since"); !since.IsZero() {
			s.after = max(s.after, first-1)
		}
		if first := v.integer("until"); !until.IsZero() {
			s.through = first - 1
		}
	}, boundsText, ceiling(since), ceiling(until))
	if err != nil {
		return err
	}
	var c clause
	arms := [...]string{"SELECT t.record FROM attempts t WHERE " + s.ofAttempts(&c), "SELECT t.record FROM entries t WHERE " + s.ofEntries(&c)}
	end := " ORDER BY record LIMIT " + c.argument(max(limit, 0))
	return query(ctx, tx, func(v *values) { v.number("through", &s.through) },
		"SELECT coalesce(max(record), 0) FROM (("+arms[0]+end+") UNION ALL ("+arms[1]+end+")"+end+") page", c.arguments...)
}

// ceiling is the first whole millisecond at or after t; 0 for the zero time.
func ceiling(t time.Time) int64 {
	ms := journal.Milli(t)
	if !t.IsZero() && time.UnixMilli(ms).Before(t) {
		ms++
	}
	return ms
}

// clause gathers the arguments of a statement.
type clause struct{ arguments []any }

// argument is how the statement names one.
func (c *clause) argument(v any) string {
	c.arguments = append(c.arguments, v)
	return "$" + strconv.Itoa(len(c.arguments)) + "::" + typeOf(v)
}

func typeOf(v any) string {
	switch v.(type) {
	case string:
		return "text"
	case []string:
		return "text[]"
	default:
		return "bigint"
	}
}

// ofAttempts is the condition on attempts t. A subject's are found by their own index, which the sum sees to.
func (s *selection) ofAttempts(c *clause) string {
	of := s.filter.Subject
	if of == (journal.Subject{}) {
		return s.within(c, "t.record", "t.analysed_at")
	}
	return "t.subject = (SELECT key FROM subjects WHERE id = " + c.argument(of.ID) + " AND policy = " + c.argument(of.Policy) +
		" AND tenant = " + c.argument(of.Tenant) + ") AND " + s.within(c, "t.record + 0", "t.analysed_at")
}

// ofEntries is the condition on entries t. Those with an empty id are in no index.
func (s *selection) ofEntries(c *clause) string {
	of := s.filter.Subject
	if of == (journal.Subject{}) {
		return s.within(c, "t.record", "t.at")
	}
	record, indexed := "t.record", ""
	if of.ID != "" {
		record, indexed = "t.record + 0", " AND t.id <> ''"
	}
	return "t.id = " + c.argument(of.ID) + " AND t.policy = " + c.argument(of.Policy) + " AND t.tenant = " + c.argument(of.Tenant) +
		indexed + " AND " + s.within(c, record, "t.at")
}

// within is the condition on the columns that hold the record's number and its instant.
func (s *selection) within(c *clause, record, instant string) string {
	conditions := []string{record + " > " + c.argument(s.after), record + " <= " + c.argument(s.through)}
	if t := s.filter.Since; !t.IsZero() {
		conditions = append(conditions, instant+" >= "+c.argument(ceiling(t)))
	}
	if t := s.filter.Until; !t.IsZero() {
		conditions = append(conditions, instant+" < "+c.argument(ceiling(t)))
	}
	return strings.Join(conditions, " AND ")
}

func (s *selection) attempts(ctx context.Context, tx pgx.Tx) (all []journal.Record, err error) {
	var c clause
	err = query(ctx, tx, func(v *values) {
		r, k := journal.Record{}, emptyAttempt()
		tenancy(v, &r.Subject)
		attemptFields(v, &k)
		name(k.Attempt, &r.Subject)
		r.Attempt = k.Attempt
		all = append(all, r)
	}, "SELECT s.tenant, s.policy, s.id, "+attemptsTable.columns("t")+" FROM attempts t JOIN subjects s ON s.key = t.subject WHERE "+
		s.ofAttempts(&c)+" ORDER BY t.record", c.arguments...)
	return all, err
}

func (s *selection) entries(ctx context.Context, tx pgx.Tx) (all []journal.Record, err error) {
	var c clause
	err = each(ctx, tx, entriesTable, func(e *journal.Entry) {
		all = append(all, journal.Record{Subject: e.Subject, Entry: new(*e)})
	}, "WHERE "+s.ofEntries(&c)+" ORDER BY t.record", c.arguments...)
	return all, err
}
