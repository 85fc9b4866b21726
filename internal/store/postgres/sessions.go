package postgres

import (
	"context"
	"crypto/sha256"
	"time"
)

const (
	endSession = `WITH forgotten AS (DELETE FROM ended_sessions WHERE until <= $3)
		INSERT INTO ended_sessions (id, until) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	sessionEnded = "SELECT EXISTS (SELECT FROM ended_sessions WHERE id = $1)"
)

// EndSession implements access.EndedSessions.
func (d *DB) EndSession(ctx context.Context, id [sha256.Size]byte, until, now time.Time) error {
	if _, err := d.writer.Exec(ctx, endSession, id[:], until.UnixMilli(), now.UnixMilli()); err != nil {
		return storeError("end a session", err, false)
	}
	return nil
}

// SessionEnded implements access.EndedSessions.
func (d *DB) SessionEnded(ctx context.Context, id [sha256.Size]byte) (ended bool, err error) {
	if err = d.pool.QueryRow(ctx, sessionEnded, id[:]).Scan(&ended); err != nil {
		return false, storeError("look for an ended session", err, false)
	}
	return ended, nil
}
