package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retry-worker/internal/api"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

func (c *cli) runsCommand() *cobra.Command {
	return group("runs", "List bulk runs, show one and its items, watch it, pause, resume or cancel it",
		"A bulk run is one decision on many dead letters, started by `dead-letters retry --filter …` or\n"+
			"`discard --filter …`, by the console or by the API. It goes on in the worker, whoever watches, and\n"+
			"after a crash. Roles: viewer looks; admin starts, pauses, resumes and cancels.",
		c.runsListCommand(), c.runCommand("show", "Show a bulk run, and what became of its dead letters so far", "",
			c.askRun("", nil)),
		c.runsItemsCommand(),
		c.runCommand("watch", "Follow a bulk run to its end",
			"Shows how far the run has come, to its end. Ctrl-C ends the watching, not the run.\n"+
				"Exit 0 when the run has ended, or is no longer watched; 1 when it was cancelled, or the API does not "+
				"answer.", c.watchRun),
		c.runCommand("pause", "Have a bulk run decide nothing more until it is resumed",
			"What is decided already goes its way. (A run waits by itself while the engine does not "+
				"answer.)", c.askRun("/pause", struct{}{})),
		c.runCommand("resume", "Have a paused bulk run go on, at its pace", "", c.askRun("/resume", struct{}{})),
		c.runCommand("cancel", "End a bulk run: what is not decided yet stays as it is",
			"What is decided already goes its way, and its outcomes go on being verified. A run that was cancelled does not "+
				"go on:\nstart another for the rest.",
			c.askRun("/cancel", struct{}{})))
}

// runCommand returns a command about one run.
func (c *cli) runCommand(verb, short, long string, do func(ctx context.Context, id string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: verb + " RUN", Short: short, Long: long,
		Example: "  retry-worker dead-letters runs " + verb + " 0198a0c0-5717-7562-b3fc-2c963f66afa6",
		Args:    oneRun,
		RunE:    func(cmd *cobra.Command, args []string) error { return do(cmd.Context(), args[0]) },
	}
	c.server.register(cmd.Flags())
	return cmd
}

// oneRun takes one argument, a bulk run's id.
var oneRun = takesID("bulk run", "retry-worker dead-letters runs list")

// askRun returns what asks for a run, or has something done with it, and prints it as it stands then.
func (c *cli) askRun(address string, body any) func(context.Context, string) error {
	return func(ctx context.Context, id string) error {
		path := "/bulk-runs/" + url.PathEscape(id) + address
		return show(ctx, c, path, body, func(run *api.BulkRun) { c.printRun(ctx, run) })
	}
}

func (c *cli) watchRun(ctx context.Context, id string) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	return c.follow(ctx, id, seenRun{})
}

func (c *cli) runsListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List bulk runs, the newest first",
		Example: "  retry-worker dead-letters runs list\n  retry-worker dead-letters runs list --all -o json | jq -r " +
			"'.items[] | select(.state == \"running\") | .id'",
	}
	const head = "RUN, STATE, DONE, ACTION, REASON, STARTED, BY, RECOVERED, DEAD AGAIN"
	table := tableOf(c, head, func(r *api.BulkRun) []any {
		return []any{r.ID, string(r.State) + holds(r), fmt.Sprintf("%d/%d", r.Total-r.Counts[journal.BulkPlanned], r.Total),
			r.Action, r.Reason, minute(r.CreatedAt), r.By, r.Counts[journal.BulkRecovered], r.Counts[journal.BulkDeadAgain]}
	})
	return lists(cmd, table, "No bulk run was started yet.",
		func(*pflag.FlagSet, []string) (string, url.Values, error) { return "/bulk-runs", url.Values{}, nil })
}

// holds tells that a run decides nothing for the moment.
func holds(r *api.BulkRun) string {
	if r.Hold == nil {
		return ""
	}
	return " (waits)"
}

func (c *cli) runsItemsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "items RUN",
		Short: "List a bulk run's dead letters in order, each with its verified outcome",
		Example: `  retry-worker dead-letters runs items 0198a0c0-5717-7562-b3fc-2c963f66afa6 --outcome dead_again --all
  retry-worker dead-letters runs items 0198a0c0-5717-7562-b3fc-2c963f66afa6 --all -o json | jq -r '.items[].deadLetterId'`,
		Args: oneRun,
	}
	cmd.Flags().String("outcome", "", "only with this: "+listed(journal.BulkOutcomes()))
	table := tableOf(c, "ID, OUTCOME, SUBJECT, WHY, SINCE, NUMBER", func(i *api.BulkItem) []any {
		return []any{i.DeadLetter, i.Outcome, i.Subject.ID, value(i.Code), minute(i.ChangedAt), i.Number}
	})
	return lists(cmd, table, "No dead letter found.",
		func(flags *pflag.FlagSet, args []string) (_ string, q url.Values, err error) {
			if q = query(flags, "outcome"); q.Get("outcome") != "" {
				err = oneOf("outcome", journal.BulkOutcome(q.Get("outcome")), journal.BulkOutcomes())
			}
			return "/bulk-runs/" + url.PathEscape(args[0]) + "/items", q, err
		})
}

