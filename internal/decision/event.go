package decision

import (
	"math"
	"time"
)

// Event is what a decision means to others: a domain event of §12.3 of one of the rules.
type Event interface {
	// Type is the event's name in the contract, such as RetryScheduled.
	Type() string
	// LogName is the event field of the log line (R16, RN-BIL-005 §13.4).
	LogName() string
}

// BusinessRule is the document whose events and log names a job type uses.
type BusinessRule string

// The two rules of claim re-submission.
const (
	RNBIL004 BusinessRule = "RN-BIL-004"
	RNBIL005 BusinessRule = "RN-BIL-005"
)

// Severity of an event; the set has one member.
type Severity string

// SeverityCritical marks what a person must act on.
const SeverityCritical Severity = "CRITICAL"

// RetryScheduled is RetryScheduledEvent of RN-BIL-005 §12.3.
type RetryScheduled struct {
	ClaimID             string
	RetryCount          int64
	MaxRetries          int64
	BackoffMinutes      int64
	NextRetryTime       time.Time
	ErrorClassification ErrorClassification
	ScheduledAt         time.Time
	// Version of the aggregate: it grows by one with every retry of an episode.
	Version int64
}

// MaxRetriesExceededEvent is the event of that name of RN-BIL-005 §12.3.
type MaxRetriesExceededEvent struct {
	ClaimID       string
	FinalError    string
	TotalAttempts int64
	TotalDuration time.Duration
	ExceededAt    time.Time
	Severity      Severity
}

// PermanentErrorDetected is PermanentErrorDetectedEvent of RN-BIL-005 §12.3.
type PermanentErrorDetected struct {
	ClaimID      string
	ErrorType    Reason
	ErrorMessage string
	DetectedAt   time.Time
	Severity     Severity
}

// SubmissionRetryScheduled is SubmissionRetryScheduledEvent of RN-BIL-004 §12.3.
type SubmissionRetryScheduled struct {
	ClaimID             string
	RetryCount          int64
	ErrorClassification ErrorClassification
	NextRetryTime       time.Time
	BackoffMinutes      int64
	Timestamp           time.Time
}

// SubmissionRetryExhausted is SubmissionRetryExhaustedEvent of RN-BIL-004 §12.3.
type SubmissionRetryExhausted struct {
	ClaimID    string
	RetryCount int64
	LastError  string
	Timestamp  time.Time
}

// Event is the domain event of d under a rule; nil for a rejection, which decides nothing.
// redactedError is the error text as events may carry it.
func (d *Decision) Event(rule BusinessRule, redactedError string) Event {
	switch d.Outcome {
	case Retry:
		return d.scheduledEvent(rule)
	case MaxRetriesExceeded:
		return d.exceededEvent(rule, redactedError)
	case PermanentError:
		return PermanentErrorDetected{d.SubjectID, d.Reason, redactedError, d.AnalysedAt, SeverityCritical}
	default:
		return nil
	}
}

func (d *Decision) scheduledEvent(rule BusinessRule) Event {
	if rule == RNBIL004 {
		return SubmissionRetryScheduled{d.SubjectID, d.RetryCount, d.ErrorClassification,
			d.NextRetryTime, Minutes(d.Wait()), d.AnalysedAt}
	}
	return RetryScheduled{d.SubjectID, d.RetryCount, d.MaxRetries, Minutes(d.Wait()),
		d.NextRetryTime, d.ErrorClassification, d.AnalysedAt, d.RetryCount}
}

func (d *Decision) exceededEvent(rule BusinessRule, redactedError string) Event {
	if rule == RNBIL004 {
		return SubmissionRetryExhausted{d.SubjectID, d.RetryCount, redactedError, d.AnalysedAt}
	}
	attempts := d.RetryCount
	if attempts < math.MaxInt64 {
		attempts++ // the first submission counts (R12)
	}
	return MaxRetriesExceededEvent{d.SubjectID, redactedError, attempts,
		d.AnalysedAt.Sub(d.FirstFailure), d.AnalysedAt, SeverityCritical}
}

// Type implements Event.
func (RetryScheduled) Type() string { return "RetryScheduled" }

// Type implements Event.
func (MaxRetriesExceededEvent) Type() string { return "MaxRetriesExceeded" }

// Type implements Event.
func (PermanentErrorDetected) Type() string { return "PermanentErrorDetected" }

// Type implements Event.
func (SubmissionRetryScheduled) Type() string { return "SubmissionRetryScheduled" }

// Type implements Event.
func (SubmissionRetryExhausted) Type() string { return "SubmissionRetryExhausted" }

// LogName implements Event.
func (RetryScheduled) LogName() string { return "retry_scheduled" }

// LogName implements Event.
func (MaxRetriesExceededEvent) LogName() string { return "max_retries_exceeded" }

// LogName implements Event.
func (PermanentErrorDetected) LogName() string { return "permanent_error_detected" }

// LogName implements Event.
func (SubmissionRetryScheduled) LogName() string { return "submission_retry_scheduled" }

// LogName implements Event.
func (SubmissionRetryExhausted) LogName() string { return "max_retries_exceeded" }
