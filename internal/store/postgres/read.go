package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"retry-worker/internal/journal"
)

// Reader reads a journal and cannot change it. It implements journal.Reader; its methods may be called
// concurrently.
type Reader struct{ pool *pgxpool.Pool }

var _ journal.Reader = (*Reader)(nil)

// Close ends the connections, once they are idle. It always returns nil.
func (r *Reader) Close() error {
	r.pool.Close()
	return nil
}

// Story implements journal.Reader: it shows one moment, whatever is written meanwhile.
func (r *Reader) Story(ctx context.Context, s journal.Subject) (journal.Story, bool, error) {
	story := journal.Story{Subject: s}
	moment := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	found := false
	err := pgx.BeginTxFunc(ctx, r.pool, moment, func(tx pgx.Tx) (err error) {
		found, err = tell(ctx, tx, &story)
		return err
	})
	if err != nil {
		return journal.Story{}, false, storeError("read a subject's story", err, false)
	}
	return story, found, nil
}

// tell reads the story of its subject; false where there is none. Entries name it, everything else has its key.
func tell(ctx context.Context, tx pgx.Tx, story *journal.Story) (found bool, err error) {
	s := &story.Subject
	err = each(ctx, tx, entriesTable, func(e *journal.Entry) { story.Entries = append(story.Entries, *e) },
		"WHERE t.id = $1 AND t.policy = $2 AND t.tenant = $3 AND t.id <> '' ORDER BY t.record", s.ID, s.Policy, s.Tenant)
	if err != nil {
		return false, err
	}
	var key int64
	err = tx.QueryRow(ctx, "SELECT key FROM subjects WHERE id = $1 AND policy = $2 AND tenant = $3", s.ID, s.Policy, s.Tenant).Scan(&key)
	if errors.Is(err, pgx.ErrNoRows) {
		return len(story.Entries) > 0, nil
	}
	if err != nil {
		return false, err
	}
	return true, errors.Join(
		each(ctx, tx, episodesTable, func(e *journal.KeyedEpisode) { story.Episodes = append(story.Episodes, e.Episode) },
			"WHERE t.subject = $1 ORDER BY t.number", key),
		each(ctx, tx, attemptsTable, func(a *journal.KeyedAttempt) {
			name(a.Attempt, s)
			story.Attempts = append(story.Attempts, *a.Attempt)
		}, "WHERE t.subject = $1 ORDER BY t.record", key),
		each(ctx, tx, deadLettersTable, func(d *journal.KeyedDeadLetter) { story.DeadLetters = append(story.DeadLetters, d.DeadLetter) },
			"WHERE t.subject = $1 ORDER BY t.record, t.id", key),
	)
}

// each gives a table's rows, one by one.
func each[T any](ctx context.Context, q querier, of *table[T], take func(*T), where string, arguments ...any) error {
	return query(ctx, q, func(v *values) {
		row := of.empty()
		of.visit(v, &row)
		take(&row)
	}, "SELECT "+of.columns("t")+" FROM "+of.name+" t "+where, arguments...)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, arguments ...any) (pgx.Rows, error)
}

// query gives a statement's rows, one by one.
func query(ctx context.Context, q querier, take func(*values), sql string, arguments ...any) error {
	rows, err := q.Query(ctx, sql, append([]any{pgx.QueryResultFormats(binaryFormat)}, arguments...)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		v := values{raw: rows.RawValues()}
		if take(&v); v.err != nil {
			return v.err
		}
	}
	return rows.Err()
}

// The last attempt's number is how many there are, those that retention has removed included.
const countText = `SELECT a.number FROM subjects s JOIN LATERAL
	(SELECT number FROM attempts WHERE subject = s.key ORDER BY number DESC LIMIT 1) a ON true
	WHERE s.id = $1 AND s.policy = $2 AND s.tenant = $3`

// CountAttempts implements journal.Reader.
func (r *Reader) CountAttempts(ctx context.Context, s journal.Subject) (n int64, err error) {
	err = query(ctx, r.pool, func(v *values) { v.number("number", &n) }, countText, s.ID, s.Policy, s.Tenant)
	if err != nil {
		return 0, storeError("count a subject's attempts", err, false)
	}
	return n, nil
}

const pendingText = `SELECT s.tenant, s.policy, s.id, e.subject, e.next_retry_time, e.retries, e.state
	FROM episodes e JOIN subjects s ON s.key = e.subject
	WHERE e.state IN ('scheduled', 'reprocessing') AND ($1::text = '' OR s.policy = $1)
		AND (e.next_retry_time, e.subject) > ($2::bigint, $3::bigint)
	ORDER BY e.next_retry_time, e.subject LIMIT $4`

// PendingRetries implements journal.Reader.
func (r *Reader) PendingRetries(ctx context.Context, policy string, after *journal.PendingRetry, limit int) ([]journal.PendingRetry, error) {
	var at, key int64 = -1 << 63, 0
	if after != nil {
		at, key = journal.Milli(after.NextRetryTime), after.Key
	}
	var all []journal.PendingRetry
	err := query(ctx, r.pool, func(v *values) {
		var p journal.PendingRetry
		tenancy(v, &p.Subject)
		v.number("subject", &p.Key)
		v.instant("next_retry_time", &p.NextRetryTime)
		v.number("retries", &p.RetryCount)
		v.text("state", (*string)(&p.State))
		all = append(all, p)
	}, pendingText, policy, at, key, max(limit, 0))
	if err != nil {
		return nil, storeError("list the pending retries", err, false)
	}
	return all, nil
}
