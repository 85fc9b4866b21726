package journal

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/redact"
)

// NoteVerb is what a person says of a dead letter without deciding on it. The set is closed.
type NoteVerb string

// The verbs. All but Comment are about a dead letter that is open, and mark it until it is so no longer.
const (
	// Comment is for whoever reads the claim's story.
	Comment NoteVerb = "comment"
	// Assign says who has it (R35), which binds nobody.
	Assign NoteVerb = "assign"
	// RetryLater sends it again, and DiscardLater lets it go, after UndoFor, unless Undo comes first.
	RetryLater   NoteVerb = "retry"
	DiscardLater NoteVerb = "discard"
	Undo         NoteVerb = "undo"
)

// later reports whether the verb is a decision that can be undone.
func (v NoteVerb) later() bool { return v == RetryLater || v == DiscardLater }

// LaterQueue is the outbox's queue of decisions that can still be undone; UndoFor is for how long they can.
const (
	LaterQueue = "decisions"
	UndoFor    = 30 * time.Second
)

// ErrUndone is an ErrInvalidRetryState: the decision that was to be carried out is wanted no longer.
var ErrUndone = fmt.Errorf("%w: the decision was undone", ErrInvalidRetryState)

// Note is what a person says of a dead letter without deciding on it.
type Note struct {
	Subject    Subject
	DeadLetter string
	Verb       NoteVerb
	// Text and By are the person's words, which Assign and Undo may have, and name.
	Text, By string
	// Retry is what RetryLater is to do, whose delay is found out anew by When; nil otherwise.
	Retry *Review
	When  string
	// Undoes is the record of the decision that Undo is about; 0 for whichever stands.
	Undoes int64
	// Assignee and FollowUpAt are of Assign.
	Assignee   string
	FollowUpAt time.Time
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

// RetryOptions are how a dead letter is to be sent again: as a Review says, and When, which the caller gives.
type RetryOptions struct {
	Force    bool      `json:"forceRetry,omitempty"`
	Fresh    bool      `json:"fresh,omitempty"`
	When     string    `json:"when,omitempty"`
	Deadline time.Time `json:"submissionDeadline,omitzero"`
}

// Later is a decision that can still be undone. Its zero value is none.
type Later struct {
	Verb NoteVerb `json:"verb"`
	RetryOptions
	Mark
}

// decided returns why nobody else may decide while l can be undone.
func (l *Later) decided() *DecidedError {
	state := DeadLetterReprocessing
	if l.Verb == DiscardLater {
		state = DeadLetterDiscarded
	}
	return &DecidedError{By: l.By, At: l.At, State: state}
}

// Mark is what a note leaves on a dead letter. Its zero value is nothing.
type Mark struct {
	By     string    `json:"by"`
	Text   string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	Record int64     `json:"record"`
}

// Assignment is who has a dead letter while it is open, and what was said with that. A dead letter that is new, or open
// again, is nobody's: its team must see it, and it may be another's than the one before. Its zero value is nothing.
type Assignment struct {
	// Assignee is the name of an account; empty for nobody.
	Assignee string `json:"assignee,omitempty"`
	// FollowUpAt is when somebody is to look at it again; the zero time for no day.
	FollowUpAt time.Time `json:"followUpAt,omitzero"`
	Mark
}

// Note records what a person says of a dead letter, and returns it as it stands then. It returns as Analyze does, or
// one of ErrReasonRequired, ErrDeadLetterUnknown and a *DecidedError.
func (j *Journal) Note(ctx context.Context, n *Note) (DeadLetter, error) {
	if n.Verb != Assign && n.Verb != Undo && strings.TrimSpace(n.Text) == "" {
		return DeadLetter{}, ErrReasonRequired
	}
	return outcomeOf(ctx, j, Lookup{Subject: n.Subject, DeadLetter: n.DeadLetter},
		func(b *batch, h *History) (DeadLetter, error) { return b.note(n, h) })
}

// note records a note. To undo what is not about to be decided changes nothing, nor does to assign as it is assigned.
func (b *batch) note(n *Note, h *History) (DeadLetter, error) {
	d, until := h.DeadLetter, n.FollowUpAt.UTC().Truncate(time.Millisecond)
	body := &noteBody{n.Verb, n.DeadLetter, storable(redact.Line(n.Text, maxReasonBytes)), bounded(n.By),
		bounded(n.Assignee), until, RetryOptions{}}
	switch {
	case d == nil || d.ID != n.DeadLetter:
		return DeadLetter{}, ErrDeadLetterUnknown
	case n.Verb == Comment:
	case d.State != DeadLetterOpen || h.Episode.DeadLetter != d.ID:
		return DeadLetter{}, d.Decided()
	case n.Verb == Undo && (d.Later == Later{} || n.Undoes != 0 && n.Undoes != d.Later.Record),
		n.Verb == d.Later.Verb && n.By == d.Later.By, n.Verb == Assign && d.Assigned.is(body):
		return *d, nil
	case n.Verb.later() && d.Later != Later{}:
		return DeadLetter{}, d.Later.decided()
	case n.Verb == RetryLater:
		if _, err := n.Retry.judged(h, b.now.Add(UndoFor)); err != nil {
			return DeadLetter{}, err
		}
		body.RetryOptions = RetryOptions{n.Retry.Force, n.Retry.Fresh, n.When, n.Retry.Deadline.UTC().Truncate(time.Millisecond)}
	}
	b.entry(h, n.Subject, NoteEntry, body, Happening{})
	if n.Verb.later() {
		b.changes.Outbox = append(b.changes.Outbox, Message{ID: d.ID + "/" + strconv.FormatInt(d.Later.Record, 10),
			Queue: LaterQueue, Key: d.ID, Subject: h.Key, Type: string(n.Verb), Body: "{}", At: d.Later.At})
	}
	return *d, nil
}

// fold folds what a person said.
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

// is reports whether the body says the same.
func (a *Assignment) is(b *noteBody) bool {
	return a.Assignee == b.Assignee && a.FollowUpAt.Equal(b.FollowUpAt) && a.Text == b.Text
}

// unmark takes what notes left on a dead letter that is open no longer.
func (d *DeadLetter) unmark() {
	if d.State != DeadLetterOpen {
		d.Assigned, d.Later = Assignment{}, Later{}
	}
}

// undone reports that a decision is asked for by a note that stands no longer.
func (r *Review) undone(d *DeadLetter) bool { return r.Note != 0 && r.Note != d.Later.Record }
