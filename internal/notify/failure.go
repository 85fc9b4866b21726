package notify

import (
	"context"
	"errors"
	"net"
	"net/textproto"
	"os"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"retry-worker/internal/redact"
	"retry-worker/internal/webclient"
)

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

// Pause is after how long it is worth trying again (outbox.Patience).
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
	if op, is := errors.AsType[*net.OpError](err); is && op.Err != nil {
		if blocked, is := errors.AsType[*webclient.BlockedError](op.Err); is {
			return blocked.Error()
		}
		return op.Op + ": " + op.Err.Error()
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}

// answered returns the failure of a mail server's answer: 5xx is for good, all else may pass.
func answered(doing string, err error) *Failure {
	said, is := errors.AsType[*textproto.Error](err)
	if !is {
		return failed(doing, err)
	}
	return failure(said.Code/100 == 5, doing+": the server answered "+said.Error())
}

// notHandedIn returns the failure of a connection that took no message, without the recipient, whom servers and the
// library like to repeat: logs name nobody.
func notHandedIn(ctx context.Context, err error, address string) *Failure {
	const doing = "hand in the message: "
	sending, is := errors.AsType[*gomail.SendError](err)
	switch {
	case ctx.Err() != nil || !is:
		return failure(false, doing+"no answer in time")
	case sending.ErrorCode() == 0: // it is the connection that failed
		return failure(false, doing+sending.Reason.String()+" failed")
	}
	said, _, _ := strings.Cut(sending.Error(), ", affected ")
	local, _, _ := strings.Cut(address, "@")
	said = strings.NewReplacer(address, "[E-MAIL]", local, "[E-MAIL]").Replace(said)
	return failure(sending.ErrorCode()/100 == 5, doing+said)
}
