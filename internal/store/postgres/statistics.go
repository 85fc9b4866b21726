package postgres

import (
	"context"

	"retry-worker/internal/journal"
)

var _ journal.Statistics = (*Reader)(nil)

// Figures implements journal.Statistics.
func (r *Reader) Figures(ctx context.Context, from int64) (all []journal.Figure, err error) {
	// What is asked for is told apart by the slot, so that no row comes twice.
	const figuresSince = "WHERE t.slot >= $1::bigint OR t.slot = 0 ORDER BY t.slot, t.policy, t.name, t.bucket"
	err = each(ctx, r.pool, figuresTable, func(f *journal.Figure) { all = append(all, *f) }, figuresSince, from)
	if err != nil {
		return nil, storeError("read the figures", err, false)
	}
	return all, nil
}

// Fingerprints implements journal.Statistics; causes with as many failures come in the order of their ids.
func (r *Reader) Fingerprints(ctx context.Context, policy string, limit int) (all []journal.Fingerprint, err error) {
	err = each(ctx, r.pool, fingerprintTable, func(f *journal.Fingerprint) { all = append(all, *f) },
		"WHERE $1::text = '' OR t.policy = $1 ORDER BY t.failures DESC, t.id LIMIT $2", policy, max(limit, 0))
	if err != nil {
		return nil, storeError("read the fingerprints", err, false)
	}
	return all, nil
}
