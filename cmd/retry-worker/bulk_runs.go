package main

import (
	"context"
	"fmt"
	"net/url"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"retry-worker/internal/console"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

func (c *cli) runsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List bulk runs, show one and its items, watch it, pause, resume or cancel it",
		Long: "A bulk run is one decision on many dead letters, started by `dead-letters retry --filter …` or `discard --filter …`, by the\n" +
			"console or by the API. It goes on in the worker, whoever watches, and after a crash. Roles: viewer looks; admin starts,\n" +
			"pauses, resumes and cancels.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q; `%s --help` lists the commands", args[0], cmd.CommandPath())
			}
			return fmt.Errorf("expected a command behind runs: list, show, items, watch, pause, resume or cancel; `%s --help` says more", cmd.CommandPath())
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(c.runsListCommand(), c.runsItemsCommand(),
		c.runCommand("show", "Show a bulk run, and what became of its dead letters so far", "", c.showRun),
		c.runCommand("watch", "Follow a bulk run to its end",
			"Shows how far the run has come, to its end. Ctrl-C ends the watching, not the run.\n"+
				"Exit 0 when the run has ended, or is no longer watched; 1 when it was cancelled, or the API does not answer.", c.watchRun),
		c.runCommand("pause", "Have a bulk run decide nothing more until it is resumed",
			"What is decided already goes its way. (A run waits by itself while the engine does not answer.)", c.stepRun("pause")),
		c.runCommand("resume", "Have a paused bulk run go on, at its pace", "", c.stepRun("resume")),
		c.runCommand("cancel", "End a bulk run: what is not decided yet stays as it is",
			"What is decided already goes its way, and its outcomes go on being verified. A run that was cancelled does not go on:\nstart another for the rest.",
			c.stepRun("cancel")))
	return cmd
}

// runCommand is a command about one run.
func (c *cli) runCommand(verb, short, long string, do func(ctx context.Context, api *apiClient, id string) error) *cobra.Command {
	var f serverFlags
	cmd := &cobra.Command{
		Use: verb + " RUN", Short: short, Long: long,
		Example: "  retry-worker dead-letters runs " + verb + " 0198a0c0-5717-7562-b3fc-2c963f66afa6",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := f.client()
			if err != nil {
				return err
			}
			return do(cmd.Context(), api, args[0])
		},
	}
	f.register(cmd.Flags())
	return cmd
}

// oneRun takes one argument, a bulk run's id.
func oneRun(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) != 1:
		return fmt.Errorf("%d ids given, expected one as `retry-worker dead-letters runs list` prints them; `%s --help` says more", len(args), cmd.CommandPath())
	case !deadletter.IsID(strings.ToLower(args[0])):
		return fmt.Errorf("%s is no bulk run's id, expected one as `retry-worker dead-letters runs list` prints them, such as 0198a0c0-5717-7562-b3fc-2c963f66afa6",
			strconv.QuoteToASCII(inertLine(args[0], 60)))
	}
	return nil
}

func (c *cli) showRun(ctx context.Context, api *apiClient, id string) error {
	return c.oneRun(ctx, api, "/bulk-runs/"+url.PathEscape(id), nil)
}

func (c *cli) stepRun(verb string) func(context.Context, *apiClient, string) error {
	return func(ctx context.Context, api *apiClient, id string) error {
		return c.oneRun(ctx, api, "/bulk-runs/"+url.PathEscape(id)+"/"+verb, struct{}{})
	}
}

// oneRun asks for a run, or has something done with it, and prints it as it stands then.
func (c *cli) oneRun(ctx context.Context, api *apiClient, path string, body any) error {
	run, text, err := asked[console.BulkRun](ctx, api, path, body)
	switch {
	case err != nil:
		return err
	case c.json():
		fmt.Fprintf(c.out, "%s\n", text)
	default:
		c.printRun(ctx, api, run)
	}
	return nil
}

func (c *cli) watchRun(ctx context.Context, api *apiClient, id string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return c.follow(ctx, api, id, seenRun{})
}

func (c *cli) runsListCommand() *cobra.Command {
	var f struct {
		serverFlags
		pageFlags
	}
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List bulk runs, the newest first",
		Example: "  retry-worker dead-letters runs list\n  retry-worker dead-letters runs list --all -o json | jq -r '.items[] | select(.state == \"running\") | .id'",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := wrongUse(f.check()); err != nil {
				return err
			}
			api, err := f.client()
			if err != nil {
				return err
			}
			return c.runsList(cmd.Context(), api, &f.pageFlags)
		},
	}
	f.pageFlags.register(cmd.Flags())
	f.serverFlags.register(cmd.Flags())
	return cmd
}

