package notify

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Result is what became of one try to send a notice. The set is closed.
type Result string

// The results.
const (
	// Sent: the receiver took it; of e-mail, at least one address.
	Sent Result = "sent"
	// Failed: it may be taken later, and is tried again.
	Failed Result = "failed"
	// Refused: nobody took it as it is; it is tried again every quarter of an hour, as people may correct what is wrong.
	Refused Result = "refused"
	// RecipientRefused: one address was refused for good while others took it.
	RecipientRefused Result = "recipient_refused"
	// Dropped: the team is not told by that way any more, or it cannot be read.
	Dropped Result = "dropped"
)

// Results lists every result, for metrics that start at 0.
func Results() []Result { return []Result{Sent, Failed, Refused, RecipientRefused, Dropped} }

// PublishTime is what one try to send a notice may take (outbox.Patience).
const PublishTime = dialTime + talkTime + 5*time.Second

// Sink sends the notices that are in the outbox, to the addresses that the catalogue has at the moment. It implements
// outbox.Sink; its failures know after how long they are worth trying again. Safe for concurrent use.
type Sink struct {
	// Catalogue in force.
	Catalogue func() *catalogue.Catalogue
	// Mailer is nil where there is no mail server.
	Mailer *Mailer
	Poster *Poster
	Clock  clock.Clock
	// Tried is told what became of each try. It must not block.
	Tried func(team decision.Team, c Channel, r Result)
	Log   *zap.Logger

	mu sync.Mutex
	// troubles are what failed last, by key, of which one message waits at a time.
	troubles map[string]trouble
	// settled are the addresses that a message was delivered to, or refused by, by the message's id: they get it no second
	// time.
	settled map[string]map[string]bool
}

// trouble with a message. It says nothing of the next, which may come after another replica sent this one.
type trouble struct {
	id, text string
	tries    int
}

// trouble returns what this process's tries of a message came to; mu is held.
func (s *Sink) trouble(m *journal.Message) trouble {
	if t := s.troubles[m.Key]; t.id == m.ID {
		return t
	}
	return trouble{id: m.ID}
}

// mostSettled messages are remembered; one more, and all are forgotten.
const mostSettled = 1000

// Publish sends a message of deadletter.NoticeQueue. Its error is a *Failure.
func (s *Sink) Publish(ctx context.Context, m *journal.Message) error {
	name, c := parseKey(m.Key)
	n, readable := read(m.Body)
	if !readable {
		s.drop(m, "it cannot be read")
		return nil
	}
	team, known := s.Catalogue().Teams[name]
	if !known || !slices.Contains(ChannelsOf(&team), c) {
		s.drop(m, "the policy catalogue does not tell the team that way any more")
		return nil
	}
	var err error
	if c == Email {
		err = s.mail(ctx, m, n, &team)
	} else {
		_, err = s.Poster.Send(ctx, team.Webhook, m.ID, m.Body, time.Now()) // receivers hold it against their own clocks
	}
	if err != nil {
		return s.fail(ctx, m, err)
	}
	s.sent(m)
	return nil
}

func (s *Sink) drop(m *journal.Message, why string) {
	team, c := parseKey(m.Key)
	if _, known := s.Catalogue().Teams[team]; known { // labels come from closed sets
		s.Tried(team, c, Dropped)
	}
	s.Log.Warn("a notice is not sent",
		append(fields(m), zap.String("event", "notice_dropped"), zap.String("reason", why))...)
	s.forget(m)
}

func fields(m *journal.Message) []zap.Field {
	team, c := parseKey(m.Key)
	return []zap.Field{zap.String("team", string(team)), zap.String("channel", string(c)), zap.String("type", m.Type),
		zap.String("message", m.ID)}
}

func (s *Sink) sent(m *journal.Message) {
	team, c := parseKey(m.Key)
	s.Tried(team, c, Sent)
	s.mu.Lock()
	tries := s.trouble(m).tries + 1
	s.mu.Unlock()
	s.Log.Info("a notice was sent", append(fields(m), zap.String("event", "notice_sent"), zap.Int("tries", tries),
		zap.Duration("waited", max(s.Clock.Now().Sub(m.At), 0).Round(time.Millisecond)))...)
	s.forget(m)
}

