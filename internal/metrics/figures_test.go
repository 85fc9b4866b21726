package metrics_test

import (
	"strings"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// TestDeadLetters: each policy's states add up over teams and reasons, the open ones are there by who must act and why, what is
// gone falls to 0, and the oldest open one's age is there only while there is one.
func TestDeadLetters(t *testing.T) {
	m, _, url := served(t)
	now := analysed
	const byCadastro = `retry_worker_dead_letters_open{policy="tiss-submission",reason="INVALID_PATIENT_DATA",team="cadastro"}`
	count := func(policy string, state journal.DeadLetterState, n int64, age time.Duration) deadletter.Count {
		c := deadletter.Count{Policy: policy, State: state, N: n}
		if age > 0 {
			c.Oldest = now.Add(-age)
		}
		return c
	}
	m.SetDeadLetters([]deadletter.Count{
		count("tiss-submission", journal.DeadLetterOpen, 70, time.Hour), count("tiss-submission", journal.DeadLetterOpen, 31, 2*time.Hour),
		count("tiss-submission", journal.DeadLetterDiscarded, 4, 0), count("gone", journal.DeadLetterOpen, 1, time.Minute),
		count("reprocessed", journal.DeadLetterReprocessing, 2, time.Minute),
		{Policy: "tiss-submission", State: journal.DeadLetterOpen, Team: "cadastro", Reason: "INVALID_PATIENT_DATA", N: 7},
	}, now)
	m.SetDeadLettersDue("2h", []deadletter.Count{{Policy: "whatsapp-message", N: 9}, {Policy: "tiss-submission", N: 1, Cents: 5}})
	m.SetDeadLettersDue("2h", []deadletter.Count{{Policy: "tiss-submission", Team: "ti", N: 2, Cents: 3100050}, {Policy: "tiss-submission", N: 1}})
	wantLines(t, scrape(t, url), map[string]bool{
		`retry_worker_dead_letters_due{policy="tiss-submission",within="2h"} 3`:              true,
		`retry_worker_dead_letters_due_amount{policy="tiss-submission",within="2h"} 31000.5`: true,
		`retry_worker_dead_letters_due{policy="whatsapp-message",within="2h"} 0`:             true,
		`retry_worker_dead_letters{policy="tiss-submission",state="open"} 108`:               true,
		`retry_worker_dead_letters{policy="tiss-submission",state="discarded"} 4`:            true,
		`retry_worker_dead_letters_open{policy="tiss-submission",reason="",team=""} 101`:     true,
		byCadastro + ` 7`: true,
		`retry_worker_dead_letters{policy="tiss-submission",state="reprocessing"} 0`: true,
		`retry_worker_dead_letters{policy="gone",state="open"} 1`:                    true,
		`retry_worker_dead_letters_oldest_seconds{policy="tiss-submission"} 7200`:    true,
		`retry_worker_dead_letters_oldest_seconds{policy="gone"} 60`:                 true,
		`retry_worker_dead_letters_oldest_seconds{policy="reprocessed"}`:             false,
		`retry_worker_dead_letters_oldest_seconds{policy="job-queue"}`:               false,
	})
	m.SetDeadLetters([]deadletter.Count{{Policy: "tiss-submission", State: journal.DeadLetterOpen, N: 1, Oldest: now.Add(time.Hour)}}, now)
	wantLines(t, scrape(t, url), map[string]bool{
		`retry_worker_dead_letters{policy="tiss-submission",state="open"} 1`: true,
		`retry_worker_dead_letters{policy="gone",state="open"} 0`:            true,
		byCadastro + ` 0`: true,
		`retry_worker_dead_letters{policy="tiss-submission",state="discarded"} 0`: true,
		`retry_worker_dead_letters_oldest_seconds{policy="tiss-submission"} 0`:    true, // another replica's clock is ahead
		`retry_worker_dead_letters_oldest_seconds{policy="gone"}`:                 false,
	})
}

// wantLines fails where a beginning of a line is missing, or is there and must not be.
func wantLines(t *testing.T, text string, lines map[string]bool) {
	t.Helper()
	for line, want := range lines {
		if got := strings.Contains("\n"+text, "\n"+line); got != want {
			t.Errorf("%s: there is one: %v, want %v", line, got, want)
		}
	}
}

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
	})
	m.SetBulkRuns(nil)
	wantLines(t, scrape(t, url), map[string]bool{
		`retry_worker_bulk_runs{state="running"} 0`: true, `retry_worker_bulk_runs{state="held"} 0`: true,
		`retry_worker_bulk_runs{state="paused"} 0`: true,
	})
}
