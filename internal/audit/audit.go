// Package audit shows the journal's records one by one and as an export, verifies the ledger, rebuilds the projections,
// and replays recorded failures with another catalogue (RN-BIL-005 §7, §10; RN-BIL-004 §7, §10).
package audit

import (
	"encoding/json"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Record is one record of the audit as JSON: what both rules' §7.1 require, and what is needed to follow it up. Keys of
// the engine are strings, as JavaScript would round numbers.
type Record struct {
	// Record is its number in the ledger, from 1.
	Record int64  `json:"record"`
	Kind   string `json:"kind"`
	// Timestamp is when the analysis was made, or the entry recorded.
	Timestamp string `json:"timestamp"`
	Tenant    string `json:"tenant"`
	Policy    string `json:"policy"`
	// ClaimID is the subject's id, even if it is no claim.
	ClaimID string `json:"claimId"`
	// Analysis holds the fields of an attempt; nil for other records.
	*Analysis
	// Body is another record's body; absent for an attempt.
	Body json.RawMessage `json:"body,omitempty"`
}

// Analysis holds the fields of an attempt: the record of §7.1 with its events.
type Analysis struct {
	// SubmissionError has nothing personal in it.
	SubmissionError string                `json:"submissionError"`
	ShouldRetry     bool                  `json:"shouldRetry"`
	Rule            decision.BusinessRule `json:"rule"`
	Attempt
	// Context is the claim's; absent if there is none.
	Context            decision.Context `json:"context,omitempty"`
	ElementInstanceKey int64            `json:"elementInstanceKey,string"`
	// Identity is the same for the same job with the same inputs.
	Identity string `json:"identity"`
	// Events are in their order. Those of the backoff and the next attempt are there only with a retry.
	Events []Event `json:"events"`
}

// Attempt is one revision of an attempt, as the audit and a subject's story show it.
type Attempt struct {
	AttemptNumber int64 `json:"attemptNumber"`
	// Revision is above 0 if the decision was given again with a new time.
	Revision            int64                        `json:"revision"`
	Episode             int64                        `json:"episode"`
	ErrorClassification decision.ErrorClassification `json:"errorClassification"`
	// MatchedText is the text that the rule matched, with nothing personal in it. Catalogue is the version of the
	// catalogue that decided. Both are null if unknown.
	MatchedRule *string          `json:"matchedRule"`
	MatchedText *string          `json:"matchedText"`
	Catalogue   *string          `json:"catalogue"`
	Reason      decision.Reason  `json:"reason"`
	Outcome     decision.Outcome `json:"outcome"`
	// RetryCount is the count that the process got, AnalysedRetryCount the one that was decided on (R12).
	AnalysedRetryCount int64 `json:"analysedRetryCount"`
	RetryCount         int64 `json:"retryCount"`
	MaxRetries         int64 `json:"maxRetries"`
	// BackoffMinutes and NextRetryTime are null if no retry follows.
	BackoffMinutes *int64  `json:"backoffMinutes"`
	NextRetryTime  *string `json:"nextRetryTime"`
	RetryReason    string  `json:"retryReason"`
	// SuccessProbability is the retry's, Taught the teaching that decided (R26); absent if there is none.
	SuccessProbability float64 `json:"successProbability,omitempty"`
	PossiblyAccepted   bool    `json:"possiblyAccepted"` // R33
	Taught             int64   `json:"taught,omitempty"`
	ResponsibleTeam    *string `json:"responsibleTeam"`
	DeadLetterID       *string `json:"deadLetterId"`
	ExecutionTimeMs    float64 `json:"executionTimeMs"`
	JobKey             int64   `json:"jobKey,string"`
	ProcessInstanceKey int64   `json:"processInstanceKey,string"`
}

// Event is one of the six of RN-BIL-005 §7.1.
type Event struct {
	// Number is its number in the rule's list, from 1 to 6.
	Number int    `json:"number"`
	Event  string `json:"event"`
	At     string `json:"at"`
}

// The events of §7.1, by their numbers there.
const (
	errorReceived = 1 + iota
	errorClassified
	retryCountChecked
	backoffCalculated
	retryDecided
	nextAttemptScheduled
)

// eventNames are the events' names, and the columns of their times in a table.
var eventNames = [...]struct{ event, column string }{
	errorReceived: {"error_received", "errorReceivedAt"}, errorClassified: {"error_classified", "errorClassifiedAt"},
	retryCountChecked: {"retry_count_checked", "retryCountCheckedAt"},
	backoffCalculated: {"backoff_calculated", "backoffCalculatedAt"}, retryDecided: {"retry_decided", "retryDecidedAt"},
	nextAttemptScheduled: {"next_attempt_scheduled", "nextAttemptScheduledAt"},
}

// Of returns r as JSON.
func Of(r *journal.Entry) Record {
	if r.Attempt != nil {
		return ofAttempt(r.Subject, r.Attempt)
	}
	v := Record{Record: r.Record, Kind: string(r.Kind), Timestamp: decision.Instant(r.At), Body: r.Told()}
	v.name(r.Subject)
	if !json.Valid(v.Body) { // somebody edited it: show it as a string
		v.Body = json.RawMessage(decision.Text(r.Body))
	}
	return v
}

func (v *Record) name(s journal.Subject) { v.Tenant, v.Policy, v.ClaimID = s.Tenant, s.Policy, s.ID }

func ofAttempt(s journal.Subject, a *journal.Attempt) Record {
	d := &a.Decision
	v := Record{Record: a.Record, Kind: string(journal.AttemptEntry), Timestamp: decision.Instant(d.AnalysedAt)}
	v.Analysis = &Analysis{SubmissionError: a.Error, ShouldRetry: d.ShouldRetry(), Rule: a.Rule, Attempt: AttemptOf(a),
		Context: a.Context, ElementInstanceKey: a.ElementInstanceKey, Identity: a.Identity.String(), Events: events(a)}
	v.name(s)
	return v
}

// AttemptOf returns a as JSON.
func AttemptOf(a *journal.Attempt) Attempt {
	d := &a.Decision
	v := Attempt{
		AttemptNumber: a.Number, Revision: a.Revision, Episode: a.Episode, ErrorClassification: d.ErrorClassification,
		MatchedRule: journal.OrNull(d.MatchedRule), MatchedText: journal.OrNull(d.MatchedText),
		Catalogue: journal.OrNull(d.Catalogue), Reason: d.Reason, Outcome: d.Outcome, AnalysedRetryCount: a.AnalysedCount,
		RetryCount: d.RetryCount, MaxRetries: d.MaxRetries, NextRetryTime: journal.InstantOrNull(d.NextRetryTime),
		RetryReason: d.RetryReason, SuccessProbability: d.SuccessProbability, PossiblyAccepted: d.PossiblyAccepted,
		Taught: d.Taught, ResponsibleTeam: journal.OrNull(string(d.Team)), DeadLetterID: journal.OrNull(a.DeadLetter),
		ExecutionTimeMs: float64(a.Took.Microseconds()) / 1000, JobKey: a.JobKey, ProcessInstanceKey: a.ProcessInstanceKey,
	}
	if d.ShouldRetry() {
		v.BackoffMinutes = new(decision.Minutes(d.Wait()))
	}
	return v
}

// events returns an attempt's events. All but the first happen within microseconds and share the instant at which the
// decision was handed to the store, in milliseconds. AnalysedAt has the policy's precision (R7).
func events(a *journal.Attempt) []Event {
	decided := a.ReceivedAt.Add(a.Took).Truncate(time.Millisecond)
	all := make([]Event, 0, nextAttemptScheduled)
	for n := errorReceived; n <= nextAttemptScheduled; n++ {
		at := decided
		switch n {
		case errorReceived:
			at = a.ReceivedAt
		case backoffCalculated, nextAttemptScheduled:
			if !a.Decision.ShouldRetry() {
				continue
			}
		}
		all = append(all, Event{n, eventNames[n].event, decision.Instant(at)})
	}
	return all
}
