package journal

import (
	"context"
	"strconv"
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
	RetryOptions
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

// review checks a review against the history and records it.
func (b *batch) review(r *Review, h *History) (DeadLetter, error) {
	d := h.DeadLetter
	switch {
	case r.Run != "" && h.Run == nil:
		return DeadLetter{}, ErrBulkRunUnknown
	case r.Run != "" && h.Run.State != BulkRunning: // the run was stopped meanwhile
		return DeadLetter{}, Refuse(InvalidRunState, "the bulk run is %s", h.Run.State)
	case d == nil || d.ID != r.DeadLetter:
		return DeadLetter{}, ErrDeadLetterUnknown
	case d.State != DeadLetterOpen || h.Episode.DeadLetter != d.ID:
		return DeadLetter{}, d.Decided()
	case r.Note != 0 && r.Note != d.Later.Record:
		return DeadLetter{}, Refuse(InvalidRetryState, "the decision was undone")
	case r.Note == 0 && b.now.Before(d.Later.At.Add(UndoFor)):
		return DeadLetter{}, d.Later.decided()
	case r.Discard:
		return b.reviewed(r, h, DeadLetterDiscarded, time.Time{}), nil
	case !d.Waits():
		return DeadLetter{}, d.Unattended()
	case r.Accepted != nil && !d.Accepts:
		return DeadLetter{}, ErrNotListed
	case r.Accepted != nil:
		return b.reviewed(r, h, DeadLetterAccepted, time.Time{}), nil
	}
	next, err := r.judged(h, b.now)
	if err != nil {
		return DeadLetter{}, err
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
func (b *batch) reviewed(r *Review, h *History, as DeadLetterState, next time.Time) DeadLetter {
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
	return *d
}

// NoteVerb is the kind of a Note. The set is closed.
type NoteVerb string

// The verbs. All but Comment need an open dead letter, and mark it while it is open.
const (
	Comment      NoteVerb = "comment" // for readers of the claim's story
	Assign       NoteVerb = "assign"  // says who takes care of it (R35); others may still decide
	RetryLater   NoteVerb = "retry"   // sends it again after UndoFor, unless Undo comes first
	DiscardLater NoteVerb = "discard" // discards it then, unless Undo comes first
	Undo         NoteVerb = "undo"
)

// later reports whether the verb is a decision that can be undone.
func (v NoteVerb) later() bool { return v == RetryLater || v == DiscardLater }

// LaterQueue is the outbox's queue of decisions that can still be undone, UndoFor how long they can.
const (
	LaterQueue = "decisions"
	UndoFor    = 30 * time.Second
)

// Note is what a person says about a dead letter without deciding on it.
type Note struct {
	Subject    Subject
	DeadLetter string
	Verb       NoteVerb
	// Text and By are the person's words, which are optional for Assign and Undo, and name.
	Text, By string
	// Retry is what RetryLater does, its delay worked out anew from When; nil for other verbs.
	Retry *Review
	// Undoes is the record of the decision that Undo undoes; 0 for the current one.
	Undoes int64
	// Assignee and FollowUpAt belong to Assign, and so does Replaces: the record of the assignment that it replaces; 0 for
	// the current one.
	Assignee   string
	FollowUpAt time.Time
	Replaces   int64
}

type noteBody struct {
	Note       NoteVerb  `json:"note"`
	DeadLetter string    `json:"deadLetterId"`
	Text       string    `json:"reason,omitempty"`
	By         string    `json:"by"`
	Assignee   string    `json:"assignee,omitempty"`
	FollowUpAt time.Time `json:"followUpAt,omitzero"`
	RetryOptions
}

// RetryOptions say how a dead letter is sent again.
type RetryOptions struct {
	// Force allows that even at the limit or after its deadline. Fresh begins a new episode at retry 0, and needs Force.
	Force bool `json:"forceRetry,omitempty"`
	Fresh bool `json:"fresh,omitempty"`
	// When is the caller's word for Delay. Deadline is a new deadline (R29); zero keeps the old one.
	When     string    `json:"when,omitempty"`
	Deadline time.Time `json:"submissionDeadline,omitzero"`
}

// Later is a decision that can still be undone. Its zero value is none.
type Later struct {
	Verb NoteVerb `json:"verb"`
	RetryOptions
	Mark
}

// decided refuses the decisions of others while l can be undone.
func (l *Later) decided() *Refusal {
	state := DeadLetterReprocessing
	if l.Verb == DiscardLater {
		state = DeadLetterDiscarded
	}
	return settled(state, l.At, l.By)
}

// Mark is what a note leaves on a dead letter. Its zero value is nothing.
type Mark struct {
	By     string    `json:"by"`
	Text   string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	Record int64     `json:"record"`
}

// Assignment is who takes care of a dead letter while it is open. A dead letter that is new, or open again, is
// unassigned, so that its team sees it. The zero value is no assignment.
type Assignment struct {
	// Assignee is the name of an account; empty for nobody.
	Assignee string `json:"assignee,omitempty"`
	// FollowUpAt is when to look at it again; zero for no date.
	FollowUpAt time.Time `json:"followUpAt,omitzero"`
	Mark
}

// Note records what a person says about a dead letter, and returns the dead letter as it stands then. Its errors are a
// *Refusal and those of Analyze.
func (j *Journal) Note(ctx context.Context, n *Note) (DeadLetter, error) {
	return outcomeOf(ctx, j, Lookup{Subject: n.Subject, DeadLetter: n.DeadLetter},
		func(b *batch, h *History) (DeadLetter, error) { return b.note(n, h) })
}

// note records a note. It does nothing if there is nothing to undo, or the same person said the same before.
func (b *batch) note(n *Note, h *History) (DeadLetter, error) {
	d, until := h.DeadLetter, n.FollowUpAt.UTC().Truncate(time.Millisecond)
	body := &noteBody{n.Verb, n.DeadLetter, storable(redact.Line(n.Text, maxReasonBytes)), bounded(n.By),
		bounded(n.Assignee), until, RetryOptions{}}
	if r := n.Retry; r != nil {
		body.RetryOptions = r.RetryOptions
		body.Deadline = r.Deadline.UTC().Truncate(time.Millisecond)
	}
	switch {
	case d == nil || d.ID != n.DeadLetter:
		return DeadLetter{}, ErrDeadLetterUnknown
	case n.Verb == Comment:
	case d.State != DeadLetterOpen || h.Episode.DeadLetter != d.ID:
		return DeadLetter{}, d.Decided()
	case n.Verb == Undo && (d.Later == Later{} || n.Undoes != 0 && n.Undoes != d.Later.Record),
		n.Verb == d.Later.Verb && n.By == d.Later.By && body.RetryOptions == d.Later.RetryOptions,
		n.Verb == Assign && d.Assigned.is(body):
		return *d, nil
	case n.Replaces != 0 && n.Replaces != d.Assigned.Record:
		return DeadLetter{}, ErrReassigned
	case n.Verb.later() && d.Later != Later{}:
		return DeadLetter{}, d.Later.decided()
	case n.Verb == RetryLater:
		if _, err := n.Retry.judged(h, b.now.Add(UndoFor)); err != nil {
			return DeadLetter{}, err
		}
	}
	b.entry(h, n.Subject, NoteEntry, body)
	if n.Verb.later() {
		b.changes.Outbox = append(b.changes.Outbox, d.LaterMessage())
	}
	return *d, nil
}

// LaterMessage returns the message that has a decision which can still be undone carried out.
func (d *DeadLetter) LaterMessage() Message {
	l := &d.Later
	return Message{ID: d.ID + "/" + strconv.FormatInt(l.Record, 10), Queue: LaterQueue, Key: d.ID, Subject: d.Key,
		Type: string(l.Verb), Body: "{}", At: l.At}
}

func (b *noteBody) fold(p *projection, h *History) {
	d := h.letters[b.DeadLetter]
	if d == nil {
		return // purged
	}
	p.touch(d)
	switch m := (Mark{b.By, b.Text, p.at, p.record}); b.Note {
	case Comment:
	case Assign:
		d.Assigned = Assignment{b.Assignee, b.FollowUpAt, m}
	case RetryLater, DiscardLater:
		d.Later = Later{b.Note, b.RetryOptions, m}
	case Undo:
		d.Later = Later{}
	}
}

// is reports whether b assigns the same.
func (a *Assignment) is(b *noteBody) bool {
	return a.Assignee == b.Assignee && a.FollowUpAt.Equal(b.FollowUpAt) && a.Text == b.Text
}

// unmark removes the marks of notes from a dead letter that is no longer open.
func (d *DeadLetter) unmark() {
	if d.State != DeadLetterOpen {
		d.Assigned, d.Later = Assignment{}, Later{}
	}
}
