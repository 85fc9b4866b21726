package sqlite

import (
	"context"
	"crypto/sha256"
	"time"
)

const (
	forgetSessions = "DELETE FROM ended_sessions WHERE until <= ?"
	endSession     = "INSERT INTO ended_sessions (id, until) VALUES (?, ?) ON CONFLICT DO NOTHING"
	sessionEnded   = "SELECT EXISTS (SELECT 1 FROM ended_sessions WHERE id = ?)"
)

// EndSession implements access.EndedSessions.
func (db *DB) EndSession(ctx context.Context, id [sha256.Size]byte, until, now time.Time) error {
	return db.write(ctx, func(c *connection) (bool, error) {
		return true, asFailed("end a session", firstError(
			func() error { return c.exec(forgetSessions, now.UnixMilli()) },
			func() error { return c.exec(endSession, id[:], until.UnixMilli()) }))
	})
}

// SessionEnded implements access.EndedSessions.
func (db *DB) SessionEnded(ctx context.Context, id [sha256.Size]byte) (ended bool, err error) {
	err = db.read(ctx, "look for an ended session", func(tx *snapshot) error {
		return tx.QueryRowContext(ctx, sessionEnded, id[:]).Scan(&ended)
	})
	return ended, err
}
