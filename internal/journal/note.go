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
	// Look says that somebody is looking into it.
	Look NoteVerb = "look"
	// Ask asks whoever may decide to do so.
	Ask NoteVerb = "ask"
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
	// Text and By are the person's words, which Look and Undo have none of, and name.
	Text, By string
}

type noteBody struct {
	Note       NoteVerb `json:"note"`
	DeadLetter string   `json:"deadLetterId"`
	Text       string   `json:"reason,omitempty"`
	By         string   `json:"by"`
}

// Mark is what a note leaves on a dead letter. Its zero value is nothing.
type Mark struct {
	By     string    `json:"by"`
	Text   string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	Record int64     `json:"record"`
}

// Note records what a person says of a dead letter, and returns it as it stands then. It returns as Analyze does, or
// one of ErrReasonRequired, ErrDeadLetterUnknown and a *DecidedError.
func (j *Journal) Note(ctx context.Context, n *Note) (DeadLetter, error) {
	if n.Verb != Look && n.Verb != Undo && strings.TrimSpace(n.Text) == "" {
		return DeadLetter{}, ErrReasonRequired
	}
	return outcomeOf(ctx, j, Lookup{Subject: n.Subject, DeadLetter: n.DeadLetter},
		func(b *batch, h *History) (DeadLetter, error) { return b.note(n, h) })
}

// note records a note. To undo what is not about to be discarded changes nothing, nor does to ask where a request stands.
func (b *batch) note(n *Note, h *History) (DeadLetter, error) {
	d := h.DeadLetter
	switch {
	case d == nil || d.ID != n.DeadLetter:
		return DeadLetter{}, ErrDeadLetterUnknown
	case n.Verb == Comment:
	case d.State != DeadLetterOpen || h.Episode.DeadLetter != d.ID:
		return DeadLetter{}, d.Decided()
	case n.Verb == Undo && d.Discarding == Mark{}, n.Verb == DiscardLater && d.Discarding != Mark{},
		n.Verb == Ask && d.Asked != Mark{}:
		return *d, nil
	}
	body := &noteBody{n.Verb, d.ID, storable(redact.Line(n.Text, maxReasonBytes)), bounded(n.By)}
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
	case Look:
		d.Looking = m
	case Ask:
		d.Asked = m
	case DiscardLater:
		d.Discarding = m
	case Undo:
		d.Discarding = Mark{}
	}
}

// unmark takes what notes left on a dead letter that is open no longer.
func (d *DeadLetter) unmark() {
	if d.State != DeadLetterOpen {
		d.Looking, d.Asked, d.Discarding = Mark{}, Mark{}, Mark{}
	}
}

// undone reports that a discard is asked for by a note that stands no longer.
func (r *Review) undone(d *DeadLetter) bool { return r.Note != 0 && r.Note != d.Discarding.Record }
