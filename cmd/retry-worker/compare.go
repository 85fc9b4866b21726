package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/audit"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/compare"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// builtInName names the built-in catalogue in place of a file.
const builtInName = "built-in"

type compareFlags struct{ since, policy string }

func (c *cli) policiesCompareCommand() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Say what B would have done on recorded failures, beside A, and what is likely to have come of it",
		Long: "Replays the failures that the journal holds through two catalogues, and says how many B decides\n" +
			"otherwise than A, and how many of a hundred failures the next retry recovers, by three estimates with\n" +
			"95 % intervals: what came of retries with the same cause, destination state and time since the first\n" +
			"failure; what came of each retry, weighed by how likely it would have been over how likely it was; and\n" +
			"both, with what is learnt of the cause. What history holds no answer to is named: it cannot be told.\n" +
			"A and B are files, or " + builtInName + ". What was learnt and outages are left out of both. Reads the journal that\n" +
			"RETRY_WORKER_DATABASE_URL names, beside a running worker too. html is a page with a picture.",
		Example: `  retry-worker policies compare built-in policies.yaml
  retry-worker policies compare policies.yaml new.yaml --since 30d -o html > compared.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return fmt.Errorf("%s given, expected two: A and B; `%s --help` says more",
					counted(len(args), "catalogue", "catalogues"), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.policiesCompare(cmd.Context(), args[0], args[1], &f, time.Now())
		},
	}
	cmd.Flags().StringVar(&f.since, "since", "90d", "first failure: days back, a date or RFC 3339")
	cmd.Flags().StringVar(&f.policy, "policy", decision.DefaultPolicy, "policy to compare, which both have")
	c.draws(cmd, "html")
	return cmd
}

// compared is what `policies compare -o json` prints.
type compared struct {
	Policy string `json:"policy"`
	Since  string `json:"since"`
	A      string `json:"a"` // the catalogues' versions
	B      string `json:"b"`
	compare.Result
}

func (c *cli) policiesCompare(ctx context.Context, a, b string, f *compareFlags, now time.Time) error {
	since, err := f.bound(now)
	if err != nil {
		return err
	}
	var policies [2]*decision.Policy
	for i, file := range []string{a, b} {
		if policies[i], err = f.read(file); err != nil {
			return err
		}
	}
	ctx, reader, done, err := openJournal(ctx)
	if err != nil {
		return err
	}
	defer done()
	head, err := reader.Head(ctx)
	if err != nil {
		return fmt.Errorf("read the journal's head: %w", err)
	}
	comparison, bar := compare.New(policies[0], policies[1]), c.progress("records replayed")
	defer bar.end()
	replayed := int64(0)
	for page, err := range audit.Pages(ctx, reader, journal.RecordFilter{Since: since}, head.Record) {
		if err != nil {
			return err
		}
		for i := range page {
			comparison.Add(&page[i])
			replayed++
			bar.show(page[i].Number(), head.Record, replayed)
		}
	}
	r := compared{f.policy, decision.Instant(since), policies[0].Catalogue, policies[1].Catalogue, comparison.Result()}
	if c.format == "html" {
		return (&compare.Page{Policy: r.Policy, Since: r.Since, A: a, B: b, Result: r.Result}).Write(c.out)
	}
	return c.print(r, func() { c.printCompared(&r) })
}

// bound returns the instant that --since names.
func (f *compareFlags) bound(now time.Time) (time.Time, error) {
	const most = 36_600
	if text, is := strings.CutSuffix(f.since, "d"); is {
		if days, err := strconv.Atoi(text); err == nil && days > 0 && days <= most {
			return now.AddDate(0, 0, -days).UTC().Truncate(time.Second), nil
		}
	} else if since, err := boundFlag("since", f.since); err == nil {
		return since, nil
	}
	return time.Time{}, &usageError{fmt.Errorf("--since is %q, expected days back such as 90d, a date such as 2026-03-01 "+
		"(midnight UTC) or an instant such as 2026-03-01T08:00:00-03:00", f.since)}
}

// read returns the policy of a catalogue.
func (f *compareFlags) read(file string) (*decision.Policy, error) {
	from := catalogue.Default()
	if file != builtInName {
		var err error
		if from, err = loadCatalogue(file); err != nil {
			return nil, err
		}
	}
	p := from.Policies[f.policy]
	switch {
	case p == nil:
		return nil, &usageError{fmt.Errorf("--policy is %q, which %s does not have, expected one of %s", f.policy, file,
			strings.Join(from.Policies.Names(), ", "))}
	case p.Own != nil:
		return nil, &usageError{fmt.Errorf("--policy is %q, of which each job brings retries of its own that are not recorded, "+
			"expected one that decides for itself", f.policy)}
	}
	return p, nil
}

func (c *cli) printCompared(r *compared) {
	fmt.Fprintf(c.out, "%s since %s: A is version %s, B version %s\n\n", r.Policy, r.Since, r.A, r.B)
	row, done := c.sheet()
	for _, line := range r.Rows() {
		row(line[0], line[1])
	}
	done()
	fmt.Fprintln(c.out, "\nof a hundred failures the next retry recovers, with 95 % certainty:")
	var rows [][]string
	for _, e := range r.Estimates {
		rows = append(rows, slices.Concat([]string{e.Method.Title()}, e.Words(), []string{fmt.Sprintf("%.1f %%", 100*e.Untold)}))
	}
	rowsOf(c, "", "A", "B", "B less A", "cannot be told").print(rows)
	fmt.Fprintf(c.out, "\nno estimate tells of %.1f %% of the failures for both\n", 100*r.Untold)
}
