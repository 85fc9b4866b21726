package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// When a retry that a person asks for is made (R17); empty means Backoff.
const (
	Backoff = "backoff" // after the policy's own delay
	Now     = "now"
)

// Command is a person's decision on a dead letter.
type Command struct {
	// ID is the dead letter's.
	ID string
	// Action says what to do. RetryOptions belong to a retry, Protocol to an acceptance. The caller checks permissions.
	Action journal.BulkAction
	// Reason and By are the person's words, 1 to MaxReason characters, and name.
	Reason, By string
	journal.RetryOptions
	// Protocol is the number that the other side gave on acceptance; empty if it is not known.
	Protocol string
	// Undoes is the record of the decision that an Undo is about: another one stays. 0 is whichever there is.
	Undoes int64
	// Run is the bulk run that decides; empty for a person's decision on this dead letter alone.
	Run string
}

// check refuses a command that can be carried out on no dead letter.
func (c *Command) check() error {
	switch retry := c.Action == journal.BulkRetry; {
	case !retry && c.Action != journal.BulkDiscard && c.Action != journal.BulkAccept:
		return invalid("action", c.Action, "retry, discard or accept")
	case c.When != "" && c.When != Backoff && c.When != Now:
		return invalid("when", c.When, "backoff (after the policy's delay) or now")
	case !retry && (c.Force || c.Fresh || c.When == Now):
		return journal.Refuse("invalid_action",
			"what is closed is not retried: leave forceRetry, fresh and when out, or retry")
	case c.Fresh && !c.Force:
		return journal.Refuse("force_required",
			"fresh begins the whole ladder anew and needs forceRetry; set both, or neither")
	case c.Protocol != "" && !decision.IsProtocol(c.Protocol):
		return ErrNoProtocol
	}
	return nil
}

// List returns the dead letters that match f, after the cursor: at most limit, 1 to MostItems. next is empty if no
// more follow.
func (s *Service) List(
	ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int,
) (items []Item, next string, err error) {
	if f, err = checkFilter(f); err != nil {
		return nil, "", err
	}
	f.Now = s.now()
	if items, next, err = s.store.DeadLetterPage(ctx, f, cursor, limit); err != nil {
		return nil, "", fmt.Errorf("list dead letters: %w", err)
	}
	for i := range items {
		s.judge(&items[i])
	}
	return items, next, nil
}

// IsID reports whether s can be a dead letter's id: a UUID in lower case.
func IsID(s string) bool { return idForm.MatchString(s) }

