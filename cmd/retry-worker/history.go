package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

func (c *cli) historyCommand() *cobra.Command {
	var subject journal.Subject
	cmd := &cobra.Command{
		Use:   "history SUBJECT",
		Short: "Tell what was decided for a claim (message, job), when and why",
		Long: "Tells the history of a claim (message, job), its episodes and every attempt: from the journal that\n" +
			"RETRY_WORKER_DATABASE_URL names, beside a running worker too, or from the worker that --server names\n" +
			"(the latest 500 of each).\n" +
			"Exit 0 where there is one, 1 where the journal knows no failure of it or cannot be read.",
		Example: `  retry-worker history CLM-001-1234567890
  RETRY_WORKER_DATABASE_URL=postgres://reader@db/retry retry-worker history CLM-001-1234567890 -o json`,
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			subject.ID = args[0]
			return c.history(cmd.Context(), subject)
		},
	}
	cmd.Flags().StringVar(&subject.Policy, "policy", decision.DefaultPolicy, "policy the subject belongs to")
	cmd.Flags().StringVar(&subject.Tenant, "tenant", journal.DefaultTenant, "tenant the subject belongs to")
	c.server.registerInstead(cmd.Flags())
	return cmd
}

// historyTime bounds reading one history.
const historyTime = 30 * time.Second

// subjectHistory is what `history -o json` prints.
type subjectHistory struct {
	Subject string `json:"subject"`
	Policy  string `json:"policy"`
	api.View
}

func (c *cli) history(ctx context.Context, s journal.Subject) error {
	ctx, cancel := context.WithTimeout(ctx, historyTime)
	defer cancel()
	of := readHistory
	if c.server.server != "" {
		of = c.askHistory
	}
	view, err := of(ctx, s)
	if err != nil {
		return err
	}
	h := subjectHistory{s.ID, s.Policy, view}
	return c.print(h, func() { c.printHistory(&h) })
}

// readHistory returns what the journal knows of a subject.
func readHistory(ctx context.Context, s journal.Subject) (api.View, error) {
	ctx, reader, done, err := openJournal(ctx)
	if err != nil {
		return api.View{}, err
	}
	defer done()
	story, found, err := reader.Story(ctx, s)
	if err == nil && !found {
		err = fmt.Errorf("the journal knows no failure of %q under policy %s, tenant %s; check the spelling, --policy and "+
			"--tenant", s.ID, s.Policy, s.Tenant)
	}
	if err != nil {
		return api.View{}, err
	}
	return api.ViewOf(&story, time.Now()), nil
}

// askHistory returns what a worker says of a subject.
func (c *cli) askHistory(ctx context.Context, s journal.Subject) (api.View, error) {
	answer, _, err := asked[api.Subject](ctx, c, subjectPath(s, ""), nil)
	if err != nil {
		return api.View{}, err
	}
	return answer.View, nil
}

// subjectPath returns the address of a subject in the API, and of what is below it.
func subjectPath(s journal.Subject, below string) string {
	return "/subjects/" + url.PathEscape(s.Policy) + "/" + url.PathEscape(s.ID) + below + "?tenant=" +
		url.QueryEscape(s.Tenant)
}

func (c *cli) printHistory(h *subjectHistory) {
	fmt.Fprintf(c.out, "%s (%s): %s\n", h.Subject, h.Policy, h.describe())
	for i := range h.Episodes {
		e := &h.Episodes[i]
		fmt.Fprintf(c.out, "\nepisode %d: %s, first failure %s%s\n", e.Number, e.State, e.FirstFailure, ended(e))
		var rows [][]any
		for j := range h.Attempts {
			a := &h.Attempts[j]
			if a.Episode != e.Number {
				continue // a revision may come after another episode began
			}
			rows = append(rows, []any{"", number(a), a.Timestamp, a.RetryReason, consequence(a), a.Error})
		}
		c.rows("", rows)
	}
}

func (h *subjectHistory) describe() string {
	words := []string{cmp.Or(string(h.State), "no failure"), fmt.Sprintf("%d retries", h.RetryCount)}
	if h.HeldSince != nil {
		words = append(words, "held since "+*h.HeldSince)
	}
	if h.NextRetryTime != nil {
		words = append(words, "next retry "+*h.NextRetryTime)
	}
	if h.DeadLetterID != nil {
		words = append(words, "dead letter "+*h.DeadLetterID)
	}
	return strings.Join(words, ", ")
}

func ended(e *api.EpisodeView) string {
	if e.ClosedAt == nil {
		return ""
	}
	return ", ended " + *e.ClosedAt
}

// number of an attempt; a revision of one shows which.
func number(a *api.AttemptView) string {
	if a.Revision == 0 {
		return fmt.Sprint(a.AttemptNumber)
	}
	return fmt.Sprintf("%d, revision %d", a.AttemptNumber, a.Revision)
}

func consequence(a *api.AttemptView) string {
	if a.NextRetryTime != nil {
		return "next " + *a.NextRetryTime
	}
	return "to " + string(a.ResponsibleTeam)
}
