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
	// DiscardLater lets it go after UndoFor, unless Undo comes first.
	DiscardLater NoteVerb = "discard"
	Undo         NoteVerb = "undo"
)

// DiscardQueue is the outbox's queue of discards that can still be undone; UndoFor is for how long they can.
const (
	DiscardQueue = "discards"
	UndoFor      = 30 * time.Second
)

// ErrUndone is an ErrInvalidRetryState: the discard that was to be carried out is wanted no longer.
var ErrUndone = fmt.Errorf("%w: the discard was undone", ErrInvalidRetryState)

// Note is what a person says of a dead letter without deciding on it.
type Note struct {
	Subject    Subject
	DeadLetter string
	Verb       NoteVerb
	// Text and By are the person's words, which Undo has none of and Assign may have, and name.
	Text, By string
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

// note records a note. To undo what is not about to be discarded changes nothing, nor does to assign as it is assigned.
func (b *batch) note(n *Note, h *History) (DeadLetter, error) {
	d, until := h.DeadLetter, n.FollowUpAt.UTC().Truncate(time.Millisecond)
	body := &noteBody{n.Verb, n.DeadLetter, storable(redact.Line(n.Text, maxReasonBytes)), bounded(n.By), bounded(n.Assignee), until}
	switch {
	case d == nil || d.ID != n.DeadLetter:
		return DeadLetter{}, ErrDeadLetterUnknown
	case n.Verb == Comment:
	case d.State != DeadLetterOpen || h.Episode.DeadLetter != d.ID:
		return DeadLetter{}, d.Decided()
	case n.Verb == Undo && d.Discarding == Mark{}, n.Verb == DiscardLater && d.Discarding != Mark{},
		n.Verb == Assign && d.Assigned.is(body):
		return *d, nil
	}
	b.entry(h, n.Subject, NoteEntry, body, Happening{})
	if n.Verb == DiscardLater {
		b.changes.Outbox = append(b.changes.Outbox, Message{ID: d.ID + "/" + strconv.FormatInt(d.Discarding.Record, 10),
			Queue: DiscardQueue, Key: d.ID, Subject: h.Key, Type: string(n.Verb), Body: "{}", At: d.Discarding.At})
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
	case DiscardLater:
		d.Discarding = m
	case Undo:
		d.Discarding = Mark{}
	}
}

// is reports whether the body says the same.
func (a *Assignment) is(b *noteBody) bool {
	return a.Assignee == b.Assignee && a.FollowUpAt.Equal(b.FollowUpAt) && a.Text == b.Text
}

// unmark takes what notes left on a dead letter that is open no longer.
func (d *DeadLetter) unmark() {
	if d.State != DeadLetterOpen {
		d.Assigned, d.Discarding = Assignment{}, Mark{}
	}
}

// undone reports that a discard is asked for by a note that stands no longer.
func (r *Review) undone(d *DeadLetter) bool { return r.Note != 0 && r.Note != d.Discarding.Record }
