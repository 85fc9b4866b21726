package sqlite

import (
	"context"
	"database/sql/driver"

	"retry-worker/internal/journal"
)

// Figures implements journal.Statistics.
func (r *Reader) Figures(ctx context.Context, from int64) (all []journal.Figure, err error) {
	err = r.read(ctx, "read the figures", func(tx *snapshot) error {
		all = nil
		return figures.list(ctx, tx, "WHERE slot >= ?1 OR slot = 0 ORDER BY slot, policy, name, bucket", func(values []driver.Value) error {
			all = append(all, journal.Figure{})
			return figures.read(&all[len(all)-1], values)
		}, from)
	})
	return all, err
}

// Fingerprints implements journal.Statistics; causes with as many failures come in the order of their ids.
func (r *Reader) Fingerprints(ctx context.Context, policy string, limit int) (all []journal.Fingerprint, err error) {
	err = r.read(ctx, "read the fingerprints", func(tx *snapshot) error {
		all = nil
		return fingerprints.list(ctx, tx, "WHERE ?1 IN ('', policy) ORDER BY failures DESC, id LIMIT ?2", func(values []driver.Value) error {
			all = append(all, journal.Fingerprint{})
			return fingerprints.read(&all[len(all)-1], values)
		}, policy, max(limit, 0))
	})
	return all, err
}
