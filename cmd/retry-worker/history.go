package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/api"
	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/kpi"
	"retry-worker/internal/store"
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
	c.server.registerAs(cmd.Flags(), askInstead)
	return cmd
}

// subjectHistory is what `history -o json` prints.
type subjectHistory struct {
	Subject string `json:"subject"`
	Policy  string `json:"policy"`
	api.View
}

func (c *cli) history(ctx context.Context, s journal.Subject) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	h := subjectHistory{Subject: s.ID, Policy: s.Policy}
	if c.server.server != "" {
		answer, _, err := asked[api.Subject](ctx, c, subjectPath(s, ""), nil)
		if err != nil {
			return err
		}
		h.View = answer.View
		return c.print(h, func() { c.printHistory(&h) })
	}
	return readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		story, found, err := reader.Story(ctx, s)
		if err == nil && !found {
			err = fmt.Errorf("the journal knows no failure of %q under policy %s, tenant %s; check the spelling, --policy and "+
				"--tenant", s.ID, s.Policy, s.Tenant)
		}
		if err != nil {
			return err
		}
		h.View = api.ViewOf(&story, time.Now())
		return c.print(h, func() { c.printHistory(&h) })
	})
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

func (c *cli) kpiCommand() *cobra.Command {
	var policy, policiesFile string
	cmd := &cobra.Command{
		Use:   "kpi",
		Short: "Show each policy's figures, their targets and whether they are met",
		Long: "Shows the figures of RN-BIL-005 and RN-BIL-004 over the last 24 hours or 7 days, from sums that the\n" +
			"journal keeps up to date: from the journal that RETRY_WORKER_DATABASE_URL names, beside a running\n" +
			"worker too, or from the worker that --server names. Exit 0 whatever the figures say; read \"holds\" in\n" +
			"-o json.",
		Example: `  retry-worker kpi
  retry-worker kpi --policy tiss-submission -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.server.server != "" {
				if policiesFile != "" {
					return &usageError{errors.New("--policies-file is given, but a worker has its own policies; leave it or " +
						"--server out")}
				}
				answer, _, err := asked[api.KPIs](cmd.Context(), c, "/kpis?policy="+url.QueryEscape(policy), nil)
				if err != nil {
					return err
				}
				return c.print(answer, func() { c.printKPIs(answer) })
			}
			from, err := loadCatalogue(policiesFile)
			if err != nil {
				return err
			}
			return c.kpi(cmd.Context(), from.Policies.Names(), policy, time.Now())
		},
	}
	cmd.Flags().StringVar(&policy, "policy", "", "policy to show; left out: all")
	policiesFileFlag(cmd, &policiesFile)
	c.server.registerAs(cmd.Flags(), askInstead)
	return cmd
}

// kpi prints the figures of policies, or of the one named policy.
func (c *cli) kpi(ctx context.Context, policies []string, policy string, now time.Time) error {
	return readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		kpis, err := audit.KPIs(ctx, reader, policies, policy, now)
		if unknown, is := errors.AsType[*audit.UnknownPolicyError](err); is {
			return &usageError{fmt.Errorf("--policy: %w", unknown)}
		}
		if err != nil {
			return err
		}
		all := &api.KPIs{KPIs: kpis}
		return c.print(all, func() { c.printKPIs(all) })
	})
}

// printKPIs prints a table for each policy, with a line for each goal.
func (c *cli) printKPIs(all *api.KPIs) {
	for kpis := all.KPIs; len(kpis) > 0; {
		policy := kpis[0].Policy
		var rows [][]any
		for ; len(kpis) > 0 && kpis[0].Policy == policy; kpis = kpis[1:] {
			rows = append(rows, kpiRows(&kpis[0])...)
		}
		fmt.Fprintln(c.out, policy)
		c.rows("figure, value, window, samples, goal, met", rows)
		if len(kpis) > 0 {
			fmt.Fprintln(c.out)
		}
	}
}

// kpiRows returns a figure's lines, one for each goal.
func kpiRows(k *kpi.KPI) (rows [][]any) {
	measured := "-" // where nothing happened that it could be made of
	if k.Value != nil {
		measured = amount(k.Unit, *k.Value)
	}
	figure := []any{k.Name, measured, windowWords(k.Window), k.Samples}
	for i := range k.Goals {
		g := &k.Goals[i]
		goal := fmt.Sprintf("%s %s %s (%s)", g.Kind, g.Compare, amount(k.Unit, g.Limit), g.Rule)
		rows = append(rows, append(figure, goal, met(g)))
		figure = []any{"", "", "", ""}
	}
	return rows
}

// amount returns a value with its unit.
func amount(unit string, v float64) string {
	switch unit {
	case "ratio":
		return fmt.Sprintf("%.1f %%", v*100)
	case "minutes":
		return fmt.Sprintf("%.1f min", v)
	case "seconds":
		return fmt.Sprintf("%.3f s", v)
	default:
		return fmt.Sprintf("%.2f", v)
	}
}

func windowWords(hours float64) string {
	const day = 24
	if hours > day && int64(hours)%day == 0 {
		return fmt.Sprintf("%d d", int64(hours)/day)
	}
	return fmt.Sprintf("%g h", hours)
}

// met reports whether a target is met, or an alert is raised.
func met(g *kpi.Goal) string {
	switch {
	case g.Holds == nil:
		return "-"
	case g.Kind == kpi.Alert && *g.Holds:
		return "ALERT"
	case g.Kind == kpi.Alert:
		return "no alert"
	case *g.Holds:
		return "yes"
	default:
		return "no"
	}
}
