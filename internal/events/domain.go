package events

import (
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
)

// The data of domain events: exactly the fields of §12.3 of the rule. claimId is the subject's id, whatever its
// policy calls it, as in the log (§13.4).
type (
	retryScheduled struct {
		ClaimID             string                       `json:"claimId"`
		RetryCount          int64                        `json:"retryCount"`
		MaxRetries          int64                        `json:"maxRetries"`
		BackoffMinutes      int64                        `json:"backoffMinutes"`
		NextRetryTime       string                       `json:"nextRetryTime"`
		ErrorClassification decision.ErrorClassification `json:"errorClassification"`
		ScheduledAt         string                       `json:"scheduledAt"`
		Version             int64                        `json:"version"`
	}
	maxRetriesExceeded struct {
		ClaimID       string            `json:"claimId"`
		FinalError    string            `json:"finalError"`
		TotalAttempts int64             `json:"totalAttempts"`
		TotalDuration string            `json:"totalDuration"`
		ExceededAt    string            `json:"exceededAt"`
		Severity      decision.Severity `json:"severity"`
	}
	permanentErrorDetected struct {
		ClaimID      string            `json:"claimId"`
		ErrorType    decision.Reason   `json:"errorType"`
		ErrorMessage string            `json:"errorMessage"`
		DetectedAt   string            `json:"detectedAt"`
		Severity     decision.Severity `json:"severity"`
	}
	submissionRetryScheduled struct {
		ClaimID             string                       `json:"claimId"`
		RetryCount          int64                        `json:"retryCount"`
		ErrorClassification decision.ErrorClassification `json:"errorClassification"`
		NextRetryTime       string                       `json:"nextRetryTime"`
		BackoffMinutes      int64                        `json:"backoffMinutes"`
		Timestamp           string                       `json:"timestamp"`
	}
	submissionRetryExhausted struct {
		ClaimID    string `json:"claimId"`
		RetryCount int64  `json:"retryCount"`
		LastError  string `json:"lastError"`
		Timestamp  string `json:"timestamp"`
	}
)

// retryRecovered tells that an episode ended well. Its names are ours: the rules have no such event.
type retryRecovered struct {
	ClaimID      string `json:"claimId"`
	Episode      int64  `json:"episode"`
	RetryCount   int64  `json:"retryCount"`
	FirstFailure string `json:"firstFailure"`
	RecoveredAt  string `json:"recoveredAt"`
	// Duration from the first failure to the recovery.
	Duration string `json:"duration"`
}

// deadLetterReviewed tells what a person decided, in the contract's words.
type deadLetterReviewed struct {
	ClaimID        string  `json:"claimId"`
	DeadLetterID   string  `json:"deadLetterId"`
	ReviewDecision string  `json:"reviewDecision"`
	ReviewReason   string  `json:"reviewReason"`
	ReviewedBy     string  `json:"reviewedBy"`
	RetryCount     int64   `json:"retryCount"`
	Episode        int64   `json:"episode"`
	NextRetryTime  *string `json:"nextRetryTime"` // null where it is discarded
	ReviewedAt     string  `json:"reviewedAt"`
}

// domainEvent is what happened in the rules' words; no data where they have none for it.
func domainEvent(h *journal.Happening) (name string, data any) {
	switch {
	case h.Attempt != nil && h.Attempt.Revision > 0:
		return "", nil
	case h.Attempt != nil:
		e := h.Attempt.Decision.Event(h.Attempt.Rule, h.Attempt.Error)
		if e == nil {
			return "", nil
		}
		return e.Type(), dataOf(e)
	case h.Outcome != nil && h.Episode.State == journal.Recovered:
		return RetryRecovered, recovery(h)
	case h.Review != nil:
		return DeadLetterReviewed, review(h)
	default:
		return "", nil
	}
}

// dataOf a decision's event.
func dataOf(event decision.Event) any {
	switch e := event.(type) {
	case decision.RetryScheduled:
		return retryScheduled{e.ClaimID, e.RetryCount, e.MaxRetries, e.BackoffMinutes, decision.Instant(e.NextRetryTime),
			e.ErrorClassification, decision.Instant(e.ScheduledAt), e.Version}
	case decision.MaxRetriesExceededEvent:
		return maxRetriesExceeded{e.ClaimID, e.FinalError, e.TotalAttempts, isoDuration(e.TotalDuration), decision.Instant(e.ExceededAt), e.Severity}
	case decision.PermanentErrorDetected:
		return permanentErrorDetected{e.ClaimID, e.ErrorType, e.ErrorMessage, decision.Instant(e.DetectedAt), e.Severity}
	case decision.SubmissionRetryScheduled:
		return submissionRetryScheduled{e.ClaimID, e.RetryCount, e.ErrorClassification, decision.Instant(e.NextRetryTime),
			e.BackoffMinutes, decision.Instant(e.Timestamp)}
	case decision.SubmissionRetryExhausted:
		return submissionRetryExhausted{e.ClaimID, e.RetryCount, e.LastError, decision.Instant(e.Timestamp)}
	default:
		return nil
	}
}

func recovery(h *journal.Happening) retryRecovered {
	e := &h.Episode
	return retryRecovered{h.Subject.ID, e.Number, e.Retries, decision.Instant(e.FirstFailure), decision.Instant(e.ClosedAt),
		isoDuration(e.ClosedAt.Sub(e.FirstFailure))}
}

func review(h *journal.Happening) deadLetterReviewed {
	r := deadLetterReviewed{
		ClaimID: h.Subject.ID, DeadLetterID: h.Review.DeadLetter, ReviewDecision: "reprocess",
		ReviewReason: clean(h.Review.Reason), ReviewedBy: clean(h.Review.By),
		RetryCount: h.Episode.Retries, Episode: h.Episode.Number, ReviewedAt: decision.Instant(h.Entry.At),
	}
	if h.Review.Discard {
		r.ReviewDecision = "discard"
		return r
	}
	next := decision.Instant(h.Episode.NextRetryTime)
	r.NextRetryTime = &next
	return r
}

// maxTextBytes of what a person wrote.
const maxTextBytes = 1000

// clean is a person's text with nothing personal of others in it.
func clean(s string) string { return redact.Line(s, maxTextBytes) }

// isoDuration is d in ISO 8601, in hours, minutes and seconds down to the millisecond: PT2H35M, PT0.25S, PT0S.
// A negative one is PT0S: clocks may differ.
func isoDuration(d time.Duration) string {
	d = max(d, 0).Truncate(time.Millisecond)
	if d == 0 {
		return "PT0S"
	}
	b := []byte("PT")
	if hours := int64(d / time.Hour); hours > 0 {
		b = append(strconv.AppendInt(b, hours, 10), 'H')
	}
	if minutes := int64(d % time.Hour / time.Minute); minutes > 0 {
		b = append(strconv.AppendInt(b, minutes, 10), 'M')
	}
	if rest := d % time.Minute; rest > 0 {
		seconds := strconv.FormatFloat(rest.Seconds(), 'f', 3, 64)
		b = append(append(b, strings.TrimRight(strings.TrimRight(seconds, "0"), ".")...), 'S')
	}
	return string(b)
}
