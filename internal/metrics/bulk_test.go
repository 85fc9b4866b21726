package metrics_test

import (
	"testing"

	"retry-worker/internal/journal"
)

func TestBulkRuns(t *testing.T) {
	m, _, url := served(t)
	m.BulkDecided(journal.BulkRetry)
	m.BulkDecided(journal.BulkRetry)
	m.BulkRefused(journal.BulkDiscard)
	m.SetBulkRuns([]journal.BulkRun{
		{State: journal.BulkRunning}, {State: journal.BulkRunning, Hold: "engine_down"}, {State: journal.BulkPaused}, {State: journal.BulkRunning},
	})
	wantLines(t, scrape(t, url), map[string]bool{
		`retry_worker_bulk_items_total{action="retry",outcome="decided"} 2`:   true,
		`retry_worker_bulk_items_total{action="discard",outcome="refused"} 1`: true,
		`retry_worker_bulk_runs{state="running"} 2`:                           true,
		`retry_worker_bulk_runs{state="held"} 1`:                              true,
		`retry_worker_bulk_runs{state="paused"} 1`:                            true,
		`retry_worker_bulk_runs{state="preparing"} 0`:                         true,
	})
	m.SetBulkRuns(nil)
	wantLines(t, scrape(t, url), map[string]bool{
		`retry_worker_bulk_runs{state="running"} 0`: true, `retry_worker_bulk_runs{state="held"} 0`: true,
		`retry_worker_bulk_runs{state="paused"} 0`: true,
	})
}
