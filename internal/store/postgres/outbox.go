package postgres

import (
	"context"
	"time"

	"retry-worker/internal/journal"
)

var _ journal.Outbox = (*DB)(nil)

// Pending implements journal.Outbox.
func (d *DB) Pending(ctx context.Context, queue string, after int64, limit int) (all []journal.Message, err error) {
	err = query(ctx, d.pool, func(v *values) {
		var m journal.Message
		v.number("sequence", &m.Sequence)
		messageFields(v, &m)
		all = append(all, m)
	}, "SELECT t.sequence, "+outboxTable.columns("t")+" FROM outbox t WHERE t.queue = $1 AND t.sequence > $2 ORDER BY t.sequence LIMIT $3",
		queue, after, max(limit, 0))
	if err != nil {
		return nil, storeError("read the outbox", err, false)
	}
	return all, nil
}

// Backlog implements journal.Outbox.
func (d *DB) Backlog(ctx context.Context) (map[string]int64, error) {
	waiting := map[string]int64{}
	err := query(ctx, d.pool, func(v *values) {
		var queue string
		v.text("queue", &queue)
		waiting[queue] = v.integer("count")
	}, "SELECT queue, count(*) FROM outbox GROUP BY queue")
	if err != nil {
		return nil, storeError("count what waits in the outbox", err, false)
	}
	return waiting, nil
}

// nowText is the server's clock in milliseconds.
const nowText = "floor(extract(epoch FROM now()) * 1000)::bigint"

// The statements of a lease: $1 is its name, $2 who asks. Each tells whether nobody else holds it.
const (
	takeLease = `INSERT INTO leases (name, holder, expires_at) VALUES ($1, $2, ` + nowText + ` + $3::bigint)
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
		WHERE leases.holder = excluded.holder OR leases.expires_at <= ` + nowText + ` RETURNING true`
	giveLeaseBack = `WITH back AS (DELETE FROM leases WHERE name = $1 AND holder = $2)
		SELECT NOT EXISTS (SELECT FROM leases WHERE name = $1 AND holder <> $2 AND expires_at > ` + nowText + `)`
)

// Lease implements journal.Outbox, by the server's clock.
func (d *DB) Lease(ctx context.Context, name, holder string, span time.Duration) (held bool, err error) {
	text, arguments := giveLeaseBack, []any{name, holder}
	if span > 0 {
		text, arguments = takeLease, append(arguments, ceilMilli(span))
	}
	err = query(ctx, d.writer, func(v *values) { v.truth("held", &held) }, text, arguments...)
	if err != nil {
		return false, storeError("take or give back a lease", err, false)
	}
	return held, nil
}

// ceilMilli is a span in milliseconds, never shorter than it is.
func ceilMilli(span time.Duration) int64 {
	return int64((span + time.Millisecond - 1) / time.Millisecond)
}
