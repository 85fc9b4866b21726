package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/audit"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/plan"
	"retry-worker/internal/store"
)

// The flags of what a job may say of its own retries.
const (
	maxAttemptsFlag = "max-attempts"
	delayFlag       = "delay-between-attempts"
)

type planFlags struct{ policy, policiesFile, maxAttempts, delay, destination, at string }

func (c *cli) planCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what a policy means: when each of its retries comes",
		Long: "Shows a policy's whole ladder: the earliest, nominal and latest wait before each retry, the same from\n" +
			"the first failure on, and the total limit. As a table or as JSON (times in seconds). Needs no engine and\n" +
			"no store.",
		Example: `  retry-worker plan
  retry-worker plan --policy tiss-submission -o json
  retry-worker plan --policy tiss-submission --destination unimed-sp --at 2026-12-24T17:00:00-03:00
  retry-worker plan --policy job-queue --max-attempts 4 --delay-between-attempts PT30S`,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.plan(cmd, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", "", "policy to show; left out: all")
	flags.StringVar(&f.maxAttempts, maxAttemptsFlag, "",
		"attempts that a job asks for, the first one included, where its policy lets it")
	flags.StringVar(&f.delay, delayFlag, "",
		"delay that a job asks for, ISO 8601 or milliseconds, where its policy lets it")
	flags.StringVar(&f.destination, "destination", "", "destination of the claim, whose calendar moves its retries")
	flags.StringVar(&f.at, "at", "",
		"when the claim fails first (without a zone: UTC); left out: now, where a destination is given")
	policiesFileFlag(cmd, &f.policiesFile)
	return cmd
}

// plans is what `plan -o json` prints.
type plans struct {
	// Catalogue is its version.
	Catalogue string       `json:"catalogue"`
	Unit      string       `json:"unit"`
	Plans     []*plan.Plan `json:"plans"`
}

func (c *cli) plan(cmd *cobra.Command, f planFlags) error {
	policies, err := loadCatalogue(f.policiesFile)
	if err != nil {
		return err
	}
	chosen, err := f.choose(cmd, policies)
	if err != nil {
		return err
	}
	all := plans{Catalogue: policies.Version, Unit: "seconds"}
	for _, p := range chosen {
		own, err := f.own(cmd, p)
		if err != nil {
			return err
		}
		var at time.Time
		if f.destination != "" || f.at != "" {
			if at, err = nowOr("--at", f.at); err != nil {
				return err
			}
		}
		all.Plans = append(all.Plans, plan.At(p, own, f.destination, at))
	}
	if c.json() {
		return c.print(all)
	}
	for i, p := range all.Plans {
		if i > 0 {
			fmt.Fprintln(c.out)
		}
		_ = p.Table(c.out) // which remembers what could not be written
	}
	return nil
}

// choose returns the policy that --policy names, or all; the job's values must be for one of them.
func (f *planFlags) choose(cmd *cobra.Command, policies *catalogue.Catalogue) ([]*decision.Policy, error) {
	names := policies.Policies.Names()
	if cmd.Flags().Changed("policy") {
		if err := knownPolicy(policies, f.policy); err != nil {
			return nil, err
		}
		names = []string{f.policy}
	}
	var chosen []*decision.Policy
	takes := map[string]bool{}
	for _, name := range names {
		p := policies.Policies[name]
		chosen = append(chosen, p)
		takes[maxAttemptsFlag] = takes[maxAttemptsFlag] || p.Own != nil && p.Own.MaxAttempts != ""
		takes[delayFlag] = takes[delayFlag] || p.Own != nil && p.Own.Delay != ""
	}
	for _, flag := range []string{maxAttemptsFlag, delayFlag} {
		if cmd.Flags().Changed(flag) && !takes[flag] {
			return nil, &usageError{fmt.Errorf("--%s is given, but %s lets no job say it; leave it out", flag,
				strings.Join(names, ", "))}
		}
	}
	return chosen, nil
}

// own returns the retry policy of a job with the flags' values; none for a policy that lets it bring none.
func (f *planFlags) own(cmd *cobra.Command, p *decision.Policy) (decision.OwnPolicy, error) {
	if p.Own == nil {
		return decision.OwnPolicy{}, nil
	}
	value := func(variable, flag, s string) decision.Value {
		if variable == "" || !cmd.Flags().Changed(flag) {
			return ""
		}
		return decision.Typed(s)
	}
	own, rejection := plan.ReadJob(p, value(p.Own.MaxAttempts, maxAttemptsFlag, f.maxAttempts),
		value(p.Own.Delay, delayFlag, f.delay))
	if rejection != nil {
		return own, &usageError{errors.New(rejection.Error())}
	}
	return own, nil
}

// builtInName names the built-in catalogue in place of a file.
const builtInName = "built-in"

func (c *cli) policiesDiffCommand() *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Say what catalogue B would have decided otherwise than A on recorded failures",
		Long: "Replays the failures that the journal holds through two catalogues, and counts by policy those that B\n" +
			"decides otherwise than A (one retries, the other gives up, or to another team) and those that B retries\n" +
			"earlier or later. Not comparable are those of which the journal does not hold all that a decision\n" +
			"needs, such as a retry policy that the job brought. A and B are files, or " + builtInName + ". What was taught\n" +
			"holds in both. Reads the journal that RETRY_WORKER_DATABASE_URL names, beside a running worker too.",
		Example: `  retry-worker policies diff built-in policies.yaml
  retry-worker policies diff policies.yaml new.yaml --since 30d -o json`,
		Args: takes(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.policiesDiff(cmd.Context(), args[0], args[1], since, time.Now())
		},
	}
	cmd.Flags().StringVar(&since, "since", "90d", "first failure: days back, a date or RFC 3339")
	return cmd
}

// policiesDiff is what `policies diff -o json` prints.
type policiesDiff struct {
	Since string `json:"since"`
	A     string `json:"a"` // the catalogues' versions
	B     string `json:"b"`
	audit.Differences
	Policies []policyDiff `json:"policies"`
}

type policyDiff struct {
	Policy string `json:"policy"`
	audit.Differences
}

func (c *cli) policiesDiff(ctx context.Context, a, b, since string, now time.Time) error {
	from, err := instantOrAge("--since", since, now)
	if err != nil {
		return err
	}
	var catalogues [2]*catalogue.Catalogue
	for i, file := range []string{a, b} {
		if catalogues[i] = catalogue.Default(); file != builtInName {
			if catalogues[i], err = loadCatalogue(file); err != nil {
				return err
			}
		}
	}
	return readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		line := c.progress("failures replayed")
		defer line.end()
		differences, err := audit.Replay(ctx, reader, from, catalogues[0].Policies, catalogues[1].Policies, line.show)
		if err != nil {
			return err
		}
		diff := policiesDiff{Since: decision.Instant(from), A: catalogues[0].Version, B: catalogues[1].Version,
			Policies: []policyDiff{}}
		for _, policy := range slices.Sorted(maps.Keys(differences)) {
			diff.Differences.Add(differences[policy])
			diff.Policies = append(diff.Policies, policyDiff{policy, *differences[policy]})
		}
		return c.print(diff)
	})
}