// printRun prints a run, and what became of its dead letters so far.
func (c *cli) printRun(ctx context.Context, r *api.BulkRun) {
	line, done := c.sheet()
	line("bulk run", r.ID)
	line("state", stateWords(r))
	line("action", actionWords(&r.BulkCommand))
	line("filter", filterWords(&r.Filter))
	line("because", r.Reason)
	line("started", "by "+r.By+" at "+r.CreatedAt)
	line("pace", fmt.Sprintf("%d a minute", r.PerMinute))
	if r.ChangedBy != nil && r.State == journal.BulkRunning {
		line("resumed", "by "+*r.ChangedBy+" at "+value(r.ChangedAt))
	}
	line("ended", value(r.EndedAt))
	line("in it", deadLetters(r.Total))
	done()
	c.printOutcomes(ctx, r)
}

// stateWords returns where a run stands, and by whom.
func stateWords(r *api.BulkRun) string {
	switch {
	case r.Hold != nil:
		return string(r.State) + ", " + holdWords(r)
	case r.ChangedBy != nil && (r.State == journal.BulkPaused || r.State == journal.BulkCancelled):
		return string(r.State) + by(r.ChangedBy) + " at " + value(r.ChangedAt)
	default:
		return string(r.State)
	}
}

// printOutcomes says what became of a run's dead letters so far, and why some were refused.
func (c *cli) printOutcomes(ctx context.Context, r *api.BulkRun) {
	type outcome = journal.BulkOutcome
	came := slices.DeleteFunc(journal.BulkOutcomes(), func(o outcome) bool { return r.Counts[o] <= 0 })
	if len(came) == 0 {
		return
	}
	fmt.Fprintln(c.out)
	tableOf(c, "COUNT, OUTCOME, MEANS", func(o *outcome) []any {
		means := outcomeWords[*o]
		if *o == journal.BulkPlanned && r.State == journal.BulkCancelled {
			means = "left as they were: the run was cancelled before their turn"
		}
		return []any{r.Counts[*o], *o, means}
	}).print(came)
	if r.Counts[journal.BulkRefused] > 0 {
		c.printRefused(ctx, r)
	}
	if onWay := r.Counts[journal.BulkDecided] + r.Counts[journal.BulkTaken]; r.State.Ended() && onWay > 0 {
		fmt.Fprintf(c.out, "\nHow %s on the way end is not known yet; `%s` tells later.\n", deadLetters(onWay),
			runsCommandLine("show", r.ID))
	}
}

// outcomeWords say what an outcome means while the run goes on.
var outcomeWords = map[journal.BulkOutcome]string{
	journal.BulkPlanned:    "their turn has not come yet",
	journal.BulkRefused:    "left as they were",
	journal.BulkDecided:    "decided, on the way to the process",
	journal.BulkTaken:      "the process took it; how the retry ends is not known yet",
	journal.BulkNobody:     "no process waited any more",
	journal.BulkRecovered:  "the retry succeeded",
	journal.BulkDeadAgain:  "failed again, and given up again",
	journal.BulkSuperseded: "something newer of the same subject took its place",
	journal.BulkDiscarded:  "let go",
}

// printRefused says why some were refused; it looks at so many of them at most.
func (c *cli) printRefused(ctx context.Context, r *api.BulkRun) {
	const mostPages = 25
	counts, seen := map[string]int64{}, int64(0)
	q := url.Values{"outcome": {string(journal.BulkRefused)}, "limit": {strconv.Itoa(deadletter.MostItems)}}
	for range mostPages {
		page, _, err := asked[api.Page[api.BulkItem]](ctx, c, "/bulk-runs/"+url.PathEscape(r.ID)+"/items?"+q.Encode(), nil)
		if err != nil {
			return // what is printed stands without it
		}
		for i := range page.Items {
			counts[value(page.Items[i].Code)]++
			seen++
		}
		if page.Next == nil {
			break
		}
		q.Set("cursor", *page.Next)
	}
	if seen == 0 {
		return
	}
	of := ""
	if all := r.Counts[journal.BulkRefused]; seen < all {
		of = fmt.Sprintf(" (of the first %d)", seen)
	}
	fmt.Fprintf(c.out, "\nRefused%s:\n", of)
	codes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	line, done := c.sheet()
	defer done()
	for _, code := range codes {
		line(fmt.Sprint(counts[code]), inertLine(code, maxCell)+refusalWords[deadletter.Code(code)])
	}
}

// refusalWords say what a code means, and what to do.
var refusalWords = map[deadletter.Code]string{
	deadletter.MaxRetriesExceeded: ": " + usedUp,
	deadletter.DeadlineMissed:     ": " + tooLate,
	deadletter.InvalidRetryState:  ": decided on by others meanwhile, or no process waits for them",
	deadletter.PolicyNotFound:     ": their policy is no longer in the catalogue; --when now needs none",
	deadletter.JobNotFound:        ": they are gone",
	deadletter.InOtherRun:         ": another bulk run has them",
}
