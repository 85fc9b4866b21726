package sqlstore

import (
	"context"
	"errors"
	"math"
	"strings"

	"retry-worker/internal/journal"
)

// Moment implements audit.Journal.
func (r *Reader) Moment(ctx context.Context, do func(journal.Moment) error) error {
	return r.Snapshot(ctx, func(tx Querier) error {
		s := &snapshot{ctx, r.Dialect, tx}
		if err := s.prepareLong(); err != nil {
			return err
		}
		return do(s)
	})
}

// prepareLong lifts the transaction's time-outs.
func (s *snapshot) prepareLong() error {
	if s.Long == "" {
		return nil
	}
	return s.each(s.Long, func(scanner) error { return nil })
}

// The methods below implement journal.Moment.

func (s *snapshot) Head() (journal.Head, error) { return s.head("") }

func (s *snapshot) IdentityKey() (k journal.IdentityKey, err error) {
	var key []byte
	_, err = s.one("SELECT key FROM identity_key", nil, &key)
	if err == nil && copy(k[:], key) != len(k) {
		err = invalid("identity_key holds no key: restore the database from a backup")
	}
	return k, err
}

func (s *snapshot) Links(after int64, limit int) ([]journal.Link, error) {
	return collect(s, selectLinks+"WHERE number > ? ORDER BY number LIMIT ?", []any{after, max(limit, 0)}, readLink)
}

func (s *snapshot) Entries(after int64, limit int) ([]journal.Entry, error) {
	return s.entries("WHERE r.record > ? ORDER BY r.record LIMIT ?", after, limit)
}

func (s *snapshot) Expunges(backwards bool, take func(*journal.Entry) bool) error {
	query := selectEntries + "WHERE " + expunges + " ORDER BY r.record"
	if backwards {
		query += " DESC"
	}
	err := stream(s, query, nil, readEntry, func(e *journal.Entry) error {
		if !take(e) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

var errEnough = errors.New("enough was read")

func (s *snapshot) Subjects(after int64, limit int) (p journal.SubjectPage, err error) {
	p.Subjects, err = s.rows(journal.SubjectsTable, "WHERE key > ? ORDER BY key LIMIT ?", after, limit)
	if p.Through = math.MaxInt64; len(p.Subjects) > 0 {
		p.Through, _ = p.Subjects[len(p.Subjects)-1][0].(int64)
	}
	if err == nil {
		p.Letters, err = s.rows(journal.DeadLettersTable, "WHERE subject > ? AND subject <= ? ORDER BY subject", after, p.Through)
	}
	if err == nil {
		p.Records, err = s.entries("WHERE r.subject > ? AND r.subject <= ? ORDER BY r.subject, r.record", max(after, 0),
			p.Through)
	}
	return p, err
}

func (s *snapshot) Answered() ([]journal.Run, error) {
	var all journal.Runs
	err := s.each("SELECT first, last, until FROM answered ORDER BY first", func(scan scanner) error {
		var r journal.Run
		err := scan(&r.First, &r.Last, &r.Until)
		all.Add(r)
		return err
	})
	return all.All(), err
}

func (s *snapshot) Messages(after int64, limit int) ([]journal.Message, error) {
	return s.messages("WHERE sequence > ? ORDER BY sequence LIMIT ?", after, limit)
}

func (s *snapshot) Rows(t *journal.Table) ([]journal.Row, error) { return s.rows(t, "") }

// rows returns a table's rows, with the types of journal.Row.
func (s *snapshot) rows(t *journal.Table, clause string, args ...any) (all []journal.Row, err error) {
	return collect(s, "SELECT "+strings.Join(t.Columns, ", ")+" FROM "+t.Name+" "+clause, args,
		func(scan scanner, row *journal.Row) error {
			r, to := make(journal.Row, len(t.Columns)), make([]any, len(t.Columns))
			for i := range r {
				to[i] = &r[i]
			}
			err := scan(to...)
			for i, v := range r {
				if b, ok := v.([]byte); ok {
					r[i] = string(b)
				}
			}
			*row = r
			return err
		})
}
