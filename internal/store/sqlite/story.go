package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"

	"retry-worker/internal/journal"
)

const findSubject = "SELECT key FROM subjects WHERE id = ? AND policy = ? AND tenant = ?"

// Story implements journal.Reader.
func (r *Reader) Story(ctx context.Context, s journal.Subject) (story journal.Story, found bool, err error) {
	err = r.read(ctx, "read the story of a subject", func(tx *snapshot) error {
		story = journal.Story{Subject: s}
		key, err := keyOf(ctx, tx, s)
		if err == nil && key != 0 {
			err = tell(ctx, tx, key, &story)
		}
		if err != nil {
			return err
		}
		err = entries.list(ctx, tx, "WHERE id <> '' AND id = ? AND policy = ? AND tenant = ? ORDER BY record",
			func(values []driver.Value) error {
				story.Entries = append(story.Entries, journal.Entry{})
				return entries.read(&story.Entries[len(story.Entries)-1], values)
			}, s.ID, s.Policy, s.Tenant)
		found = key != 0 || len(story.Entries) > 0
		return err
	})
	return story, found && err == nil, err
}

// keyOf the subject; 0 where it is not known.
func keyOf(ctx context.Context, tx *snapshot, s journal.Subject) (key int64, err error) {
	err = tx.QueryRowContext(ctx, findSubject, s.ID, s.Policy, s.Tenant).Scan(&key)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return key, err
}

// tell adds what is kept by the subject's key.
func tell(ctx context.Context, tx *snapshot, key int64, story *journal.Story) error {
	return firstError(
		func() error {
			return episodes.list(ctx, tx, "WHERE subject = ? ORDER BY number", func(values []driver.Value) error {
				row := episodeRow{}
				err := episodes.read(&row, values)
				story.Episodes = append(story.Episodes, row.Episode)
				return err
			}, key)
		},
		func() error {
			return attempts.list(ctx, tx, "WHERE subject = ? ORDER BY record", func(values []driver.Value) error {
				a, err := readAttempt(story.Subject, values)
				story.Attempts = append(story.Attempts, *a)
				return err
			}, key)
		},
		func() error {
			return deadLetters.list(ctx, tx, "WHERE subject = ? ORDER BY record, id", func(values []driver.Value) error {
				row := deadLetterRow{}
				err := deadLetters.read(&row, values)
				story.DeadLetters = append(story.DeadLetters, row.DeadLetter)
				return err
			}, key)
		})
}

// CountAttempts implements journal.Reader.
func (r *Reader) CountAttempts(ctx context.Context, s journal.Subject) (n int64, err error) {
	err = r.read(ctx, "count the attempts of a subject", func(tx *snapshot) error {
		return tx.QueryRowContext(ctx, "SELECT coalesce(max(number), 0) FROM attempts WHERE subject = ("+findSubject+")",
			s.ID, s.Policy, s.Tenant).Scan(&n)
	})
	return n, err
}

// The states are written out so that the index of pending retries serves.
const findPending = `SELECT e.next_retry_time, e.subject, e.retries, e.state, s.tenant, s.policy, s.id
FROM episodes e CROSS JOIN subjects s ON s.key = e.subject
WHERE e.state IN ('scheduled', 'reprocessing') AND (e.next_retry_time, e.subject) > (?, ?) AND (? = '' OR s.policy = ?)
ORDER BY e.next_retry_time, e.subject LIMIT ?`

// PendingRetries implements journal.Reader.
func (r *Reader) PendingRetries(ctx context.Context, policy string, after *journal.PendingRetry, limit int) (all []journal.PendingRetry, err error) {
	from, key := int64(math.MinInt64), int64(math.MinInt64)
	if after != nil {
		from, key = journal.Milli(after.NextRetryTime), after.Key
	}
	err = r.read(ctx, "list the pending retries", func(tx *snapshot) error {
		all = nil
		return each(ctx, tx, findPending, func(rows *sql.Rows) error {
			var p journal.PendingRetry
			var at int64
			err := rows.Scan(&at, &p.Key, &p.RetryCount, &p.State, &p.Subject.Tenant, &p.Subject.Policy, &p.Subject.ID)
			p.NextRetryTime = journal.FromMilli(at)
			all = append(all, p)
			return err
		}, from, key, policy, policy, max(limit, 0))
	})
	return all, err
}

// list calls read with the values of all columns of the rows that the clause names.
func (t *table[T]) list(ctx context.Context, tx *snapshot, clause string, read func(values []driver.Value) error, args ...any) error {
	return scan(ctx, tx, "SELECT "+t.names("")+" FROM "+t.name+" "+clause, read, args...)
}

func each(ctx context.Context, tx *snapshot, query string, row func(*sql.Rows) error, args ...any) (err error) {
	rows, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
