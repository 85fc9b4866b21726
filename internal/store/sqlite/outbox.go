package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"time"

	"retry-worker/internal/journal"
)

// Pending implements journal.Outbox.
func (db *DB) Pending(ctx context.Context, queue string, after int64, limit int) (all []journal.Message, err error) {
	err = db.read(ctx, "read the outbox", func(tx *snapshot) error {
		all = nil
		return queued.list(ctx, tx, "WHERE queue = ? AND sequence > ? ORDER BY sequence LIMIT ?", func(values []driver.Value) error {
			all = append(all, journal.Message{})
			return queued.read(&all[len(all)-1], values)
		}, queue, after, max(limit, 0))
	})
	return all, err
}

// Backlog implements journal.Outbox.
func (db *DB) Backlog(ctx context.Context) (waiting map[string]int64, err error) {
	err = db.read(ctx, "count what waits in the outbox", func(tx *snapshot) error {
		waiting = map[string]int64{}
		return scan(ctx, tx, "SELECT queue, count(*) FROM outbox GROUP BY queue", func(values []driver.Value) error {
			var queue string
			var n int64
			err := errors.Join(into(&queue, values[0]), into(&n, values[1]))
			waiting[queue] = n
			return err
		})
	})
	return waiting, err
}

const (
	heldByOther = "SELECT 1 FROM leases WHERE name = ? AND holder <> ? AND expires_at > ?"
	takeLease   = `INSERT INTO leases (name, holder, expires_at) VALUES (?, ?, ?)
		ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at`
	endLease = "DELETE FROM leases WHERE name = ?"
)

// Lease implements journal.Outbox, by this machine's clock: one process writes the file.
func (db *DB) Lease(ctx context.Context, name, holder string, span time.Duration) (held bool, err error) {
	err = db.write(ctx, func(c *connection) (bool, error) {
		now := time.Now()
		other, err := c.row(heldByOther, name, holder, now.UnixMilli())
		if err != nil || other != nil {
			return false, asFailed("look for a lease", err)
		}
		held = true
		if span <= 0 {
			return true, asFailed("give a lease back", c.exec(endLease, name))
		}
		return true, asFailed("take a lease", c.exec(takeLease, name, holder, ceiling(now.Add(span))))
	})
	return held && err == nil, err
}

// asFailed is failed where there is an error.
func asFailed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return failed(doing, err)
}