func (c *cli) runsList(ctx context.Context, api *apiClient, f *pageFlags) error {
	type run = console.BulkRun
	table := tableOf(c,
		column[run]{name: "RUN", of: func(r *run) string { return r.ID }},
		column[run]{name: "STARTED", rank: 4, of: func(r *run) string { return minute(r.CreatedAt) }},
		column[run]{name: "BY", rank: 5, of: func(r *run) string { return r.By }},
		column[run]{name: "ACTION", rank: 2, of: func(r *run) string { return string(r.Action) }},
		column[run]{name: "STATE", rank: 1, of: func(r *run) string { return string(r.State) + holds(r) }},
		column[run]{name: "DONE", rank: 1, of: func(r *run) string { return fmt.Sprintf("%d/%d", r.Total-r.Counts[journal.BulkPlanned], r.Total) }},
		column[run]{name: "RECOVERED", rank: 6, of: func(r *run) string { return strconv.FormatInt(r.Counts[journal.BulkRecovered], 10) }},
		column[run]{name: "DEAD AGAIN", rank: 6, of: func(r *run) string { return strconv.FormatInt(r.Counts[journal.BulkDeadAgain], 10) }},
		column[run]{name: "REASON", rank: 3, of: func(r *run) string { return r.Reason }, elastic: true},
	)
	next, err := list(ctx, c, api, f, "/bulk-runs", url.Values{}, "cursor", table)
	if err != nil || c.json() {
		return err
	}
	if table.rows == 0 {
		fmt.Fprintln(c.out, "No bulk run was started yet.")
	}
	c.moreFollow(next)
	return nil
}

// holds tells that a run decides nothing for the moment.
func holds(r *console.BulkRun) string {
	if r.Hold == nil {
		return ""
	}
	return " (waits)"
}

func (c *cli) runsItemsCommand() *cobra.Command {
	var f struct {
		serverFlags
		pageFlags
	}
	var outcome string
	cmd := &cobra.Command{
		Use:   "items RUN",
		Short: "List a bulk run's dead letters in order, each with its verified outcome",
		Example: `  retry-worker dead-letters runs items 0198a0c0-5717-7562-b3fc-2c963f66afa6 --outcome dead_again --all
  retry-worker dead-letters runs items 0198a0c0-5717-7562-b3fc-2c963f66afa6 --all -o json | jq -r '.items[].deadLetterId'`,
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wrongUse(checkOutcome(outcome), f.check()); err != nil {
				return err
			}
			api, err := f.client()
			if err != nil {
				return err
			}
			return c.runsItems(cmd.Context(), api, &f.pageFlags, args[0], outcome)
		},
	}
	cmd.Flags().StringVar(&outcome, "outcome", "", "only with this: "+strings.Join(outcomeNames(), ", "))
	f.pageFlags.register(cmd.Flags())
	f.serverFlags.register(cmd.Flags())
	return cmd
}

func outcomeNames() []string {
	var names []string
	for _, o := range journal.BulkOutcomes() {
		names = append(names, string(o))
	}
	return names
}

func checkOutcome(outcome string) error {
	if names := outcomeNames(); outcome != "" && !slices.Contains(names, outcome) {
		return fmt.Errorf("--outcome is %q, expected one of %s", outcome, strings.Join(names, ", "))
	}
	return nil
}

func (c *cli) runsItems(ctx context.Context, api *apiClient, f *pageFlags, id, outcome string) error {
	type item = console.BulkItem
	table := tableOf(c,
		column[item]{name: "NUMBER", rank: 5, of: func(i *item) string { return strconv.FormatInt(i.Number, 10) }},
		column[item]{name: "ID", of: func(i *item) string { return i.DeadLetter }},
		column[item]{name: "SUBJECT", rank: 2, of: func(i *item) string { return i.Subject.ID }},
		column[item]{name: "OUTCOME", rank: 1, of: func(i *item) string { return string(i.Outcome) }},
		column[item]{name: "SINCE", rank: 4, of: func(i *item) string { return minute(i.ChangedAt) }},
		column[item]{name: "WHY", rank: 3, of: func(i *item) string { return value(i.Code) }, elastic: true},
	)
	q := url.Values{}
	if outcome != "" {
		q.Set("outcome", outcome)
	}
	next, err := list(ctx, c, api, f, "/bulk-runs/"+url.PathEscape(id)+"/items", q, "after", table)
	if err != nil || c.json() {
		return err
	}
	if table.rows == 0 {
		fmt.Fprintln(c.out, "No dead letter found.")
	}
	c.moreFollow(next)
	return nil
}
