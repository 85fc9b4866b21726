package notify

import (
	"fmt"
	"maps"
	"slices"

	"retry-worker/internal/catalogue"
)

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
		if t.Webhook == nil {
			continue
		}
		if _, err := signersOf(t.Webhook.SecretFile); err != nil {
			all = append(all,
				fmt.Sprintf("the team %s is to be told by webhook (secretFile %q): %v", name, t.Webhook.SecretFile, err))
		}
	}
	return all
}
