package metrics

import "retry-worker/internal/journal"

// bulkHeld is the state of a running run that waits for the engine or the journal, beside journal's own.
const bulkHeld = "held"

// registerBulk registers what is known of bulk runs, with all series at 0.
func (m *Metrics) registerBulk() {
	m.bulkItems = m.counter("retry_worker_bulk_items_total",
		"Dead letters of bulk runs that this replica has decided on (decided), or could not (refused).", "action", "outcome")
	m.bulkRuns = m.gauges("retry_worker_bulk_runs",
		"Bulk runs that have not ended, by state; held are running ones that wait for the engine or the journal; the same "+
			"in every replica.", "state")
	for _, action := range []journal.BulkAction{journal.BulkRetry, journal.BulkDiscard} {
		for _, outcome := range []journal.BulkOutcome{journal.BulkDecided, journal.BulkRefused} {
			m.bulkItems.WithLabelValues(string(action), string(outcome))
		}
	}
	m.SetBulkRuns(nil)
}

// BulkDecided counts a dead letter that a bulk run has decided on.
func (m *Metrics) BulkDecided(a journal.BulkAction) {
	m.bulkItems.WithLabelValues(string(a), string(journal.BulkDecided)).Inc()
}

// BulkRefused counts a dead letter that a bulk run could not decide on.
func (m *Metrics) BulkRefused(a journal.BulkAction) {
	m.bulkItems.WithLabelValues(string(a), string(journal.BulkRefused)).Inc()
}

// SetBulkRuns takes over which runs have not ended.
func (m *Metrics) SetBulkRuns(active []journal.BulkRun) {
	n := map[string]int{string(journal.BulkPreparing): 0, string(journal.BulkRunning): 0, string(journal.BulkPaused): 0,
		bulkHeld: 0}
	for i := range active {
		state := string(active[i].State)
		if active[i].State == journal.BulkRunning && active[i].Hold != "" {
			state = bulkHeld
		}
		n[state]++
	}
	for state, of := range n {
		m.bulkRuns.WithLabelValues(state).Set(float64(of))
	}
}
