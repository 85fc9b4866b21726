package decision

import (
	"math"
	"time"

	"retry-worker/internal/text"
)

// Event is the domain event of a decision (§12.3 of the business rules).
type Event struct {
	// Type is the event's name in the contract, such as RetryScheduled.
	Type string
	// LogName is the event field of the log line (R16, RN-BIL-005 §13.4).
	LogName string
	// Fields holds the fields of §12.3 by name, and possiblyAccepted (R33). claimId is the subject's id, even if its
	// policy has another name for it.
	Fields map[string]any
}

// BusinessRule is the document that defines the event and log names of a job type.
type BusinessRule string

// The two rules of claim re-submission.
const (
	RNBIL004 BusinessRule = "RN-BIL-004"
	RNBIL005 BusinessRule = "RN-BIL-005"
)

// severityCritical marks events that need a person.
const severityCritical = "CRITICAL"

// Event returns the domain event of d under a rule; nil for a rejection, which decides nothing.
// redactedError is the error text as events may carry it.
func (d *Decision) Event(rule BusinessRule, redactedError string) *Event {
	switch d.Outcome {
	case Retry:
		return d.scheduledEvent(rule)
	case MaxRetriesExceeded:
		return d.exceededEvent(rule, redactedError)
	case PermanentError:
		return &Event{"PermanentErrorDetected", "permanent_error_detected", map[string]any{
			"claimId": d.SubjectID, "errorType": d.Reason, "errorMessage": redactedError,
			"detectedAt": Instant(d.AnalysedAt), "severity": severityCritical, "possiblyAccepted": d.PossiblyAccepted,
		}}
	default:
		return nil
	}
}

func (d *Decision) scheduledEvent(rule BusinessRule) *Event {
	fields := map[string]any{
		"claimId": d.SubjectID, "retryCount": d.RetryCount, "backoffMinutes": Minutes(d.Wait()),
		"nextRetryTime": Instant(d.NextRetryTime), "errorClassification": d.ErrorClassification,
		"possiblyAccepted": d.PossiblyAccepted,
	}
	if rule == RNBIL004 {
		fields["timestamp"] = Instant(d.AnalysedAt)
		return &Event{"SubmissionRetryScheduled", "submission_retry_scheduled", fields}
	}
	fields["maxRetries"], fields["scheduledAt"] = d.MaxRetries, Instant(d.AnalysedAt)
	fields["version"] = d.RetryCount // of the aggregate: it grows with every retry of an episode
	return &Event{"RetryScheduled", "retry_scheduled", fields}
}

func (d *Decision) exceededEvent(rule BusinessRule, redactedError string) *Event {
	if rule == RNBIL004 {
		return &Event{"SubmissionRetryExhausted", "max_retries_exceeded", map[string]any{
			"claimId": d.SubjectID, "retryCount": d.RetryCount, "lastError": redactedError,
			"timestamp": Instant(d.AnalysedAt), "possiblyAccepted": d.PossiblyAccepted,
		}}
	}
	attempts := d.RetryCount
	if attempts < math.MaxInt64 {
		attempts++ // the first submission counts (R12)
	}
	e := Exceeded(d.SubjectID, redactedError, attempts, d.FirstFailure, d.AnalysedAt)
	e.Fields["possiblyAccepted"] = d.PossiblyAccepted
	return e
}

// Exceeded returns the event of a claim that is given up at the instant at, after attempts tries since firstFailure.
func Exceeded(claim, redactedError string, attempts int64, firstFailure, at time.Time) *Event {
	return &Event{"MaxRetriesExceeded", "max_retries_exceeded", map[string]any{
		"claimId": claim, "finalError": redactedError, "totalAttempts": attempts,
		"totalDuration": text.ISODuration(at.Sub(firstFailure)), "exceededAt": Instant(at),
		"severity": severityCritical,
	}}
}
