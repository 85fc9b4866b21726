package journal

import (
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/redact"
)

// Review is a person's decision on a dead letter (R17).
type Review struct {
	Subject    Subject
	DeadLetter string
	// Discard discards it, Accepted closes it because the other side has it already; otherwise it is sent again.
	Discard  bool
	Accepted *Acceptance
	// Force sends it again even at the limit or after its deadline. Fresh begins a new episode at retry 0, and needs
	// Force.
	Force, Fresh bool
	// Deadline is its new deadline if it is sent again (R29); zero keeps the old one.
	Deadline time.Time
	// Delay is the time from the review to the retry, in the policy's precision (R7). The retry may lie beyond the
	// policy's total limit.
	Delay time.Duration
	// Policy says when the destination is open; the retry is moved to then (R29). Nil means always.
	Policy *decision.Policy
	// Reason and By are a person's words, which are required, and name.
	Reason, By string
	// Run is the bulk run that decides; empty if a person decides on this dead letter alone.
	Run string
	// Note is the record of the note that asked for the review, which must still stand; 0 for none.
	Note int64
}

// maxReasonBytes bounds a person's words, which are redacted like any text, as they may name a patient.
const maxReasonBytes = 1000

// next returns when the retry is made: never in the past (R7), and while the destination is open (R29).
func (r *Review) next(h *History, now time.Time) time.Time {
	precision := time.Millisecond
	if r.Delay > 0 && r.Delay%time.Minute == 0 { // a delay in whole minutes
		precision = time.Second
	}
	at := now.UTC().Truncate(precision).Add(r.Delay)
	to := h.DeadLetter.Destination
	switch {
	case r.Policy == nil, to == "" && h.Last == nil:
		return at
	case to == "":
		to = h.Last.Destination
	}
	return r.Policy.Open(to, r.Subject.ID, h.DeadLetter.retries(r.Fresh), at, r.until(h.DeadLetter))
}

// until returns the deadline that the retry must keep; zero for none (R29).
func (r *Review) until(d *DeadLetter) time.Time {
	switch {
	case !r.Deadline.IsZero():
		return r.Deadline
	case r.Force:
		return time.Time{}
	}
	return d.Deadline
}

// ReviewBody is the body of a review's record.
type ReviewBody struct {
	Decision   DeadLetterState `json:"decision"`
	DeadLetter string          `json:"deadLetterId"`
	ReviewNote                 // without Discard and At
	Episode    int64           `json:"episode"`
	RetryCount int64           `json:"retryCount"`
	Delivery   Delivery        `json:"delivery"`
	JobKey     int64           `json:"jobKey,omitempty,string"`
	Run        string          `json:"bulkRun,omitempty"`
}

// Reviewed is the result of a review.
type Reviewed struct {
	// Episode is as it stands then; Retries is the count that the process goes on with.
	Episode Episode
	// DeadLetter is as it stands then.
	DeadLetter DeadLetter
}

// review checks a review against the history and records it.
func (b *batch) review(r *Review, h *History) (Reviewed, error) {
	d := h.DeadLetter
	switch {
	case r.Run != "" && h.Run == nil:
		return Reviewed{}, ErrBulkRunUnknown
	case r.Run != "" && h.Run.State != BulkRunning: // the run was stopped meanwhile
		return Reviewed{}, Refuse(InvalidRunState, "the bulk run is %s", h.Run.State)
	case d == nil || d.ID != r.DeadLetter:
		return Reviewed{}, ErrDeadLetterUnknown
	case d.State != DeadLetterOpen || h.Episode.DeadLetter != d.ID:
		return Reviewed{}, d.Decided()
	case r.undone(d):
		return Reviewed{}, Refuse(InvalidRetryState, "the decision was undone")
	case r.Note == 0 && b.now.Before(d.Later.At.Add(UndoFor)):
		return Reviewed{}, d.Later.decided()
	case r.Discard:
		return b.reviewed(r, h, DeadLetterDiscarded, time.Time{}), nil
	case !d.Waits():
		return Reviewed{}, d.Unattended()
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

// judged returns when the retry of a review at now is due, or why there can be none.
func (r *Review) judged(h *History, now time.Time) (next time.Time, err error) {
	switch d := h.DeadLetter; {
	case !d.Waits():
		return next, d.Unattended()
	case d.AtLimit() && !r.Force:
		return next, d.Exceeded()
	}
	next = r.next(h, now)
	if until := r.until(h.DeadLetter); !until.IsZero() && next.After(until) {
		return next, Missed(until)
	}
	return next, nil
}

// AtLimit reports whether the retries are used up.
func (d *DeadLetter) AtLimit() bool { return d.RetryCount >= d.MaxRetries }

// retries returns the retryCount that the process goes on with when it is sent again, without overflow.
func (d *DeadLetter) retries(fresh bool) int64 {
	if fresh {
		return 0
	}
	return max(d.RetryCount, d.RetryCount+1)
}

// reviewed records the decision and sends it to the process that waits.
func (b *batch) reviewed(r *Review, h *History, as DeadLetterState, next time.Time) Reviewed {
	d := h.DeadLetter
	note := ReviewNote{Reason: storable(redact.Line(r.Reason, maxReasonBytes)), By: bounded(r.By), Accepted: r.Accepted,
		Force: r.Force, Fresh: r.Fresh, NextRetryTime: next, Deadline: r.Deadline.UTC().Truncate(time.Millisecond)}
	body := &ReviewBody{Decision: as, DeadLetter: d.ID, ReviewNote: note, Episode: h.Episode.Number,
		RetryCount: h.Episode.Retries, Delivery: DeliveryNobody, JobKey: d.ReviewJobKey, Run: r.Run}
	if as == DeadLetterReprocessing {
		body.RetryCount = d.retries(r.Fresh)
		if r.Deadline.IsZero() && !r.Force { // keep a new deadline that no process took yet
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
	b.entry(h, r.Subject, ReviewEntry, body)
	return Reviewed{h.Episode, *d}
}
