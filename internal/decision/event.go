package decision

import (
	"math"
	"time"

	"retry-worker/internal/text"
)

// Event is what a decision means to others: a domain event of §12.3 of one of the rules.
type Event struct {
	// Type is the event's name in the contract, such as RetryScheduled.
	Type string
	// LogName is the event field of the log line (R16, RN-BIL-005 §13.4).
	LogName string
	// Fields are those of §12.3, as they are told, and possiblyAccepted (R33). claimId is the subject's id, whatever its policy calls it.
	Fields map[string]any
}

// BusinessRule is the document whose events and log names a job type uses.
type BusinessRule string

// The two rules of claim re-submission.
const (
	RNBIL004 BusinessRule = "RN-BIL-004"
	RNBIL005 BusinessRule = "RN-BIL-005"
)

// severityCritical marks what a person must act on.
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
	fields["version"] = d.RetryCount // of the aggregate: it grows by one with every retry of an episode
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

// Exceeded returns the event of a claim that was given up at an instant after so many attempts, the first of which failed at
// another.
func Exceeded(claim, redactedError string, attempts int64, firstFailure, at time.Time) *Event {
	return &Event{"MaxRetriesExceeded", "max_retries_exceeded", map[string]any{
		"claimId": claim, "finalError": redactedError, "totalAttempts": attempts,
		"totalDuration": text.ISODuration(at.Sub(firstFailure)), "exceededAt": Instant(at),
		"severity": severityCritical,
	}}
}
