package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/audit"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
)

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
		Args: takes(2, 2),
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
	from, err := daysBack(since, now)
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
	ctx, reader, done, err := openJournal(ctx)
	if err != nil {
		return err
	}
	defer done()
	bar := c.progress("failures replayed")
	defer bar.end()
	differences, err := audit.Replay(ctx, reader, from, catalogues[0].Policies, catalogues[1].Policies, bar.show)
	if err != nil {
		return err
	}
	diff := policiesDiff{Since: decision.Instant(from), A: catalogues[0].Version, B: catalogues[1].Version,
		Policies: []policyDiff{}}
	for _, policy := range slices.Sorted(maps.Keys(differences)) {
		diff.Differences.Add(differences[policy])
		diff.Policies = append(diff.Policies, policyDiff{policy, *differences[policy]})
	}
	return c.print(diff, func() { c.printDiff(&diff) })
}

// daysBack returns the instant that --since names.
func daysBack(text string, now time.Time) (time.Time, error) {
	const most = 36_600
	if days, is := strings.CutSuffix(text, "d"); is {
		if n, err := strconv.Atoi(days); err == nil && n > 0 && n <= most {
			return now.AddDate(0, 0, -n).UTC().Truncate(time.Second), nil
		}
	} else if since, err := boundFlag("since", text); err == nil {
		return since, nil
	}
	return time.Time{}, &usageError{fmt.Errorf("--since is %q, expected days back such as 90d, a date such as 2026-03-01 "+
		"(midnight UTC) or an instant such as 2026-03-01T08:00:00-03:00", text)}
}

func (c *cli) printDiff(d *policiesDiff) {
	fmt.Fprintf(c.out, "since %s: A is version %s, B version %s\n", d.Since, d.A, d.B)
	if d.Failures == 0 {
		fmt.Fprintln(c.out, "no failure was recorded")
		return
	}
	fmt.Fprintln(c.out)
	var rows [][]any
	row := func(name string, d *audit.Differences) {
		rows = append(rows, []any{name, d.Failures, d.Alike, d.Otherwise, d.Earlier, d.Later, d.NotComparable})
	}
	for i := range d.Policies {
		row(d.Policies[i].Policy, &d.Policies[i].Differences)
	}
	row("all", &d.Differences)
	c.rows(", failures, decided alike, otherwise, earlier, later, not comparable", rows)
}
