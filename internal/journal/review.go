package journal

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

// Review is a person's decision on a dead letter (R17).
type Review struct {
	Subject    Subject
	DeadLetter string
	// Discard lets it go, Accepted closes what the other side has already; otherwise it is sent again.
	Discard  bool
	Accepted *Acceptance
	// Force sends it again at or above the limit, or after the deadline that it had; Fresh begins the whole ladder anew, and
	// needs Force.
	Force, Fresh bool
	// Deadline is the new one that what is sent again has (R29); zero leaves it as it is.
	Deadline time.Time
	// Delay until what is sent again is made, counted from the review as a policy counts its own (R7); 0 is at once. A
	// person's retry may lie beyond the policy's total limit.
	Delay time.Duration
	// Policy says when its destination is open, to which the retry is moved (R29); nil is always.
	Policy *decision.Policy
	// Reason and By are a person's words, which must not be empty, and name.
	Reason, By string
	// Run is the bulk run that decides; empty for a person's decision on this dead letter alone.
	Run string
	// Note is the record of the note that asked for it; it must still stand. 0 where none did.
	Note int64
}

// What a review is refused with; the texts begin with the API's error codes.
var (
	ErrDeadLetterUnknown  = errors.New("job_not_found")
	ErrMaxRetriesExceeded = errors.New("max_retries_exceeded")
	ErrDeadlineMissed     = errors.New("deadline_missed")
	ErrInvalidRetryState  = errors.New("invalid_retry_state")
	ErrInvalidReview      = errors.New("invalid_review")
	ErrReasonRequired     = errors.New("reason_required")
)

// ErrNobodyWaits is an ErrInvalidRetryState: what is sent again must have a process that carries it out.
var ErrNobodyWaits = fmt.Errorf("%w: no process waits for a decision on it: it can only be discarded",
	ErrInvalidRetryState)

// ErrNotListed is an ErrInvalidRetryState: the process would not know what to do with what the other side has already.
var ErrNotListed = fmt.Errorf("%w: the header decisions of the process's review task does not list accepted",
	ErrInvalidRetryState)

// DecidedError is an ErrInvalidRetryState: the dead letter is open no longer.
type DecidedError struct {
	// By and At are who decided on it and when; By is empty where nobody did: At is then when it was settled.
	By    string
	At    time.Time
	State DeadLetterState
}

func (e *DecidedError) Error() string {
	by := ""
	if e.By != "" {
		by = " by " + e.By
	}
	return fmt.Sprintf("%v: it is %s since %s%s", ErrInvalidRetryState, e.State, decision.Instant(e.At), by)
}

// Is reports whether e is an ErrInvalidRetryState.
func (e *DecidedError) Is(target error) bool { return target == ErrInvalidRetryState }

// maxReasonBytes of a person's words, which may tell of a patient: they are redacted like any text.
const maxReasonBytes = 1000

// check refuses what no dead letter could make right.
func (r *Review) check() error {
	switch {
	case strings.TrimSpace(r.Reason) == "":
		return ErrReasonRequired
	case r.Fresh && !r.Force:
		return fmt.Errorf("%w: fresh begins the whole ladder anew, which needs forceRetry", ErrInvalidReview)
	case (r.Discard || r.Accepted != nil) && (r.Force || r.Fresh || !r.Deadline.IsZero()):
		return fmt.Errorf("%w: what is closed is not retried: expected neither forceRetry, fresh nor submissionDeadline",
			ErrInvalidReview)
	case r.Discard && r.Accepted != nil:
		return fmt.Errorf("%w: what is accepted is not discarded", ErrInvalidReview)
	case r.Delay < 0:
		return fmt.Errorf("%w: the delay is %s, expected 0 or more", ErrInvalidReview, r.Delay)
	}
	return r.Accepted.check()
}

// next returns when the retry of a subject is made. It is never in the past (R7), and when its destination is open (R29).
func (r *Review) next(h *History, now time.Time) time.Time {
	precision := time.Millisecond
	if r.Delay > 0 && r.Delay%time.Minute == 0 { // of policies that count in minutes
		precision = time.Second
	}
	at := now.UTC().Truncate(precision).Add(r.Delay)
	if r.Policy == nil || h.Last == nil {
		return at
	}
	return r.Policy.Open(h.Last.Destination, r.Subject.ID, h.DeadLetter.retries(r.Fresh), at, r.until(h.DeadLetter))
}

// until returns when what is sent again must be sent, at the latest; zero where that is not asked for (R29).
func (r *Review) until(d *DeadLetter) time.Time {
	switch {
	case !r.Deadline.IsZero():
		return r.Deadline
	case r.Force:
		return time.Time{}
	}
	return d.Deadline
}

