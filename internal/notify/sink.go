package notify

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"
	"go.uber.org/zap"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/redact"
	"retry-worker/internal/web"
)

// Result is what became of one try to send a notice. The set is closed.
type Result string

// The results.
const (
	// Sent: the receiver took it.
	Sent Result = "sent"
	// Failed: it may be taken later, and is tried again.
	Failed Result = "failed"
	// Refused: the receiver does not take it as it is; it is tried again every quarter of an hour, as people may
	// correct what is wrong.
	Refused Result = "refused"
	// Dropped: the team is not told by that way any more, or it cannot be read.
	Dropped Result = "dropped"
)

// Results lists every result, for metrics that start at 0.
func Results() []Result { return []Result{Sent, Failed, Refused, Dropped} }

// Senders are what notices leave by.
type Senders struct {
	// Mailer is nil where there is no mail server.
	Mailer *Mailer
	Poster *Poster
}

// send sends a message, which n is read of, by one of a team's ways.
func (s Senders) send(ctx context.Context, t *catalogue.Team, w way, m *journal.Message, n *Notice) error {
	c, address := w.split()
	switch {
	case c == Webhook:
		return s.Poster.Send(ctx, t.Webhook, m.ID, m.Body, time.Now()) // receivers hold it against their own clocks
	case s.Mailer == nil:
		return refused("there is no mail server: set RETRY_WORKER_SMTP_URL and RETRY_WORKER_MAIL_FROM")
	}
	err := s.Mailer.Send(ctx, m.ID, n, address)
	if f, is := errors.AsType[*Failure](err); is { // which address it is, without naming it
		f.text = fmt.Sprintf("address %d of %d: %s", slices.Index(t.Email, address)+1, len(t.Email), f.text)
	}
	return err
}

// Sink sends the notices that are in the outbox, to those whom the catalogue names at the moment. It implements
// outbox.Sink; its failures know after how long they are worth trying again. Safe for concurrent use.
type Sink struct {
	// Catalogue in force.
	Catalogue func() *catalogue.Catalogue
	Senders
	Clock clock.Clock
	// Tried is told what became of each try. It must not block.
	Tried func(team decision.Team, c Channel, r Result)
	Log   *zap.Logger

	mu sync.Mutex
	// failed holds what failed last of each key, of which one message waits at a time. It says nothing of the next,
	// which may come after another replica sent this one.
	failed map[string]trouble
}

// trouble with a message.
type trouble struct{ id, text string }

// Publish sends a message of deadletter.NoticeQueue. Its error is a *Failure.
func (s *Sink) Publish(ctx context.Context, m *journal.Message) error {
	name, w := parseKey(m.Key)
	n, readable := read(m.Body)
	team, known := s.Catalogue().Teams[name]
	why := ""
	switch {
	case !readable:
		why = "it cannot be read"
	case !known || !slices.Contains(waysOf(&team), w):
		why = "the policies no longer name this way of telling the team"
	default:
		err := s.send(ctx, &team, w, m, n)
		if errors.Is(ctx.Err(), context.Canceled) && err != nil {
			return err // the relay stops, or has lost its lease
		}
		s.came(m, err)
		return err
	}
	c, _ := w.split()
	if known { // labels come from closed sets
		s.Tried(name, c, Dropped)
	}
	s.Log.Warn("a notice is not sent",
		append(fields(m), zap.String("event", "notice_dropped"), zap.String("reason", why))...)
	s.note(m, "")
	return nil
}

// came tells what came of a try to send a message; of a failure only where it is another than the last.
func (s *Sink) came(m *journal.Message, err error) {
	team, c := receiverOf(m)
	result, failure := Sent, ""
	if f, is := errors.AsType[*Failure](err); err != nil {
		if result, failure = Failed, err.Error(); is && f.Refused {
			result = Refused
		}
	}
	s.Tried(team, c, result)
	news, about := s.note(m, failure), append(fields(m), zap.String("event", "notice_"+string(result)))
	switch {
	case err == nil:
		waited := max(s.Clock.Now().Sub(m.At), 0).Round(time.Millisecond)
		s.Log.Info("a notice was sent", append(about, zap.Duration("waited", waited))...)
	case news:
		s.Log.Warn("a notice could not be sent; it is tried again until it is", append(about, zap.Error(err))...)
	}
}

