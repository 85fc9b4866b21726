package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// TestViewOfAStory: every field of a subject's history, as a program reads it.
func TestViewOfAStory(t *testing.T) {
	at := time.Date(2025, 1, 12, 10, 0, 0, 0, time.UTC)
	decided := decision.Decision{Outcome: decision.Retry, ErrorClassification: decision.Transient, Reason: "TIMEOUT", MatchedRule: "TIMEOUT",
		MatchedText: "Timeout", Catalogue: "0123456789ab", RetryCount: 12, MaxRetries: 13, Backoff: decision.Backoff{Delay: 5 * time.Minute},
		NextRetryTime: at.Add(5*time.Minute + 123*time.Millisecond), RetryReason: "Transient error, retry 1 of 5", AnalysedAt: at.Add(123 * time.Millisecond)}
	retry := journal.Attempt{Number: 2, Revision: 3, Episode: 4, JobKey: 6, ProcessInstanceKey: 8, Error: "TIMEOUT", AnalysedCount: 9,
		Took: 1500 * time.Microsecond, Decision: decided}
	final := retry
	final.Took, final.DeadLetter, final.Decision.Team = 11*time.Microsecond, "D", "ti"
	final.Decision.Outcome, final.Decision.NextRetryTime, final.Decision.MatchedRule = decision.MaxRetriesExceeded, time.Time{}, ""
	final.Decision.MatchedText, final.Decision.Catalogue = "", ""
	story := journal.Story{
		Subject: testkit.Subject("tiss-submission", "CLM-1-1"),
		Episodes: []journal.Episode{
			{Number: 1, State: journal.Recovered, FirstFailure: at, OpenedAt: at, ClosedAt: at.Add(time.Hour), Retries: 1},
			{Number: 2, State: journal.Scheduled, ProcessInstanceKey: 8, FirstFailure: at, OpenedAt: at, NextRetryTime: at.Add(5 * time.Minute), Retries: 3, DeadLetter: "D"},
		},
		Attempts: []journal.Attempt{retry, final},
	}
	got, err := json.MarshalIndent(api.ViewOf(&story, at.Add(5*time.Minute)), "", " ")
	testkit.Must(t, err)
	golden.Check(t, "testdata/story.json", string(got)+"\n")
	empty, _ := json.Marshal(api.ViewOf(&journal.Story{Subject: testkit.Subject("tiss-submission", "CLM-1-1"), Held: []journal.HeldJob{{Since: at}}}, at))
	if want := `{"tenant":"\u003cdefault\u003e","state":"","status":"pendente","retryCount":0,"nextRetryTime":null,"deadLetterId":null,"heldSince":"2025-01-12T10:00:00Z","episodes":[],"attempts":[]}`; string(empty) != want {
		t.Errorf("a claim that waits and has not failed is shown as %s, want %s", empty, want)
	}
}
