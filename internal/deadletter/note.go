package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Note records what a person says of a dead letter without deciding on it at once. It reads ID, Reason and By of c, and
// for RetryLater all that a retry has. Its errors are Decide's.
func (s *Service) Note(ctx context.Context, c Command, verb journal.NoteVerb) (Item, error) {
	n := &journal.Note{Verb: verb, By: c.By, When: c.When}
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

// Assign says who has an open dead letter (R35); of a it looks at Assignee, FollowUpAt, Text, which may be empty, and By.
// Its errors are Decide's. The caller checks permissions.
func (s *Service) Assign(ctx context.Context, id string, a journal.Assignment) (Item, error) {
	said, err := CheckReason(a.Text)
	if refusal := RefusalOf(err); refusal != nil && refusal.Code == ReasonTooLong {
		return Item{}, refuse(ReasonTooLong, "the note has more than %d characters; say it in fewer", MaxReason)
	}
	return s.note(ctx, id, &journal.Note{Verb: journal.Assign, Text: said, By: a.By, Assignee: a.Assignee,
		FollowUpAt: a.FollowUpAt})
}

// note records what is said of the dead letter with that id.
func (s *Service) note(ctx context.Context, id string, n *journal.Note) (Item, error) {
	d, err := s.Show(ctx, id)
	if err != nil {
		return Item{}, err
	}
	n.Subject, n.DeadLetter = d.Subject, d.ID
	after, err := s.memory.Note(ctx, n)
	if err != nil {
		return Item{}, s.refusal(err, &d, n.Retry)
	}
	d.DeadLetter = after
	return d, nil
}

// mostLater decisions that can be undone are looked at together, many more than people make in half a minute.
const mostLater = 10_000

// DecideDue carries the decisions out that can be undone no longer. Of several replicas that do so at once one does.
// One that fails for what is kept of its dead letter holds up no other; the error tells of the first.
func (s *Service) DecideDue(ctx context.Context, box journal.Outbox) (failed error) {
	waiting, err := box.Pending(ctx, journal.LaterQueue, 0, mostLater)
	var done []int64
	for i := 0; i < len(waiting) && err == nil; i++ {
		m := &waiting[i]
		if m.At.Add(journal.UndoFor).After(s.now()) || m.Held() != nil { // not due, or not what was signed
			continue // those behind it may be due: another clock may have told when they were asked for
		}
		switch one := s.decideLater(ctx, m); {
		case one == nil, RefusalOf(one) != nil: // undone, or decided on since
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

// concernsOneAlone reports whether an error is about this dead letter alone: trying it again is of no use, and others can
// be decided on.
func concernsOneAlone(err error) bool {
	return errors.Is(err, journal.ErrInvalid) || errors.Is(err, journal.ErrUnreadable)
}

// decideLater carries out the decision that m asks for, unless it was undone. One that is refused is undone, with the
// refusal's message; the error is a *Refusal where that is refused too.
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
	if why := RefusalOf(err); why != nil {
		_, err = s.note(ctx, d.ID, &journal.Note{Verb: journal.Undo, Text: why.Message, By: asked.By, Undoes: asked.Record})
	}
	return err
}

// RunLater carries out undoable decisions as they come due, until ctx ends. It tries again what fails, and logs a failure
// once.
func (s *Service) RunLater(ctx context.Context, box journal.Outbox, log *zap.Logger) {
	for told := ""; ctx.Err() == nil; rest(ctx, time.Second) {
		says := ""
		if err := s.DecideDue(ctx, box); err != nil && ctx.Err() == nil {
			if says = err.Error(); says != told {
				log.Warn("a decision that can be undone no longer cannot be carried out; tried on, others go on unless the journal is down",
					zap.String("event", "decision_fails"), zap.Error(err))
			}
		}
		told = says
	}
}

// NoticeQueue is the outbox's queue of what teams are told (RN-BIL-005 §9.2, §9.3, R21). A message's key is
// team/way.
const NoticeQueue = "notices"

// NoticeKind is what a team is told of. The set is closed.
type NoticeKind string

// The kinds.
const (
	NewsNotice   NoticeKind = "news"    // of dead letters that came since the last one
	DigestNotice NoticeKind = "digest"  // the daily review of RN-BIL-005 §7.2
	CausesNotice NoticeKind = "causes"  // of causes that are new, or back
	OutageNotice NoticeKind = "outage:" // of the outages of the destination whose name stands behind it
)

// Watermark is how far a receiver of a team has been told: its webhook, or one address. One without At was never kept.
type Watermark struct {
	Team    decision.Team
	Channel string
	Kind    NoticeKind
	// Record up to which dead letters have been told, of news; of an outage 1 once its end was; 0 of digests.
	Record int64
	// Day of the last digest, such as 2026-11-21 where the teams live; empty of news.
	Day string
	// At is when the watermark was moved; of an outage, when that began; of causes the last one's journal.News.At.
	At time.Time
}

// NoticeCount sums up dead letters of one team that are open.
type NoticeCount struct {
	// N dead letters of so many Causes, and what they are worth.
	N, Causes, Cents int64
	// Oldest is when the first of them was born; the zero time where there is none.
	Oldest time.Time
	// Top are the causes with the most.
	Top []NoticeCause
	// Through is the last record that was looked at; 0 in an empty journal.
	Through int64
	// Older are how many were born before each of the instants that were asked for, as exactly as the writers' clocks
	// agree.
	Older []int64
}

// NoticeCause are dead letters of one team with one cause.
type NoticeCause struct {
	// Reason of the dead letters, which is another than the cause's where they died by a limit.
	Reason decision.Reason
	// Cause by its Policy, ID, Reason, Classification and Pattern; where it is not known, Policy alone.
	Cause journal.Fingerprint
	// N of them, and what they are worth.
	N, Cents int64
	// Oldest is when the first of them was born.
	Oldest time.Time
}

// NoticeOf adds counts up, which are in their order, and keeps the top causes with the most, one at least.
func NoticeOf(counts []Count, top int) (sum NoticeCount) {
	var all Count
	for i := range counts {
		c := &counts[i]
		all.Add(c)
		if i == 0 || counts[i-1].Fingerprint != c.Fingerprint || counts[i-1].Policy != c.Policy || counts[i-1].Reason != c.Reason {
			sum.Top = append(sum.Top, NoticeCause{Reason: c.Reason, Cause: journal.Fingerprint{ID: c.Fingerprint, Policy: c.Policy},
				Oldest: c.Oldest})
		}
		of := &sum.Top[len(sum.Top)-1]
		of.N, of.Cents = of.N+c.N, of.Cents+c.Cents
		of.Oldest = slices.MinFunc([]time.Time{of.Oldest, c.Oldest}, time.Time.Compare)
	}
	slices.SortStableFunc(sum.Top, func(a, b NoticeCause) int { return cmp.Or(cmp.Compare(b.N, a.N), a.Oldest.Compare(b.Oldest)) })
	sum.N, sum.Cents, sum.Oldest, sum.Causes = all.N, all.Cents, all.Oldest, int64(len(sum.Top))
	sum.Top = sum.Top[:min(len(sum.Top), max(top, 1))]
	return sum
}

// NoticeStore keeps how far teams were told. Its errors hold a *journal.StoreError. Every method is safe for
// concurrent use.
type NoticeStore interface {
	// Watermarks are all that were kept, in the order of team, channel and kind.
	Watermarks(ctx context.Context) ([]Watermark, error)
	// OpenDeadLetters counts a team's open dead letters with a record above after. Its cost grows with their number.
	OpenDeadLetters(ctx context.Context, team decision.Team, after int64, top int, older ...time.Time) (NoticeCount, error)
	// MoveWatermark replaces from by to, of the same team, channel and kind, and puts m in the outbox unless it is nil:
	// both or neither. It does nothing and returns false if the watermark is no longer from, or if a message with m's queue
	// and key still waits: news gather, they do not pile up.
	MoveWatermark(ctx context.Context, from, to Watermark, m *journal.Message) (bool, error)
	// TellCause keeps c.News as what was reported of a cause (R34), and sets its At behind that of every other. It does
	// nothing and returns false if the cause did not begin at c.Began, or that was reported already.
	TellCause(ctx context.Context, c *journal.Cause) (bool, error)
}
