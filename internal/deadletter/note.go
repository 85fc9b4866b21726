package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

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
// One that fails for what is kept of its dead letter holds up no other; the error tells of the first.
func (s *Service) DiscardDue(ctx context.Context, box journal.Outbox) (failed error) {
	for after, more := int64(0), true; more; {
		waiting, err := box.Pending(ctx, journal.DiscardQueue, after, discardsAtOnce)
		if err != nil {
			return err
		}
		var done []int64
		for i := 0; i < len(waiting) && err == nil; i++ {
			m := &waiting[i]
			after = m.Sequence
			if m.At.Add(journal.UndoFor).After(s.now()) {
				continue // whoever asked for those behind it may have had another clock
			}
			if m.Held() != nil { // it is not what was signed
				continue
			}
			switch one := s.discardAsked(ctx, m); {
			case one == nil:
				done = append(done, m.Sequence)
			case concernsOneAlone(one):
				failed = cmp.Or(failed, fmt.Errorf("dead letter %s: %w", m.Key, one))
			default:
				err = one
			}
		}
		if done != nil {
			err = cmp.Or(s.memory.Published(ctx, done), err)
		}
		if err != nil {
			return err
		}
		more = len(waiting) == discardsAtOnce
	}
	return failed
}

// concernsOneAlone reports whether an error is about this dead letter alone: trying it again is of no use, and others can
// be decided on.
func concernsOneAlone(err error) bool {
	return errors.Is(err, journal.ErrInvalid) || errors.Is(err, journal.ErrUnreadable)
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

// RunDiscards carries discards out as they come due, until ctx ends. What fails is tried again, and told once.
func (s *Service) RunDiscards(ctx context.Context, box journal.Outbox, log *zap.Logger) {
	for told := ""; ctx.Err() == nil; rest(ctx, time.Second) {
		says := ""
		if err := s.DiscardDue(ctx, box); err != nil && ctx.Err() == nil {
			if says = err.Error(); says != told {
				log.Warn("a discard that was asked for cannot be carried out; tried on, others go on unless the journal is down",
					zap.String("event", "discard_fails"), zap.Error(err))
			}
		}
		told = says
	}
}
