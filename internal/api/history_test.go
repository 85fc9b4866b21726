package api_test

import (
	"encoding/json"
	"testing"
	"time"

	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
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
	if string(got) != wantView {
		t.Errorf("is\n%s\nshould be\n%s", got, wantView)
	}
	empty, _ := json.Marshal(api.ViewOf(&journal.Story{Subject: testkit.Subject("tiss-submission", "CLM-1-1"), Held: []journal.HeldJob{{Since: at}}}, at))
	if want := `{"tenant":"\u003cdefault\u003e","state":"","status":"pendente","retryCount":0,"nextRetryTime":null,"deadLetterId":null,"heldSince":"2025-01-12T10:00:00Z","episodes":[],"attempts":[]}`; string(empty) != want {
		t.Errorf("a claim that waits and has not failed is shown as %s, want %s", empty, want)
	}
}

const wantView = `{
 "tenant": "\u003cdefault\u003e",
 "state": "due",
 "status": "reenviando",
 "retryCount": 3,
 "nextRetryTime": "2025-01-12T10:05:00Z",
 "deadLetterId": "D",
 "heldSince": null,
 "episodes": [
  {
   "number": 1,
   "state": "recovered",
   "retryCount": 1,
   "firstFailure": "2025-01-12T10:00:00Z",
   "openedAt": "2025-01-12T10:00:00Z",
   "closedAt": "2025-01-12T11:00:00Z",
   "nextRetryTime": null,
   "deadLetterId": null,
   "processInstanceKey": "0"
  },
  {
   "number": 2,
   "state": "due",
   "retryCount": 3,
   "firstFailure": "2025-01-12T10:00:00Z",
   "openedAt": "2025-01-12T10:00:00Z",
   "closedAt": null,
   "nextRetryTime": "2025-01-12T10:05:00Z",
   "deadLetterId": "D",
   "processInstanceKey": "8"
  }
 ],
 "attempts": [
  {
   "attemptNumber": 2,
   "revision": 3,
   "episode": 4,
   "timestamp": "2025-01-12T10:00:00.123Z",
   "error": "TIMEOUT",
   "errorClassification": "TRANSIENT",
   "matchedRule": "TIMEOUT",
   "matchedText": "Timeout",
   "catalogue": "0123456789ab",
   "reason": "TIMEOUT",
   "outcome": "RETRY",
   "analysedRetryCount": 9,
   "retryCount": 12,
   "maxRetries": 13,
   "backoffMinutes": 5,
   "nextRetryTime": "2025-01-12T10:05:00.123Z",
   "retryReason": "Transient error, retry 1 of 5",
   "deadLetterId": null,
   "executionTimeMs": 1.5,
   "jobKey": "6",
   "processInstanceKey": "8"
  },
  {
   "attemptNumber": 2,
   "revision": 3,
   "episode": 4,
   "timestamp": "2025-01-12T10:00:00.123Z",
   "error": "TIMEOUT",
   "errorClassification": "TRANSIENT",
   "matchedRule": null,
   "matchedText": null,
   "catalogue": null,
   "reason": "TIMEOUT",
   "outcome": "MAX_RETRIES_EXCEEDED",
   "analysedRetryCount": 9,
   "retryCount": 12,
   "maxRetries": 13,
   "backoffMinutes": null,
   "nextRetryTime": null,
   "retryReason": "Transient error, retry 1 of 5",
   "responsibleTeam": "ti",
   "deadLetterId": "D",
   "executionTimeMs": 0.011,
   "jobKey": "6",
   "processInstanceKey": "8"
  }
 ]
}`
