package journal_test

import (
	"encoding/json"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

func TestStatesAsPeopleOutsideReadThem(t *testing.T) {
	now := time.Date(2025, 1, 12, 10, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		stored journal.State
		next   time.Duration // from now on
		state  journal.State
		status journal.Status
	}{
		{journal.Scheduled, time.Second, journal.Scheduled, "pendente"},
		{journal.Scheduled, 0, journal.Due, "reenviando"},
		{journal.Scheduled, -time.Hour, journal.Due, "reenviando"},
		{journal.Reprocessing, time.Hour, journal.Reprocessing, "reenviando"},
		{journal.Reprocessing, -time.Hour, journal.Reprocessing, "reenviando"},
		{journal.Dead, 0, journal.Dead, "falha"},
		{journal.Recovered, 0, journal.Recovered, "entregue"},
		{journal.Discarded, 0, journal.Discarded, "descartada"},
		{journal.Superseded, 0, journal.Superseded, "falha"},
		{journal.Abandoned, 0, journal.Abandoned, "falha"},
	} {
		e := journal.Episode{State: test.stored, NextRetryTime: now.Add(test.next)}
		if state := e.StateAt(now); state != test.state || state.Status() != test.status {
			t.Errorf("%s with its retry in %s is %s, %s; want %s, %s", test.stored, test.next, state, state.Status(), test.state, test.status)
		}
	}
}

func TestViewOfAStory(t *testing.T) {
	at := time.Date(2025, 1, 12, 10, 0, 0, 0, time.UTC)
	retry, final := fullAttempt(), fullAttempt()
	retry.DeadLetter, retry.Took, retry.Decision.Backoff.Delay = "", 1500*time.Microsecond, 5*time.Minute
	retry.Decision.Team = ""
	final.Decision.Outcome, final.Decision.NextRetryTime, final.Decision.MatchedRule = decision.MaxRetriesExceeded, time.Time{}, ""
	final.Decision.MatchedText, final.Decision.Catalogue = "", ""
	story := journal.Story{
		Subject: someSubject,
		Episodes: []journal.Episode{
			{Number: 1, State: journal.Recovered, FirstFailure: at, OpenedAt: at, ClosedAt: at.Add(time.Hour), Retries: 1},
			{Number: 2, State: journal.Scheduled, ProcessInstanceKey: 8, FirstFailure: at, OpenedAt: at, NextRetryTime: at.Add(5 * time.Minute), Retries: 3, DeadLetter: "D"},
		},
		Attempts: []journal.Attempt{retry, final},
	}
	got, err := json.MarshalIndent(story.View(at.Add(5*time.Minute)), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != wantView {
		t.Errorf("is\n%s\nshould be\n%s", got, wantView)
	}
	empty, _ := json.Marshal((&journal.Story{Subject: someSubject}).View(at))
	if want := `{"tenant":"\u003cdefault\u003e","state":"","status":"","retryCount":0,"nextRetryTime":null,"deadLetterId":null,"episodes":[],"attempts":[]}`; string(empty) != want {
		t.Errorf("rejections alone are shown as %s, want %s", empty, want)
	}
}

const wantView = `{
 "tenant": "\u003cdefault\u003e",
 "state": "due",
 "status": "reenviando",
 "retryCount": 3,
 "nextRetryTime": "2025-01-12T10:05:00Z",
 "deadLetterId": "D",
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
   "nextRetryTime": "2025-01-12T11:00:00.123Z",
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
