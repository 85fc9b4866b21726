package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/api"
	"retry-worker/internal/audit"
	"retry-worker/internal/kpi"
)

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
				return c.askKPIs(cmd.Context(), policy)
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
	c.server.registerInstead(cmd.Flags())
	return cmd
}

// askKPIs prints the figures of a worker.
func (c *cli) askKPIs(ctx context.Context, policy string) error {
	answer, _, err := asked[api.KPIs](ctx, c, "/kpis?policy="+url.QueryEscape(policy), nil)
	if err != nil {
		return err
	}
	return c.print(answer, func() { c.printKPIs(answer) })
}

func (c *cli) kpi(ctx context.Context, policies []string, policy string, now time.Time) error {
	ctx, reader, done, err := openJournal(ctx)
	if err != nil {
		return err
	}
	defer done()
	kpis, err := audit.KPIs(ctx, reader, policies, policy, now)
	if unknown, is := errors.AsType[*audit.UnknownPolicyError](err); is {
		return &usageError{fmt.Errorf("--policy: %w", unknown)}
	}
	if err != nil {
		return err
	}
	all := &api.KPIs{KPIs: kpis}
	return c.print(all, func() { c.printKPIs(all) })
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