func (s *Sink) forget(m *journal.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.troubles, m.Key)
	delete(s.settled, m.ID)
}

// fail notes a failure, and tells it where it is another than the last.
func (s *Sink) fail(ctx context.Context, m *journal.Message, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return err // the relay stops, or has lost its lease
	}
	team, c := parseKey(m.Key)
	result := Failed
	if f, ok := errors.AsType[*Failure](err); ok && f.Refused {
		result = Refused
	}
	s.Tried(team, c, result)
	s.mu.Lock()
	if s.troubles == nil {
		s.troubles = map[string]trouble{}
	}
	last := s.trouble(m)
	s.troubles[m.Key] = trouble{m.ID, err.Error(), last.tries + 1}
	s.mu.Unlock()
	if last.text != err.Error() {
		s.Log.Warn("a notice could not be sent; it is tried again until it is",
			append(fields(m), zap.String("event", "notice_"+string(result)), zap.Error(err))...)
	}
	return err
}

// mail sends to those who have not got it yet.
func (s *Sink) mail(ctx context.Context, m *journal.Message, n *Notice, team *catalogue.Team) error {
	if s.Mailer == nil {
		return refused("there is no mail server: RETRY_WORKER_SMTP_URL is not set")
	}
	left := s.left(m.ID, team.Email)
	if len(left) == 0 {
		return nil
	}
	receipts, err := s.Mailer.Send(ctx, m.ID, n, team.Email, left)
	if err != nil {
		return err
	}
	return s.settle(m, receipts, len(left) < len(team.Email))
}

// left returns the addresses that have not got a message yet.
func (s *Sink) left(id string, addresses []string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return s.settled[id][a] })
}

// settle what each address got. some tells that an address has got it before. Who is refused for good while others are
// not gets it no more; where all are, all are tried again.
func (s *Sink) settle(m *journal.Message, receipts []Receipt, some bool) error {
	var later, never []Receipt
	done := map[string]bool{}
	for _, r := range receipts {
		switch {
		case r.Failure == nil:
			some, done[r.Recipient] = true, true
		case r.Failure.Refused:
			never = append(never, r)
		default:
			later = append(later, r)
		}
	}
	if !some && len(later) == 0 && len(never) > 0 {
		return never[0].Failure
	}
	if some {
		for _, r := range never {
			done[r.Recipient] = true
			s.refusedOne(m, r.Failure)
		}
	}
	s.remember(m.ID, done)
	if len(later) > 0 {
		return later[0].Failure
	}
	return nil
}

func (s *Sink) refusedOne(m *journal.Message, f *Failure) {
	team, c := parseKey(m.Key)
	s.Tried(team, c, RecipientRefused)
	s.Log.Warn("an address of a team was refused for good; the others got the notice",
		append(fields(m), zap.String("event", "notice_recipient_refused"), zap.Error(f))...)
}

func (s *Sink) remember(id string, done map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.settled == nil || len(s.settled) >= mostSettled {
		s.settled = map[string]map[string]bool{}
	}
	if s.settled[id] == nil {
		s.settled[id] = map[string]bool{}
	}
	for address := range done {
		s.settled[id][address] = true
	}
}

// Waiting is a notice that is not sent yet.
type Waiting struct {
	Team    decision.Team
	Channel Channel
	Type    string
	// Since is when it was made.
	Since time.Time
	// Failure is why the last try of this process failed; empty where it has made none.
	Failure string
}

// Waiting are the notices that wait in the outbox, the oldest first.
func (s *Sink) Waiting(ctx context.Context, box interface {
	Pending(ctx context.Context, queue string, after int64, limit int) ([]journal.Message, error)
}) ([]Waiting, error) {
	all, err := box.Pending(ctx, deadletter.NoticeQueue, 0, mostWaiting)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := make([]Waiting, len(all))
	for i := range all {
		team, c := parseKey(all[i].Key)
		waiting[i] = Waiting{team, c, all[i].Type, all[i].At, s.trouble(&all[i]).text}
	}
	slices.SortStableFunc(waiting, func(a, b Waiting) int { return a.Since.Compare(b.Since) })
	return waiting, nil
}
