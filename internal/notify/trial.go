package notify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
)

// Trial is what one recipient's server said to a test.
type Trial struct {
	Channel Channel
	Receipt
}

// Test sends a test to a team by its ways (only: by that one; empty: by all) and says what each recipient's server
// said. m is nil where there is no mail server.
func Test(
	ctx context.Context, name decision.Team, t *catalogue.Team, only Channel, m *Mailer, p *Poster, now time.Time,
) []Trial {
	n := &Notice{Type: TypeTest, Timestamp: instant(now), Data: Data{Team: string(name)}}
	id := uuid.NewString()
	var all []Trial
	for _, c := range ChannelsOf(t) {
		switch {
		case only != "" && c != only:
		case c == Webhook:
			r, err := p.Send(ctx, t.Webhook, id, n.body(), now)
			r.Failure = asFailure(err)
			all = append(all, Trial{c, r})
		default:
			for _, r := range m.try(ctx, id, n, t.Email) {
				all = append(all, Trial{c, r})
			}
		}
	}
	return all
}

// try is Send with a receipt for every address, whatever failed.
func (m *Mailer) try(ctx context.Context, id string, n *Notice, addresses []string) []Receipt {
	var receipts []Receipt
	err := error(refused("there is no mail server: set RETRY_WORKER_SMTP_URL and RETRY_WORKER_MAIL_FROM"))
	if m != nil {
		receipts, err = m.Send(ctx, id, n, addresses, addresses)
	}
	if err == nil {
		return receipts
	}
	receipts = nil
	for _, a := range addresses {
		receipts = append(receipts, Receipt{Recipient: a, Failure: asFailure(err)})
	}
	return receipts
}

func asFailure(err error) *Failure {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return failed("send", err)
}

// Problems returns what keeps teams from being told that can be known before, a line each: e-mail without a mail
// server, secrets that cannot be read.
func Problems(c *catalogue.Catalogue, mail bool) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.Teams)) {
		t := c.Teams[name]
		if len(t.Email) > 0 && !mail {
			all = append(all, fmt.Sprintf("the team %s is to be told by e-mail, and there is no mail server: set "+
				"RETRY_WORKER_SMTP_URL and RETRY_WORKER_MAIL_FROM", name))
		}
		if t.Webhook == nil {
			continue
		}
		if _, err := secrets(t.Webhook.SecretFile); err != nil {
			all = append(all,
				fmt.Sprintf("the team %s is to be told by webhook (secretFile %q): %v", name, t.Webhook.SecretFile, err))
		}
	}
	return all
}

// Check says whether the mail server takes connections, and the user where there is one.
func (m *Mailer) Check(ctx context.Context) error {
	t, err := m.dial(ctx)
	if err == nil {
		t.close()
	}
	return err
}
