package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/textproto"
	"net/url"
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
	Sent   Result = "sent"   // the receiver took it
	Failed Result = "failed" // it may succeed later, and is tried again
	// Refused: the receiver does not take it as it is. It is tried again every quarter of an hour, as people may correct
	// what is wrong.
	Refused Result = "refused"
	// Dropped: the team is no longer told that way, or the notice cannot be read.
	Dropped Result = "dropped"
)

// Senders are what notices are sent by.
type Senders struct {
	Mailer *Mailer // nil if there is no mail server
	Poster *Poster
}

// send sends message m, with the notice n in it, to a receiver of a team.
func (s Senders) send(ctx context.Context, t *catalogue.Team, r Receiver, m *journal.Message, n *Notice) error {
	switch {
	case r.Channel == Webhook:
		return s.Poster.Send(ctx, t.Webhook, m.ID, m.Body, time.Now()) // receivers compare it with their own clocks
	case s.Mailer == nil:
		return refused("there is no mail server: set RETRY_WORKER_SMTP_URL and RETRY_WORKER_MAIL_FROM")
	}
	err := s.Mailer.Send(ctx, m.ID, n, r.Address)
	if f, is := errors.AsType[*Failure](err); is { // says which address it is, without naming it
		f.text = fmt.Sprintf("address %d of %d: %s", slices.Index(t.Email, r.Address)+1, len(t.Email), f.text)
	}
	return err
}

// Sink sends the notices in the outbox to the receivers that the catalogue names now. It implements outbox.Sink; its
// failures say when to try again. Safe for concurrent use.
type Sink struct {
	Catalogue func() *catalogue.Catalogue // in force
	Senders
	Clock clock.Clock
	// Add counts the results of tries in a metric (worker.Hooks).
	Add func(metric string, n float64, values ...string)
	Log *zap.Logger

	mu sync.Mutex
	// failed holds the last failure by a message's id. The few that another replica sends afterwards stay.
	failed map[string]string
}

// Publish sends a message of deadletter.NoticeQueue. Its error is a *Failure.
func (s *Sink) Publish(ctx context.Context, m *journal.Message) (err error) {
	r, in, n := receiverOf(m.Key), s.Catalogue(), &Notice{}
	team, known := in.Teams[r.Team]
	result, dropped, failure := Sent, "", ""
	switch unreadable := json.Unmarshal([]byte(m.Body), n); {
	case unreadable != nil:
		result, dropped = Dropped, "it cannot be read"
	case !slices.Contains(Receivers(in), r):
		result, dropped = Dropped, "the policies no longer name this way of telling the team"
	default:
		if err = s.send(ctx, &team, r, m, n); err == nil {
			break
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			return err // the relay stops, or lost its lease
		}
		result, failure = Failed, err.Error()
		if f, is := errors.AsType[*Failure](err); is && f.Refused {
			result = Refused
		}
	}
	if known { // metric labels come from closed sets
		s.Add("retry_worker_notices_total", 1, string(r.Team), string(r.Channel), string(result))
	}
	log := s.Log.With(zap.String("team", string(r.Team)), zap.String("channel", string(r.Channel)), // no address
		zap.String("type", m.Type), zap.String("message", m.ID), zap.String("event", "notice_"+string(result)))
	switch news := s.note(m, failure); {
	case dropped != "":
		log.Warn("a notice is not sent", zap.String("reason", dropped))
	case err == nil:
		log.Info("a notice was sent", zap.Duration("waited", max(s.Clock.Now().Sub(m.At), 0).Round(time.Millisecond)))
	case news:
		log.Warn("a notice could not be sent; it is tried again until it is", zap.Error(err))
	}
	return err
}

// note keeps why a message could not be sent, empty if it no longer waits, and reports whether that is new.
func (s *Sink) note(m *journal.Message, failure string) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = map[string]string{}
	}
	news = s.failed[m.ID] != failure
	if s.failed[m.ID] = failure; failure == "" {
		delete(s.failed, m.ID)
	}
	return news
}

// Waiting is a notice that is not sent yet.
type Waiting struct {
	Team    decision.Team
	Channel Channel
	Type    string
	Since   time.Time // when the notice was made
	Failure string    // why this process's last try failed; empty if there was none
}

// Waiting returns the notices that wait in the outbox, the oldest first.
func (s *Sink) Waiting(ctx context.Context, box journal.Outbox) ([]Waiting, error) {
	all, err := box.Pending(ctx, deadletter.NoticeQueue, 0, mostWaiting)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := make([]Waiting, len(all))
	for i := range all {
		m := &all[i]
		r := receiverOf(m.Key)
		waiting[i] = Waiting{Team: r.Team, Channel: r.Channel, Type: m.Type, Since: m.At, Failure: s.failed[m.ID]}
	}
	slices.SortStableFunc(waiting, func(a, b Waiting) int { return a.Since.Compare(b.Since) })
	return waiting, nil
}

// Failure is why a receiver did not take a message. Its text is one line without anybody's address.
type Failure struct {
	// Refused reports whether the receiver does not want the message as it is. It is tried again less often: people may
	// correct an address, a password or a certificate.
	Refused bool
	// After is how long the receiver asks not to be called; 0 if it does not say.
	After time.Duration
	text  string
}

// refusedPause is the pause after a refusal; the relay may wait less.
const refusedPause = 15 * time.Minute

func (f *Failure) Error() string { return f.text }

// Pause returns how long to wait before the next try (outbox.Patience).
func (f *Failure) Pause() time.Duration {
	if f.Refused {
		return max(f.After, refusedPause)
	}
	return f.After
}

// maxFailureText bounds the bytes of a failure's text.
const maxFailureText = 300

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
	if u, is := errors.AsType[*url.Error](err); is {
		err = u.Err
	}
	if op, is := errors.AsType[*net.OpError](err); is && op.Err != nil {
		return op.Op + ": " + op.Err.Error()
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// byMail returns the failure of a conversation with a mail server: 5xx is final, everything else may pass. It leaves
// out the recipient, which servers and the library like to repeat: logs name nobody.
func byMail(ctx context.Context, doing string, err error, address string) *Failure {
	code, said := 0, plainly(err)
	if sending, is := errors.AsType[*gomail.SendError](err); is {
		if code = sending.ErrorCode(); code == 0 { // the connection failed
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

// Problems returns what will keep teams from being told, a line each: e-mail without a mail server, and secrets that
// cannot be read.
func Problems(c *catalogue.Catalogue, mail bool) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.Teams)) {
		t := c.Teams[name]
		if len(t.Email) > 0 && !mail {
			all = append(all, fmt.Sprintf("the team %s is to be told by e-mail, and there is no mail server: set "+
				"RETRY_WORKER_SMTP_URL and RETRY_WORKER_MAIL_FROM", name))
		}
		if w := t.Webhook; w != nil {
			if _, err := signersOf(w.SecretFile); err != nil {
				all = append(all, fmt.Sprintf("the team %s is to be told by webhook (secretFile %q): %v", name, w.SecretFile, err))
			}
		}
	}
	return all
}
