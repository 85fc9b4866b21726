package app

import (
	"context"

	"retry-worker/internal/bulk"
	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
	"retry-worker/internal/review"
)

// carryBulk carries bulk runs out while this replica has their lease, until stop ends; what is on its way then is awaited,
// unless hard ends.
func (a *App) carryBulk(stop, hard context.Context, decide *review.Service, memory *journal.Journal) {
	hooks := bulk.Hooks{Decided: a.metrics.BulkDecided, Refused: a.metrics.BulkRefused}
	runner := bulk.NewRunner(a.store, decide, memory, a.clock, a.health.engineUp, hooks, a.log)
	outbox.Lead(stop, hard, a.store, bulk.Lease, a.holder(), runner.Run)
}
