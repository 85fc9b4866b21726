package events

import (
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
)

// domainEvent is what happened in the rules' words; no data where they have none for it.
func domainEvent(h *journal.Happening) (name string, says data) {
	switch {
	case h.Attempt != nil && h.Attempt.Revision > 0 && !endsEpisode(h):
		return "", nil
	case h.Attempt != nil:
		e := h.Attempt.Decision.Event(h.Attempt.Rule, h.Attempt.Error)
		if e == nil {
			return "", nil
		}
		return e.Type(), func(o object, _ *journal.Happening) object { return decided(o, e) }
	case h.Outcome != nil && h.Episode.State == journal.Recovered:
		return RetryRecovered, recovered
	case h.Review != nil:
		return DeadLetterReviewed, reviewed
	default:
		return "", nil
	}
}

// endsEpisode reports whether the attempt gives up what its episode waited for: an earlier revision was told as a retry
// that is not made (R20).
func endsEpisode(h *journal.Happening) bool {
	return h.Attempt.DeadLetter != "" && h.Attempt.DeadLetter == h.Episode.DeadLetter
}

// decided is the data of a decision's event: exactly the fields of §12.3 of its rule. claimId is the subject's id,
// whatever its policy calls it, as in the log (§13.4).
func decided(o object, event decision.Event) object {
	o = append(o, '{')
	switch e := event.(type) {
	case decision.RetryScheduled:
		o = o.text("claimId", e.ClaimID).number("retryCount", e.RetryCount).number("maxRetries", e.MaxRetries).
			number("backoffMinutes", e.BackoffMinutes).text("nextRetryTime", decision.Instant(e.NextRetryTime)).
			text("errorClassification", string(e.ErrorClassification)).text("scheduledAt", decision.Instant(e.ScheduledAt)).
			number("version", e.Version)
	case decision.MaxRetriesExceededEvent:
		o = o.text("claimId", e.ClaimID).text("finalError", e.FinalError).number("totalAttempts", e.TotalAttempts).
			text("totalDuration", decision.ISODuration(e.TotalDuration)).text("exceededAt", decision.Instant(e.ExceededAt)).
			text("severity", string(e.Severity))
	case decision.PermanentErrorDetected:
		o = o.text("claimId", e.ClaimID).text("errorType", string(e.ErrorType)).text("errorMessage", e.ErrorMessage).
			text("detectedAt", decision.Instant(e.DetectedAt)).text("severity", string(e.Severity))
	case decision.SubmissionRetryScheduled:
		o = o.text("claimId", e.ClaimID).number("retryCount", e.RetryCount).text("errorClassification",
			string(e.ErrorClassification)).
			text("nextRetryTime", decision.Instant(e.NextRetryTime)).number("backoffMinutes", e.BackoffMinutes).
			text("timestamp", decision.Instant(e.Timestamp))
	case decision.SubmissionRetryExhausted:
		o = o.text("claimId", e.ClaimID).number("retryCount", e.RetryCount).text("lastError", e.LastError).
			text("timestamp", decision.Instant(e.Timestamp))
	}
	return append(o, '}')
}

// recovered tells that an episode ended well, and how long it took from its first failure on. Its names are ours:
// the rules have no such event.
func recovered(o object, h *journal.Happening) object {
	e := &h.Episode
	return append(append(o, '{').text("claimId", h.Subject.ID).number("episode", e.Number).number("retryCount", e.Retries).
		text("firstFailure", decision.Instant(e.FirstFailure)).text("recoveredAt", decision.Instant(e.ClosedAt)).
		text("duration", decision.ISODuration(e.ClosedAt.Sub(e.FirstFailure))), '}')
}

// reviewed tells what a person decided, in the words that the process gets; nextRetryTime is null where the dead
// letter is discarded.
func reviewed(o object, h *journal.Happening) object {
	verdict, next := "reprocess", ""
	if h.Review.Discard {
		verdict = "discard"
	} else {
		next = decision.Instant(h.Episode.NextRetryTime)
	}
	return append(append(o, '{').text("claimId", h.Subject.ID).text("deadLetterId", h.Review.DeadLetter).
		text("reviewDecision", verdict).text("reviewReason", clean(h.Review.Reason)).text("reviewedBy", clean(h.Review.By)).
		number("retryCount", h.Episode.Retries).number("episode", h.Episode.Number).textOrNull("nextRetryTime", next).
		text("reviewedAt", decision.Instant(h.Entry.At)), '}')
}

// maxTextBytes of what a person wrote.
const maxTextBytes = 1000

// clean is a person's text with nothing personal of others in it.
func clean(s string) string { return redact.Line(s, maxTextBytes) }