type reviewBody struct {
	Decision   DeadLetterState `json:"decision"`
	DeadLetter string          `json:"deadLetterId"`
	ReviewNote                 // but for Discard and At
	Episode    int64           `json:"episode"`
	RetryCount int64           `json:"retryCount"`
	Delivery   Delivery        `json:"delivery"`
	JobKey     int64           `json:"jobKey,omitempty,string"`
	Run        string          `json:"bulkRun,omitempty"`
}

// Reviewed says what a review came to.
type Reviewed struct {
	// Episode that goes on, with the Retries the process goes on with, or that ended.
	Episode Episode
	// DeadLetter as it stands then.
	DeadLetter DeadLetter
}

// review applies a review. The episode goes on one retry further, or a fresh one begins at 0.
func (b *batch) review(r *Review, h *History) (Reviewed, error) {
	d := h.DeadLetter
	switch {
	case r.Run != "" && h.Run == nil:
		return Reviewed{}, ErrBulkRunUnknown
	case r.Run != "" && h.Run.State != BulkRunning: // stopped just now: what is not decided yet is not
		return Reviewed{}, &BulkStateError{h.Run.State}
	case d == nil || d.ID != r.DeadLetter:
		return Reviewed{}, ErrDeadLetterUnknown
	case d.State != DeadLetterOpen || h.Episode.DeadLetter != d.ID:
		return Reviewed{}, d.Decided()
	case r.undone(d):
		return Reviewed{}, ErrUndone
	case r.Note == 0 && b.now.Before(d.Later.At.Add(UndoFor)):
		return Reviewed{}, d.Later.decided()
	case r.Discard:
		return b.reviewed(r, h, DeadLetterDiscarded, time.Time{}), nil
	case !d.Waits():
		return Reviewed{}, ErrNobodyWaits
	case r.Accepted != nil && !d.Accepts:
		return Reviewed{}, ErrNotListed
	case r.Accepted != nil:
		return b.reviewed(r, h, DeadLetterAccepted, time.Time{}), nil
	}
	next, err := r.judged(h, b.now)
	if err != nil {
		return Reviewed{}, err
	}
	return b.reviewed(r, h, DeadLetterReprocessing, next), nil
}

// judged returns when what is sent again is due, reviewed at now, or why it cannot be.
func (r *Review) judged(h *History, now time.Time) (next time.Time, err error) {
	switch d := h.DeadLetter; {
	case !d.Waits():
		return next, ErrNobodyWaits
	case d.AtLimit() && !r.Force:
		return next, ErrMaxRetriesExceeded
	}
	next = r.next(h, now)
	if until := r.until(h.DeadLetter); !until.IsZero() && next.After(until) {
		return next, ErrDeadlineMissed
	}
	return next, nil
}

// AtLimit reports whether its retries are used up.
func (d *DeadLetter) AtLimit() bool { return d.RetryCount >= d.MaxRetries }

// retries that the process goes on with when it is sent again. The largest count there is has none above it.
func (d *DeadLetter) retries(fresh bool) int64 {
	if fresh {
		return 0
	}
	return max(d.RetryCount, d.RetryCount+1)
}

// Decided says who was faster.
func (d *DeadLetter) Decided() *DecidedError {
	e := &DecidedError{At: d.ChangedAt, State: d.State}
	if d.State == DeadLetterReprocessing || d.State == DeadLetterDiscarded ||
		d.State == DeadLetterAccepted && d.Review.Accepted != nil {
		e.By, e.At = d.Review.By, d.Review.At
	}
	if e.At.IsZero() { // decided by a worker that kept no note
		e.At = d.ChangedAt
	}
	return e
}

// reviewed records the decision, and sends it to the process that waits.
func (b *batch) reviewed(r *Review, h *History, as DeadLetterState, next time.Time) Reviewed {
	d := h.DeadLetter
	note := ReviewNote{Reason: storable(redact.Line(r.Reason, maxReasonBytes)), By: bounded(r.By), Accepted: r.Accepted,
		Force: r.Force, Fresh: r.Fresh, NextRetryTime: next, Deadline: r.Deadline.UTC().Truncate(time.Millisecond)}
	body := &reviewBody{Decision: as, DeadLetter: d.ID, ReviewNote: note, Episode: h.Episode.Number,
		RetryCount: h.Episode.Retries, Delivery: DeliveryNobody, JobKey: d.ReviewJobKey, Run: r.Run}
	if as == DeadLetterReprocessing {
		body.RetryCount = d.retries(r.Fresh)
		if r.Deadline.IsZero() && !r.Force { // nobody took the answer that had it
			body.Deadline = d.Review.Deadline
		}
	}
	if r.Fresh {
		body.Episode++
	}
	if d.Waits() {
		body.Delivery = DeliveryPending
		if d.Delivery == DeliveryTaken {
			body.Delivery = DeliveryTaken
		}
	}
	b.entry(h, r.Subject, ReviewEntry, body, Happening{Review: r})
	return Reviewed{h.Episode, *d}
}
