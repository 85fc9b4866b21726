package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"
	"strings"
	"time"

	"retry-worker/internal/journal"
)

// Head implements journal.Archive.
func (r *Reader) Head(ctx context.Context) (head journal.Head, err error) {
	err = r.read(ctx, "read the ledger's head", func(tx *snapshot) error {
		found := false
		err := scan(ctx, tx, loadHead, func(values []driver.Value) (err error) {
			head, err = readHead(values)
			found = true
			return err
		})
		if err == nil && !found {
			err = errNoHead
		}
		return err
	})
	return head, err
}

// errNoHead is what a damaged database is met with.
var errNoHead = errors.New("found no row in ledger_head, expected one")

// Links implements journal.Archive.
func (r *Reader) Links(ctx context.Context, after int64, limit int) (all []journal.Link, err error) {
	err = r.read(ctx, "read the ledger", func(tx *snapshot) error {
		all = nil
		return scan(ctx, tx, "SELECT number, at, first, hash, digests FROM ledger WHERE number > ? ORDER BY number LIMIT ?",
			func(values []driver.Value) error {
				var l journal.Link
				var at int64
				err := errors.Join(into(&l.Number, values[0]), into(&at, values[1]), into(&l.First, values[2]), fill(l.Hash[:], values[3]))
				if err == nil {
					l.Digests, err = digests(values[4])
				}
				l.At = journal.FromMilli(at)
				all = append(all, l)
				return err
			}, after, max(limit, 0))
	})
	return all, err
}

// digests of a link, one behind the other.
func digests(v driver.Value) ([]journal.Digest, error) {
	b, err := as[[]byte](v)
	if err != nil {
		return nil, err
	}
	const size = len(journal.Digest{})
	all := make([]journal.Digest, (len(b)+size-1)/size) // a last one that was cut short is told by its link's hash
	for i := range all {
		copy(all[i][:], b[i*size:])
	}
	return all, nil
}

// Records implements journal.Archive.
func (r *Reader) Records(ctx context.Context, f journal.RecordFilter, after int64, limit int) (all []journal.Record, err error) {
	err = r.read(ctx, "read the audit's records", func(tx *snapshot) error {
		all = nil
		p, err := page(ctx, tx, &f, after, limit)
		if err != nil || p.through == 0 {
			return err
		}
		attempts, err := p.attempts(ctx, tx)
		if err != nil {
			return err
		}
		entries, err := p.entries(ctx, tx)
		all = journal.MergeRecords(attempts, entries)
		return err
	})
	return all, err
}

// selection is what a filter lets through of records in a range.
type selection struct {
	after, through int64 // the first excluded, the last included
	filter         *journal.RecordFilter
	key            int64 // of the filter's subject, 0 where it is not known
}

const (
	lastPurged = "SELECT purged FROM ledger_head WHERE one = 1"
	// findSince is the first record, and findApart how far records are from the time that finds them.
	findApart = "SELECT coalesce(max(apart), 0) FROM (SELECT apart FROM ledger ORDER BY number DESC LIMIT 1)"
	findSince = "SELECT first FROM ledger WHERE latest >= ? ORDER BY latest, number LIMIT 1"
)

// page is the range of at most limit records that the filter lets through; through is 0 where there are none.
func page(ctx context.Context, tx *snapshot, f *journal.RecordFilter, after int64, limit int) (*selection, error) {
	s := &selection{after: after, through: math.MaxInt64, filter: f}
	err := s.bound(ctx, tx)
	if err == nil && f.Subject != (journal.Subject{}) {
		s.key, err = keyOf(ctx, tx, f.Subject)
	}
	if err != nil {
		return nil, err
	}
	attempts, args := s.ofAttempts()
	entries, more := s.ofEntries()
	query := "SELECT coalesce(max(record), 0) FROM (SELECT a.record FROM attempts a WHERE " + attempts +
		" UNION ALL SELECT e.record FROM entries e WHERE " + entries + " ORDER BY record LIMIT ?)"
	args = append(append(args, more...), max(limit, 0))
	err = tx.QueryRowContext(ctx, query, args...).Scan(&s.through)
	return s, err
}

