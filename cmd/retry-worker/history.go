package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
	"retry-worker/internal/store"
)

func (c *cli) historyCommand() *cobra.Command {
	var subject journal.Subject
	cmd := &cobra.Command{
		Use:   "history SUBJECT",
		Short: "Show what was decided for a claim (message, job), when and why",
		Long: "Shows the history of a claim (message, job), its episodes and every attempt, from the journal that\n" +
			"RETRY_WORKER_DATABASE_URL names, beside a running worker too.\n" +
			"Exit 0 where there is one, 1 where the journal knows no failure of it or cannot be read.",
		Example: `  retry-worker history CLM-001-1234567890
  RETRY_WORKER_DATABASE_URL=postgres://reader@db/retry retry-worker history CLM-001-1234567890 -o json`,
		Args: takes(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			subject.ID = args[0]
			return c.history(cmd.Context(), subject)
		},
	}
	cmd.Flags().StringVar(&subject.Policy, "policy", decision.DefaultPolicy, "policy the subject belongs to")
	cmd.Flags().StringVar(&subject.Tenant, "tenant", journal.DefaultTenant, "tenant the subject belongs to")
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
	return readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		story, found, err := reader.Story(ctx, s)
		if err == nil && !found {
			err = fmt.Errorf("the journal knows no failure of %q under policy %s, tenant %s; check the spelling, --policy and "+
				"--tenant", s.ID, s.Policy, s.Tenant)
		}
		if err != nil {
			return err
		}
		return c.print(subjectHistory{s.ID, s.Policy, api.ViewOf(&story, time.Now())},
			"episodes: number state retryCount firstFailure closedAt nextRetryTime deadLetterId",
			"attempts: episode attemptNumber revision timestamp outcome retryReason nextRetryTime responsibleTeam error")
	})
}

func (c *cli) kpiCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kpi",
		Short: "Show each policy's figures, their targets and whether they are met",
		Long: "Shows the figures of RN-BIL-005 and RN-BIL-004 over the last 24 hours or 7 days, from sums in the\n" +
			"journal that RETRY_WORKER_DATABASE_URL names, beside a running worker too.\n" +
			"A target that holds is met, an alert that holds fires. Exit 0 whatever the figures say.",
		Example: `  retry-worker kpi
  retry-worker kpi --policy tiss-submission -o json`,
	}
	policy := cmd.Flags().String("policy", "", "policy to show; left out: all")
	file := policiesFileFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		from, err := loadCatalogue(*file)
		if err != nil {
			return err
		}
		return c.kpi(cmd.Context(), from.Policies.Names(), *policy, time.Now())
	}
	return cmd
}

// kpi prints the figures of policies, or of the one named policy, at now or at the last record, whichever is later: a
// worker of make run is ahead.
func (c *cli) kpi(ctx context.Context, policies []string, policy string, now time.Time) error {
	return readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		head, err := reader.Head(ctx)
		if err != nil {
			return err
		}
		last, err := reader.Records(ctx, journal.RecordFilter{Since: now}, head.Record-1, 1)
		if err != nil {
			return err
		}
		if len(last) > 0 {
			now = last[0].At()
		}
		kpis, err := statistics.KPIs(ctx, reader, policies, policy, now)
		if unknown, is := errors.AsType[*statistics.UnknownPolicyError](err); is {
			return &usageError{fmt.Errorf("--policy: %w", unknown)}
		}
		if err != nil {
			return err
		}
		if c.json() {
			return c.print(map[string]any{"kpis": kpis})
		}
		var rows []map[string]any // one for each goal, or for a figure without any
		for i := range kpis {
			if len(kpis[i].Goals) == 0 {
				rows = append(rows, map[string]any{"of": kpis[i]})
			}
			for _, g := range kpis[i].Goals {
				rows = append(rows, map[string]any{"of": kpis[i], "goal": g})
			}
		}
		return c.print(map[string]any{"kpis": rows}, "kpis: of.policy of.name of.value of.unit of.windowHours of.samples "+
			"goal.kind goal.compare goal.limit goal.rule goal.holds")
	})
}