// receiverOf returns the team and the channel of a message, which logs and metrics name: no address is in either.
func receiverOf(m *journal.Message) (decision.Team, Channel) {
	team, w := parseKey(m.Key)
	c, _ := w.split()
	return team, c
}

func fields(m *journal.Message) []zap.Field {
	team, c := receiverOf(m)
	return []zap.Field{zap.String("team", string(team)), zap.String("channel", string(c)), zap.String("type", m.Type),
		zap.String("message", m.ID)}
}

// note keeps why a message could not be sent, empty where it waits no longer, and reports whether that is news.
func (s *Sink) note(m *journal.Message, failure string) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = map[string]trouble{}
	}
	now := trouble{m.ID, failure}
	news = s.failed[m.Key] != now
	if s.failed[m.Key] = now; failure == "" {
		delete(s.failed, m.Key)
	}
	return news
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

// Waiting returns the notices that wait in the outbox, the oldest first.
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
		m := &all[i]
		team, c := receiverOf(m)
		waiting[i] = Waiting{Team: team, Channel: c, Type: m.Type, Since: m.At}
		if t := s.failed[m.Key]; t.id == m.ID {
			waiting[i].Failure = t.text
		}
	}
	slices.SortStableFunc(waiting, func(a, b Waiting) int { return a.Since.Compare(b.Since) })
	return waiting, nil
}

// Failure is why a receiver did not take a message. Its text is one line with nobody's address in it.
type Failure struct {
	// Refused says that the receiver does not want it as it is; otherwise it may take it later. Both are tried again, a
	// refusal seldom: people may correct an address, a password or a certificate.
	Refused bool
	// After is how long the receiver asks to be left alone; 0 where it does not say.
	After time.Duration
	text  string
}

// refusedPause is after how long what was refused is tried again; the relay may hold it shorter.
const refusedPause = 15 * time.Minute

func (f *Failure) Error() string { return f.text }

// Pause returns after how long it is worth trying again (outbox.Patience).
func (f *Failure) Pause() time.Duration {
	if f.Refused {
		return max(f.After, refusedPause)
	}
	return f.After
}

// maxFailureText is the bytes of a failure's text.
const maxFailureText = 300

func failed(doing string, err error) *Failure { return failure(false, doing+": "+plainly(err)) }

func refused(text string) *Failure { return failure(true, text) }

func failure(is bool, text string) *Failure {
	return &Failure{Refused: is, text: redact.Line(text, maxFailureText)}
}

// plainly returns an error without the addresses that the standard library repeats.
func plainly(err error) string {
	// A connection is closed when its time is up.
	for _, late := range [...]error{net.ErrClosed, context.DeadlineExceeded, os.ErrDeadlineExceeded} {
		if errors.Is(err, late) {
			return "no answer in time"
		}
	}
	if blocked, is := errors.AsType[*web.BlockedError](err); is {
		return blocked.Error()
	}
	if op, is := errors.AsType[*net.OpError](err); is && op.Err != nil {
		return op.Op + ": " + op.Err.Error()
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// byMail returns the failure of a conversation with a mail server: 5xx is for good, all else may pass. The recipient,
// whom servers and the library like to repeat, is left out: logs name nobody.
func byMail(ctx context.Context, doing string, err error, address string) *Failure {
	code, said := 0, plainly(err)
	if sending, is := errors.AsType[*gomail.SendError](err); is {
		if code = sending.ErrorCode(); code == 0 { // it is the connection that failed
			said = sending.Reason.String() + " failed"
		}
		said, _, _ = strings.Cut(said, ", affected ")
	} else if answer, is := errors.AsType[*textproto.Error](err); is {
		code, said = answer.Code, "the server answered "+answer.Error()
	}
	if ctx.Err() != nil {
		code, said = 0, "no answer in time"
	}
	if local, _, is := strings.Cut(address, "@"); is {
		said = strings.NewReplacer(address, "[E-MAIL]", local, "[E-MAIL]").Replace(said)
	}
	return failure(code/100 == 5, doing+": "+said)
}