// bound narrows the range down to records that were not purged and may be of the filter's period.
func (s *selection) bound(ctx context.Context, tx *snapshot) error {
	var purged, apart, first int64
	err := errors.Join(tx.QueryRowContext(ctx, lastPurged).Scan(&purged), tx.QueryRowContext(ctx, findApart).Scan(&apart))
	if err != nil {
		return err
	}
	if s.after >= 0 { // below that an auditor looks for what was put in
		s.after = max(s.after, purged)
	}
	if !s.filter.Since.IsZero() {
		if first, err = firstSince(ctx, tx, ceiling(s.filter.Since)-apart); err != nil {
			return err
		}
		s.after = max(s.after, first-1)
	}
	if !s.filter.Until.IsZero() {
		first, err = firstSince(ctx, tx, ceiling(s.filter.Until)+apart)
		s.through = first - 1
	}
	return err
}

// firstSince is the first record of the first link whose time is ms or later; the largest number where there
// is none.
func firstSince(ctx context.Context, tx *snapshot, ms int64) (first int64, err error) {
	err = tx.QueryRowContext(ctx, findSince, ms).Scan(&first)
	if errors.Is(err, sql.ErrNoRows) {
		return math.MaxInt64, nil
	}
	return first, err
}

// ceiling is the first whole millisecond at or after t.
func ceiling(t time.Time) int64 {
	ms := t.UnixMilli()
	if time.UnixMilli(ms).Before(t) {
		ms++
	}
	return ms
}

// ofAttempts is the condition on attempts a. A subject's are found by their own index.
func (s *selection) ofAttempts() (string, []any) {
	if s.filter.Subject == (journal.Subject{}) {
		return s.within("a.record", "a.analysed_at")
	}
	condition, args := s.within("+a.record", "a.analysed_at")
	return condition + " AND a.subject = ?", append(args, s.key)
}

// ofEntries is the condition on entries e.
func (s *selection) ofEntries() (string, []any) {
	of := s.filter.Subject
	switch {
	case of == journal.Subject{}:
		return s.within("e.record", "e.at")
	case of.ID == "": // not in the index
		condition, args := s.within("e.record", "e.at")
		return condition + " AND e.id = '' AND e.policy = ? AND e.tenant = ?", append(args, of.Policy, of.Tenant)
	default:
		condition, args := s.within("+e.record", "e.at")
		return condition + " AND e.id <> '' AND e.id = ? AND e.policy = ? AND e.tenant = ?", append(args, of.ID, of.Policy, of.Tenant)
	}
}

// within is the condition on the columns that hold the record's number and its instant.
func (s *selection) within(record, instant string) (string, []any) {
	conditions, args := []string{record + " > ?", record + " <= ?"}, []any{s.after, s.through}
	if t := s.filter.Since; !t.IsZero() {
		conditions, args = append(conditions, instant+" >= ?"), append(args, ceiling(t))
	}
	if t := s.filter.Until; !t.IsZero() {
		conditions, args = append(conditions, instant+" < ?"), append(args, ceiling(t))
	}
	return strings.Join(conditions, " AND "), args
}

func (s *selection) attempts(ctx context.Context, tx *snapshot) (all []journal.Record, err error) {
	condition, args := s.ofAttempts()
	query := "SELECT s.tenant, s.policy, s.id, " + attempts.names("a.") +
		" FROM attempts a CROSS JOIN subjects s ON s.key = a.subject WHERE " + condition + " ORDER BY a.record"
	err = scan(ctx, tx, query, func(values []driver.Value) error {
		var of journal.Subject
		err := errors.Join(into(&of.Tenant, values[0]), into(&of.Policy, values[1]), into(&of.ID, values[2]))
		if err != nil {
			return err
		}
		a, err := readAttempt(of, values[3:])
		all = append(all, journal.Record{Subject: of, Attempt: a})
		return err
	}, args...)
	return all, err
}

func (s *selection) entries(ctx context.Context, tx *snapshot) (all []journal.Record, err error) {
	condition, args := s.ofEntries()
	err = scan(ctx, tx, "SELECT "+entries.names("e.")+" FROM entries e WHERE "+condition+" ORDER BY e.record",
		func(values []driver.Value) error {
			e := new(journal.Entry)
			err := entries.read(e, values)
			all = append(all, journal.Record{Subject: e.Subject, Entry: e})
			return err
		}, args...)
	return all, err
}
