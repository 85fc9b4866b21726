package app

import (
	"context"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
)

// carryBulk carries bulk runs out while this replica has their lease, until stop ends; what is on its way then is
// awaited, unless hard ends.
func (a *App) carryBulk(stop, hard context.Context, decide *deadletter.Service, memory *journal.Journal) {
	hooks := deadletter.Hooks{Decided: a.metrics.BulkDecided, Refused: a.metrics.BulkRefused}
	runner := deadletter.NewRunner(a.store, decide, memory, a.clock, a.health.engineUp, hooks, a.log)
	outbox.Lead(stop, hard, a.store, deadletter.BulkLease, a.holder(), runner.Run)
}
