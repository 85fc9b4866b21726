package metrics_test

import (
	"strings"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/metrics"
	"retry-worker/internal/notify"
)

// TestFigures: before the journal was read nothing is told of it. Then each policy's states add up over teams and reasons, the
// open ones are there by who must act and why, and an age, an amount or a wait only while there is something to have it.
func TestFigures(t *testing.T) {
	m, url := served(t)
	now := analysed
	if text := scrape(t, url); strings.Contains(text, "retry_worker_dead_letters") || strings.Contains(text, "retry_worker_outbox_pending") {
		t.Errorf("figures of a journal that was not read: %s", text)
	}
	const byCadastro = `retry_worker_dead_letters_open{policy="tiss-submission",reason="INVALID_PATIENT_DATA",team="cadastro"}`
	count := func(policy string, state journal.DeadLetterState, n int64, age time.Duration) deadletter.Count {
		c := deadletter.Count{Policy: policy, State: state, N: n}
		if age > 0 {
			c.Oldest = now.Add(-age)
		}
		return c
	}
	policies := []string{"tiss-submission", "job-queue"}
	m.Show(&metrics.Figures{Read: now, Policies: policies,
		DeadLetters: []deadletter.Count{
			count("tiss-submission", journal.DeadLetterOpen, 70, time.Hour), count("tiss-submission", journal.DeadLetterOpen, 31, 2*time.Hour),
			count("tiss-submission", journal.DeadLetterDiscarded, 4, 0), count("gone", journal.DeadLetterOpen, 1, time.Minute),
			count("reprocessed", journal.DeadLetterReprocessing, 2, time.Minute),
			{Policy: "tiss-submission", State: journal.DeadLetterOpen, Team: "cadastro", Reason: "INVALID_PATIENT_DATA", N: 7},
		},
		Due: map[string][]deadletter.Count{"2h": {{Policy: "tiss-submission", Team: "ti", N: 2, Cents: 3100050}, {Policy: "tiss-submission", N: 1}}},
		Notices: []notify.Waiting{{Team: "ti", Channel: notify.Email, Since: now.Add(-time.Hour)}, {Team: "ti", Channel: notify.Email, Since: now.Add(-time.Minute)},
			{Team: "cadastro", Channel: notify.Webhook, Since: now.Add(time.Hour)}},
		Pending: map[string]int64{"reviews": 2, "events": 3},
	})
	wantLines(t, scrape(t, url), map[string]bool{
		`retry_worker_dead_letters_due{policy="tiss-submission",within="2h"} 3`:              true,
		`retry_worker_dead_letters_due_amount{policy="tiss-submission",within="2h"} 31000.5`: true,
		`retry_worker_dead_letters_due{policy="job-queue",within="2h"} 0`:                    true,
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
		`retry_worker_notices_oldest_seconds{channel="email",team="ti"} 3600`:        true,
		`retry_worker_notices_oldest_seconds{channel="webhook",team="cadastro"} 0`:   true, // another replica's clock is ahead
		`retry_worker_outbox_pending 5`:                                              true,
	})
	m.Show(&metrics.Figures{Read: now, Policies: policies,
		DeadLetters: []deadletter.Count{{Policy: "tiss-submission", State: journal.DeadLetterOpen, N: 1, Oldest: now.Add(time.Hour)}}})
	wantLines(t, scrape(t, url), map[string]bool{
		`retry_worker_dead_letters{policy="tiss-submission",state="open"} 1`:      true,
		`retry_worker_dead_letters{policy="tiss-submission",state="discarded"} 0`: true,
		`retry_worker_dead_letters{policy="gone"`:                                 false,
		byCadastro: false,
		`retry_worker_dead_letters_oldest_seconds{policy="tiss-submission"} 0`: true,
		`retry_worker_dead_letters_oldest_seconds{policy="gone"}`:              false,
		`retry_worker_notices_oldest_seconds{`:                                 false,
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
