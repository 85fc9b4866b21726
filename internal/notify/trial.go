package notify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
)

// Trial is what one recipient's server said to a test.
type Trial struct {
	Channel Channel
	// Recipient is the address, or the URL, as the catalogue has it.
	Recipient string
	// Said is the server's answer, Err why it did not take the test.
	Said string
	Err  error
}

// Test sends a test to a team by its ways (only: by that channel alone; empty: by all) and says what each recipient's
// server said.
func (s Senders) Test(ctx context.Context, name decision.Team, t *catalogue.Team, only Channel, now time.Time) []Trial {
	n := &Notice{Type: TypeTest, Timestamp: instant(now), Data: Data{Team: string(name)}}
	id := uuid.NewString()
	ways := slices.DeleteFunc(waysOf(t), func(w way) bool {
		c, _ := w.split()
		return only != "" && c != only
	})
	all := make([]Trial, len(ways))
	var sending sync.WaitGroup
	for i, w := range ways {
		sending.Go(func() {
			r := &all[i]
			if r.Channel, r.Recipient = w.split(); r.Channel == Webhook {
				r.Recipient = t.Webhook.URL
			}
			r.Said, r.Err = s.send(ctx, t, w, id, n, n.body())
		})
	}
	sending.Wait()
	return all
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
