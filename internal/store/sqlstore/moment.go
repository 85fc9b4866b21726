package sqlstore

import (
	"context"
	"errors"
	"strings"

	"retry-worker/internal/journal"
)

// Moment implements audit.Journal.
func (r *Reader) Moment(ctx context.Context, do func(journal.Moment) error) error {
	return r.Snapshot(ctx, func(tx Querier) error {
		s := &snapshot{ctx, r.Dialect, tx}
		if err := s.prepareLong(); err != nil {
			return r.Failed("begin to verify", err, false)
		}
		return do(&moment{s})
	})
}

// prepareLong lets the transaction take its time.
func (s *snapshot) prepareLong() error {
	if s.Long == "" {
		return nil
	}
	return s.each(s.Long, func(scanner) error { return nil })
}

// moment implements journal.Moment.
type moment struct{ *snapshot }

func (m *moment) Head() (journal.Head, error) {
	h, err := m.head("")
	return h, m.failed("read the ledger's head", err)
}

func (m *moment) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return m.Failed(doing, err, false)
}

func (m *moment) Links(after int64, limit int) ([]journal.Link, error) {
	all, err := m.links(after, limit)
	return all, m.failed("read the ledger", err)
}

func (m *moment) Entries(after int64, limit int) ([]journal.Entry, error) {
	all, err := m.entries("WHERE r.record > ? ORDER BY r.record LIMIT ?", after, limit)
	return all, m.failed("read the records", err)
}

func (m *moment) Expunges(backwards bool, take func(*journal.Entry) bool) error {
	order := ""
	if backwards {
		order = " DESC"
	}
	err := m.each("SELECT r.record, r.kind, r.at, r.body FROM records r WHERE "+expunges+" ORDER BY r.record"+order,
		func(scan scanner) error {
			var e journal.Entry
			var body string
			if err := scan(&e.Record, &e.Kind, milli{&e.At}, &body); err != nil {
				return err
			}
			if e.Keep(body); !take(&e) {
				return errEnough
			}
			return nil
		})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return m.failed("read the expunges", err)
}

var errEnough = errors.New("enough was read")

func (m *moment) Subjects(after int64, limit int) (p journal.SubjectPage, err error) {
	if p.Subjects, err = m.rows(journal.SubjectsTable, "WHERE key > ? ORDER BY key LIMIT ?", after, limit); err != nil ||
		len(p.Subjects) == 0 {
		return p, m.failed("read the subjects", err)
	}
	p.Through, _ = p.Subjects[len(p.Subjects)-1][0].(int64)
	if p.Letters, err = m.rows(journal.DeadLettersTable, "WHERE subject > ? AND subject <= ? ORDER BY subject", after,
		p.Through); err == nil {
		p.Records, err = m.entries("WHERE r.subject > ? AND r.subject <= ? ORDER BY r.subject, r.record", max(after, 0),
			p.Through)
	}
	return p, m.failed("read the subjects", err)
}

func (m *moment) Answered() ([]journal.Run, error) {
	var all journal.Runs
	err := m.each("SELECT first, last, until FROM answered ORDER BY first", func(scan scanner) error {
		var r journal.Run
		err := scan(&r.First, &r.Last, &r.Until)
		all.Add(r)
		return err
	})
	return all.All(), m.failed("read what was answered", err)
}

func (m *moment) Messages(after int64, limit int) ([]journal.Message, error) {
	all, err := m.messages("WHERE sequence > ? ORDER BY sequence LIMIT ?", after, limit)
	return all, m.failed("read the outbox", err)
}

func (m *moment) Letters() (n int64, err error) {
	_, err = m.one("SELECT count(*) FROM dead_letters", nil, &n)
	return n, m.failed("count the dead letters", err)
}

func (m *moment) Rows(t *journal.Table) ([]journal.Row, error) {
	all, err := m.rows(t, "")
	return all, m.failed("read "+t.Name, err)
}

// rows are a table's, texts and numbers as journal.Row has them.
func (s *snapshot) rows(t *journal.Table, clause string, args ...any) (all []journal.Row, err error) {
	err = s.each("SELECT "+strings.Join(t.Columns, ", ")+" FROM "+t.Name+" "+clause, func(scan scanner) error {
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
		all = append(all, r)
		return err
	}, args...)
	return all, err
}
