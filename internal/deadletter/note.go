package deadletter

import (
	"cmp"
	"context"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Note takes what a person says of a dead letter without deciding on it; of c it looks at ID, Reason and By. Its errors
// are Retry's.
func (s *Service) Note(ctx context.Context, c Command, verb journal.NoteVerb) (Item, error) {
	if verb != journal.Look && verb != journal.Undo {
		reason, err := CheckReason(c.Reason)
		if err != nil {
			return Item{}, err
		}
		c.Reason = reason
	}
	d, err := s.Show(ctx, c.ID)
	if err != nil {
		return Item{}, err
	}
	if asked := &d.Asked; verb == journal.Ask && *asked != (journal.Mark{}) {
		return Item{}, refuse(RequestStands, "%s has asked for a decision since %s; a request stands until somebody decides",
			asked.By, decision.Instant(asked.At))
	}
	after, err := s.memory.Note(ctx,
		&journal.Note{Subject: d.Subject, DeadLetter: d.ID, Verb: verb, Text: c.Reason, By: c.By})
	if err != nil {
		return Item{}, s.refusal(err, &d)
	}
	d.DeadLetter = after
	return d, nil
}

// discardsAtOnce are looked at together.
const discardsAtOnce = 200

// DiscardDue carries the discards out that can be undone no longer. Of several replicas that do so at once one does.
func (s *Service) DiscardDue(ctx context.Context, box journal.Outbox) error {
	waiting, err := box.Pending(ctx, journal.DiscardQueue, 0, discardsAtOnce)
	if err != nil {
		return err
	}
	var done []int64
	for i := range waiting {
		m := &waiting[i]
		if m.At.Add(journal.UndoFor).After(s.now()) {
			break // those behind it were asked for later
		}
		if err = s.discardAsked(ctx, m); err != nil {
			break
		}
		done = append(done, m.Sequence)
	}
	if done != nil {
		err = cmp.Or(s.memory.Published(ctx, done), err)
	}
	return err
}

// discardAsked carries out the discard that m asks for, unless it was undone or somebody has decided since.
func (s *Service) discardAsked(ctx context.Context, m *journal.Message) error {
	d, err := s.Show(ctx, m.Key)
	if asked := &d.Discarding; err == nil && *asked != (journal.Mark{}) && asked.At.Equal(m.At) {
		_, err = s.record(ctx, &d, &journal.Review{Subject: d.Subject, DeadLetter: d.ID, Discard: true,
			Reason: asked.Text, By: asked.By, Note: asked.Record})
	}
	if RefusalOf(err) != nil {
		err = nil
	}
	return err
}

// RunDiscards carries discards out as they come due, until ctx ends. What fails is tried again: the journal says itself
// that its store does.
func (s *Service) RunDiscards(ctx context.Context, box journal.Outbox) {
	for ; ctx.Err() == nil; rest(ctx, time.Second) {
		_ = s.DiscardDue(ctx, box)
	}
}
