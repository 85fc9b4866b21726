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

// Note records what a person says about a dead letter without deciding on it at once: any verb but Assign. It reads
// ID, Reason and By of c, for RetryLater a retry's other fields, and for Undo Undoes. Its errors are Decide's.
func (s *Service) Note(ctx context.Context, c Command, verb journal.NoteVerb) (Item, error) {
	n := &journal.Note{Verb: verb, By: c.By, When: c.When, Undoes: c.Undoes}
	var err error
	if verb != journal.Undo {
		n.Text, err = CheckReason(c.Reason)
	}
	if verb == journal.RetryLater && err == nil {
		c.Action = journal.BulkRetry
		_, n.Retry, err = s.review(ctx, c)
	}
	if err != nil {
		return Item{}, err
	}
	return s.note(ctx, c.ID, n)
}

// Assign says who takes care of an open dead letter (R35). It reads Assignee, FollowUpAt, By and Text, which may be
// empty, of a, and Record, which is that of the assignment that the caller saw, or 0. Its errors are Decide's. The caller checks permissions.
func (s *Service) Assign(ctx context.Context, id string, a journal.Assignment) (Item, error) {
	said, err := CheckReason(a.Text)
	if journal.CodeOf(err) == ReasonTooLong {
		return Item{}, journal.Refuse(ReasonTooLong, "the note has more than %d characters; say it in fewer", MaxReason)
	}
	return s.note(ctx, id, &journal.Note{Verb: journal.Assign, Text: said, By: a.By, Assignee: a.Assignee,
		FollowUpAt: a.FollowUpAt, Replaces: a.Record})
}

// note records n about the dead letter with that id.
func (s *Service) note(ctx context.Context, id string, n *journal.Note) (Item, error) {
	d, err := s.Show(ctx, id)
	if err != nil {
		return Item{}, err
	}
	n.Subject, n.DeadLetter = d.Subject, d.ID
	after, err := s.memory.Note(ctx, n)
	if err != nil {
		return Item{}, fmt.Errorf("record the note: %w", err)
	}
	d.DeadLetter = after
	return d, nil
}

// mostLater is how many delayed decisions are read at once: many more than people make in half a minute.
const mostLater = 10_000

// DecideDue carries out the delayed decisions that can no longer be undone: each once, even if several replicas call
// it. A decision that fails because of its own dead letter does not hold up the others; the error is the first of
// those.
func (s *Service) DecideDue(ctx context.Context, box journal.Outbox) (failed error) {
	waiting, err := box.Pending(ctx, journal.LaterQueue, 0, mostLater)
	var done []int64
	for i := 0; i < len(waiting) && err == nil; i++ {
		m := &waiting[i]
		wait := m.At.Add(journal.UndoFor).Sub(s.now()) // longer behind a clock that was ahead, and is put right
		if wait > 0 && wait <= journal.UndoFor+journal.ClockTolerance || m.Held() != nil {
			continue // later ones may be due: another replica's clock may have stamped this one
		}
		switch one := s.decideLater(ctx, m); {
		case one == nil, journal.RefusalOf(one) != nil: // undone, or decided on since
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
	return cmp.Or(err, failed)
}

// concernsOneAlone reports whether an error is about this dead letter alone: trying it again is no use, and others
// can be decided.
func concernsOneAlone(err error) bool {
	return errors.Is(err, journal.ErrInvalid) || errors.Is(err, journal.ErrUnreadable)
}

// decideLater carries out the decision that m asks for, unless it was undone. It undoes one that is refused, with the
// refusal's message; the error is a *journal.Refusal if the undoing is refused too.
func (s *Service) decideLater(ctx context.Context, m *journal.Message) error {
	d, err := s.Show(ctx, m.Key)
	asked := &d.Later
	if err != nil || *asked == (journal.Later{}) || !asked.At.Equal(m.At) {
		return err
	}
	_, wanted, err := s.review(ctx, Command{ID: d.ID, Action: journal.BulkAction(asked.Verb), Reason: asked.Text,
		By: asked.By, Force: asked.Force, Fresh: asked.Fresh, When: asked.When, Deadline: asked.Deadline})
	if err == nil {
		wanted.Note = asked.Record
		_, err = s.record(ctx, &d, wanted)
	}
	if why := journal.RefusalOf(err); why != nil {
		_, err = s.note(ctx, d.ID, &journal.Note{Verb: journal.Undo, Text: why.Message, By: journal.SettledBy,
			Undoes: asked.Record})
	}
	return err
}

// RunLater carries out delayed decisions as they come due, until ctx ends. It tries failures again, and logs each
// once.
func (s *Service) RunLater(ctx context.Context, box journal.Outbox, log *zap.Logger) {
	for told := ""; ctx.Err() == nil; rest(ctx, time.Second) {
		says := ""
		if err := s.DecideDue(ctx, box); err != nil && ctx.Err() == nil {
			if says = err.Error(); says != told {
				log.Warn("a delayed decision cannot be carried out; it is tried again, others go on unless the journal is down",
					zap.String("event", "decision_fails"), zap.Error(err))
			}
		}
		told = says
	}
}

// NoticeQueue is the outbox's queue of notices to teams (RN-BIL-005 §9.2, §9.3, R21). A message's key is team/way.
const NoticeQueue = "notices"

// NoticeKind is what a notice is about. The set is closed.
type NoticeKind string

// The kinds.
const (
	NewsNotice   NoticeKind = "news"    // dead letters that came since the last one
	DigestNotice NoticeKind = "digest"  // the daily review of RN-BIL-005 §7.2
	CausesNotice NoticeKind = "causes"  // causes that are new, or back
	OutageNotice NoticeKind = "outage:" // outages of the destination whose name follows
)

// Watermark is how far a team's receiver (its webhook or one address) has been told. One with a zero At was never
// stored.
type Watermark struct {
	Team    decision.Team
	Channel string
	Kind    NoticeKind
	// Record is, for news, the last record told; for an outage, 1 once its end was told; otherwise 0.
	Record int64
	// Day is the last digest's in the teams' time zone, such as 2026-11-21; otherwise empty.
	Day string
	// At is when the watermark was moved; for an outage, when that began; for causes, News.At of the last one told.
	At time.Time
}

// NoticeStore keeps watermarks. Its errors hold a *journal.StoreError. Every method is safe for concurrent use.
type NoticeStore interface {
	// Watermarks returns all watermarks, sorted by team, channel and kind.
	Watermarks(ctx context.Context) ([]Watermark, error)
	// MoveWatermark replaces from by to, of the same team, channel and kind, and puts m, unless it is nil, into the
	// outbox: both or neither. It does nothing and returns false if the watermark is no longer from, or if a message
	// with m's queue and key still waits, so that news gathers instead of piling up.
	MoveWatermark(ctx context.Context, from, to Watermark, m *journal.Message) (bool, error)
	// TellCause stores c.News as what was reported of a cause (R34), and sets its At later than every other's. It does
	// nothing and returns false if the cause did not begin at c.Began, or its news was reported already.
	TellCause(ctx context.Context, c *journal.Cause) (bool, error)
}
