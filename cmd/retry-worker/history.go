package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"retry-worker/internal/api"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
	"retry-worker/internal/store"
)

type historyFlags struct{ Policy, Tenant string }

// subjectHistory is what `history -o json` prints.
type subjectHistory struct {
	Subject string `json:"subject"`
	Policy  string `json:"policy"`
	api.View
}

func (c *cli) history(cmd *command, f *historyFlags, args []string) error {
	s := journal.Subject{Tenant: f.Tenant, Policy: f.Policy, ID: args[0]}
	ctx, cancel := context.WithTimeout(cmd.Context(), 30*time.Second)
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

type kpiFlags struct {
	Policy string
	fileFlag
}

func (c *cli) kpi(cmd *command, f *kpiFlags, _ []string) error {
	from, err := loadCatalogue(f.PoliciesFile)
	if err != nil {
		return err
	}
	return c.kpis(cmd.Context(), from.Policies.Names(), f.Policy, time.Now())
}

// kpis prints the figures of policies, or of the one named policy, at now or at the last record, whichever is later: a
// worker of make run is ahead.
func (c *cli) kpis(ctx context.Context, policies []string, policy string, now time.Time) error {
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