var idForm = regexp.MustCompile(`^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Show returns the dead letter with that id.
func (s *Service) Show(ctx context.Context, id string) (Item, error) {
	if id = strings.ToLower(strings.TrimSpace(id)); !IsID(id) {
		return Item{}, journal.ErrDeadLetterUnknown
	}
	d, found, err := s.store.DeadLetter(ctx, id)
	switch {
	case err != nil:
		return Item{}, fmt.Errorf("read a dead letter: %w", err)
	case !found:
		return Item{}, journal.ErrDeadLetterUnknown
	}
	s.judge(&d)
	return d, nil
}

// judge sets Process and Late, which a Store does not know.
func (s *Service) judge(i *Item) {
	i.Process = s.Process(&i.DeadLetter)
	i.Late = i.State == journal.DeadLetterOpen && !i.Deadline.IsZero() && !s.now().Before(i.Deadline)
}

// Decide carries out a person's decision on a dead letter (R17, R33). A nil error means that the decision is durable;
// the process gets it as soon as the engine takes it. A discard needs no waiting process. Its errors hold a
// *journal.Refusal, or are the journal's.
func (s *Service) Decide(ctx context.Context, c Command) (Item, error) {
	var err error
	if c.Reason, err = CheckReason(c.Reason); err != nil {
		return Item{}, err
	}
	d, wanted, err := s.review(ctx, c)
	if err != nil {
		return Item{}, err
	}
	return s.record(ctx, &d, wanted)
}

// review returns the open dead letter that c is about, and the review to record of it.
func (s *Service) review(ctx context.Context, c Command) (d Item, wanted *journal.Review, err error) {
	c.Protocol = strings.TrimSpace(c.Protocol)
	if err = c.check(); err != nil {
		return d, nil, err
	}
	if d, err = s.Show(ctx, c.ID); err != nil {
		return d, nil, err
	}
	policy := s.policies()[d.Subject.Policy] // once: a reload may take it away
	if why := unfit(&d, &c, policy); why != nil {
		return d, nil, why
	}
	wanted = &journal.Review{Subject: d.Subject, DeadLetter: d.ID, Discard: c.Action == journal.BulkDiscard,
		RetryOptions: c.RetryOptions, Reason: c.Reason, By: c.By, Run: c.Run}
	switch c.Action {
	case journal.BulkAccept:
		wanted.Accepted = &journal.Acceptance{Protocol: c.Protocol}
	case journal.BulkRetry:
		wanted.Policy = policy
		wanted.Delay, err = s.delay(ctx, &c, &d, policy)
	}
	return d, wanted, err
}

// unfit returns why c cannot be carried out on a dead letter; nil if it can, unless the journal finds that the retry
// would be late. policy is the dead letter's; nil if the catalogue no longer has it.
func unfit(d *Item, c *Command, policy *decision.Policy) *journal.Refusal {
	switch retry := c.Action == journal.BulkRetry; {
	case d.State != journal.DeadLetterOpen:
		return d.Decided()
	case c.Action == journal.BulkDiscard:
		return nil
	case d.Process == Nobody:
		return d.Unattended()
	case d.Process == Expected:
		r := d.Unattended()
		r.Message = "the process has not come to its review task yet, so nothing would carry a retry out; try again in a " +
			"minute, or discard it"
		return r
	case !retry && !d.Accepts:
		return journal.ErrNotListed
	case retry && d.AtLimit() && !c.Force:
		return d.Exceeded()
	case retry && d.Late && !c.Force && c.Deadline.IsZero():
		return journal.Missed(d.Deadline)
	case retry && c.When != Now && policy == nil:
		return journal.Refuse(PolicyNotFound, "policy %.60q is no longer in the catalogue, so its backoff is not known; retry with "+
			"when now, or add the policy again", d.Subject.Policy)
	}
	return nil
}

// delay returns how long it is until the retry. If that is now, policy may be nil.
func (s *Service) delay(ctx context.Context, c *Command, d *Item, policy *decision.Policy) (time.Duration, error) {
	if c.When == Now {
		return 0, nil
	}
	count := d.RetryCount
	if c.Fresh {
		count = 0
	}
	var own decision.OwnPolicy
	if policy.Own != nil {
		story, _, err := s.store.Story(ctx, d.Subject)
		if err != nil {
			return 0, fmt.Errorf("read the retries of a dead letter: %w", err)
		}
		own = OwnPolicy(policy, &story, d.Episode)
	}
	return policy.Manual(d.Subject.ID, own, count).Delay, nil
}

// OwnPolicy returns the delay that a job asked for at the last retry of an episode, if its policy lets jobs do so
// (R15).
func OwnPolicy(p *decision.Policy, of *journal.Story, episode int64) (own decision.OwnPolicy) {
	for i := range slices.Backward(of.Attempts) {
		if a := &of.Attempts[i]; p.Own != nil && a.Episode == episode && a.Decision.ShouldRetry() {
			return decision.OwnPolicy{Delay: a.Decision.Backoff.Raw, HasDelay: true}
		}
	}
	return own
}

// record writes the decision to the journal, unless somebody was faster, and returns the dead letter as it is then.
func (s *Service) record(ctx context.Context, d *Item, wanted *journal.Review) (Item, error) {
	after, err := s.memory.Review(ctx, wanted)
	if err != nil {
		return Item{}, fmt.Errorf("record the decision: %w", err)
	}
	d.DeadLetter = after
	s.judge(d)
	return *d, nil
}

// Note records what a person says about a dead letter without deciding on it at once: any verb but Assign. It reads
// ID, Reason and By of c, for RetryLater a retry's other fields, and for Undo Undoes. Its errors are Decide's.
func (s *Service) Note(ctx context.Context, c Command, verb journal.NoteVerb) (Item, error) {
	n := &journal.Note{Verb: verb, By: c.By, Undoes: c.Undoes}
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
// empty, of a, and Record, which is that of the assignment that the caller saw, or 0. Its errors are Decide's. The
// caller checks permissions.
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
		By: asked.By, RetryOptions: asked.RetryOptions})
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
