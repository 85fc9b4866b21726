// Package audit shows what the journal recorded to auditors and to those whom it is about: one record at a time, as an
// export, as a ledger that can be verified, and as figures (RN-BIL-005 §6, §7, §10; RN-BIL-004 §6, §7, §10).
package audit

import (
	"encoding/json"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Record is one record of the audit as JSON: what both rules' §7.1 name, and what is needed to follow it up. Keys
// of the engine are texts: a number would lose its last digits in JavaScript.
type Record struct {
	// Record numbers everything the ledger vouches for, from 1.
	Record int64  `json:"record"`
	Kind   string `json:"kind"`
	// Timestamp is the instant of the analysis, or of the entry.
	Timestamp string `json:"timestamp"`
	Tenant    string `json:"tenant"`
	Policy    string `json:"policy"`
	// ClaimID is the subject's id, whatever its policy calls it.
	ClaimID string `json:"claimId"`
	// Analysis is what an attempt says; nil for an entry.
	*Analysis
	// Body is what an entry says; absent for an attempt.
	Body json.RawMessage `json:"body,omitempty"`
}

// Analysis is what an attempt says: the record of §7.1 and the six events it consists of.
type Analysis struct {
	// SubmissionError has nothing personal in it.
	SubmissionError string                `json:"submissionError"`
	ShouldRetry     bool                  `json:"shouldRetry"`
	Rule            decision.BusinessRule `json:"rule"`
	Attempt
	// Context of the claim; absent where there is none.
	Context            decision.Context `json:"context,omitempty"`
	ElementInstanceKey int64            `json:"elementInstanceKey,string"`
	// Identity of the analysis: the same job with the same inputs has the same.
	Identity string `json:"identity"`
	// Events in their order; those of the backoff and of the next attempt only where there is one.
	Events []Event `json:"events"`
}

// Attempt is an attempt in one of its revisions, as the audit and a subject's story show it.
type Attempt struct {
	AttemptNumber int64 `json:"attemptNumber"`
	// Revision is above 0 where the decision was given again with a new time.
	Revision            int64                        `json:"revision"`
	Episode             int64                        `json:"episode"`
	ErrorClassification decision.ErrorClassification `json:"errorClassification"`
	// MatchedText is what the rule matched, with nothing personal in it. It and Catalogue, the version of the
	// catalogue that was decided by, are null in records of a worker that did not keep them.
	MatchedRule *string          `json:"matchedRule"`
	MatchedText *string          `json:"matchedText"`
	Catalogue   *string          `json:"catalogue"`
	Reason      decision.Reason  `json:"reason"`
	Outcome     decision.Outcome `json:"outcome"`
	// RetryCount is what the process got, AnalysedRetryCount what was decided on (R12).
	AnalysedRetryCount int64 `json:"analysedRetryCount"`
	RetryCount         int64 `json:"retryCount"`
	MaxRetries         int64 `json:"maxRetries"`
	// BackoffMinutes and NextRetryTime are null where no retry follows.
	BackoffMinutes *int64  `json:"backoffMinutes"`
	NextRetryTime  *string `json:"nextRetryTime"`
	RetryReason    string  `json:"retryReason"`
	// SuccessProbability of the retry and Taught, what the decision went by (R26), are absent where there is none.
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
	// Number in the rule's list, from 1 to 6.
	Number int    `json:"number"`
	Event  string `json:"event"`
	At     string `json:"at"`
}

// The events of §7.1, by the numbers they have there.
const (
	errorReceived = 1 + iota
	errorClassified
	retryCountChecked
	backoffCalculated
	retryDecided
	nextAttemptScheduled
)

var eventNames = [...]string{
	errorReceived: "error_received", errorClassified: "error_classified", retryCountChecked: "retry_count_checked",
	backoffCalculated: "backoff_calculated", retryDecided: "retry_decided", nextAttemptScheduled: "next_attempt_scheduled",
}

// Of returns r as JSON.
func Of(r *journal.Record) Record {
	if r.Attempt != nil {
		return ofAttempt(r.Subject, r.Attempt)
	}
	e := r.Entry
	v := Record{Record: e.Record, Kind: string(e.Kind), Timestamp: decision.Instant(e.At), Body: e.Told()}
	v.name(e.Subject)
	if !json.Valid(v.Body) { // somebody edited it: show it all the same
		v.Body = json.RawMessage(decision.Text(e.Body))
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

// events of an attempt. All but the first happen in one step of some microseconds, which ends when the decision is
// handed to the store: they share that instant. It is in milliseconds, AnalysedAt in the policy's precision (R7).
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
		all = append(all, Event{n, eventNames[n], decision.Instant(at)})
	}
	return all
}
