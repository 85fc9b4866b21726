package main

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retry-worker/internal/api"
	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

func (c *cli) runsCommand() *cobra.Command {
	return group("runs", "List bulk runs, show one and its items, watch it, pause, resume or cancel it",
		"A bulk run is one decision on many dead letters, started by `dead-letters retry --filter …` or\n"+
			"`discard --filter …`, by the console or by the API. It goes on in the worker, whoever watches, and\n"+
			"after a crash. Roles: viewer looks; admin starts, pauses, resumes and cancels.",
		c.runsListCommand(), c.runsItemsCommand(), c.runsWatchCommand(),
		c.runCommand("show", "Show a bulk run, and what became of its dead letters so far", "", "", nil),
		c.runCommand("pause", "Have a bulk run decide nothing more until it is resumed",
			"What is decided already goes its way. (A run waits by itself while the engine does not answer.)", "/pause", nothing),
		c.runCommand("resume", "Have a paused bulk run go on, at its pace", "", "/resume", nothing),
		c.runCommand("cancel", "End a bulk run: what is not decided yet stays as it is",
			"What is decided already goes its way, and its outcomes go on being verified. A run that was cancelled does not "+
				"go on:\nstart another for the rest.", "/cancel", nothing))
}

// runCommand returns a command about one run, as about does.
func (c *cli) runCommand(verb, short, long, address string, body func() (any, error)) *cobra.Command {
	return about(c, &cobra.Command{
		Use: verb + " RUN", Short: short, Long: long,
		Example: "  retry-worker dead-letters runs " + verb + " 0198a0c0-5717-7562-b3fc-2c963f66afa6",
		Args:    oneRun,
	}, "/bulk-runs/", address, body, c.printRun)
}

// nothing is the body of an order that says all in its address.
func nothing() (any, error) { return struct{}{}, nil }

// oneRun takes one argument, a bulk run's id.
var oneRun = takesID("bulk run", "retry-worker dead-letters runs list")

func (c *cli) runsWatchCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch RUN",
		Short: "Follow a bulk run to its end",
		Long: "Shows how far the run has come, to its end. Ctrl-C ends the watching, not the run.\n" +
			"Exit 0 when the run has ended, or is no longer watched; 1 when it was cancelled, or the API does not answer.",
		Example: "  retry-worker dead-letters runs watch 0198a0c0-5717-7562-b3fc-2c963f66afa6",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilSignal(cmd.Context())
			defer stop()
			return c.follow(ctx, args[0], seenRun{})
		},
	}
	c.server.register(cmd.Flags())
	return cmd
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
		state := string(r.State)
		if r.Hold != nil {
			state += " (waits)"
		}
		return []any{r.ID, state, fmt.Sprintf("%d/%d", r.Total-r.Counts[journal.BulkPlanned], r.Total),
			r.Action, r.Reason, minute(r.CreatedAt), r.By, r.Counts[journal.BulkRecovered], r.Counts[journal.BulkDeadAgain]}
	})
	return lists(cmd, table, "No bulk run was started yet.",
		func(*pflag.FlagSet, []string) (string, url.Values, error) { return "/bulk-runs", url.Values{}, nil })
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
func (c *cli) printRun(r *api.BulkRun) {
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
	c.printOutcomes(r)
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

// printOutcomes says what became of a run's dead letters so far.
func (c *cli) printOutcomes(r *api.BulkRun) {
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
		fmt.Fprintf(c.out, "\n`%s --outcome refused` says why they were refused.\n", runsCommandLine("items", r.ID))
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

const (
	// A run is looked at after firstLook, then less and less often, until it is every lastLook.
	firstLook, lastLook = 50 * time.Millisecond, time.Second
	// silence is how long the API may not answer before watching is given up.
	silence = time.Minute
)

// follow watches a run to its end and prints it; begun is how it was answered when it was started, if it was just now.
// Where ctx ends first, it says how to go on: the run does so by itself.
func (c *cli) follow(ctx context.Context, id string, begun seenRun) error {
	w := &watcher{c: c, bar: c.progress(""), seenRun: begun}
	err := w.watch(ctx, id)
	w.bar.end()
	run := w.run
	if ctx.Err() != nil {
		fmt.Fprintf(c.errOut, "retry-worker: no longer watched, the run goes on; `%s` ends it, `%s` watches it again\n",
			runsCommandLine("cancel", id), runsCommandLine("watch", id))
		err = nil
	}
	switch {
	case err != nil:
		return err
	case run == nil:
		return nil
	case c.json():
		fmt.Fprintf(c.out, "%s\n", w.text)
	case ctx.Err() == nil:
		fmt.Fprintf(c.out, "Bulk run %s is %s.\n", inertLine(run.ID, maxCell), inertLine(string(run.State), maxCell))
		c.printOutcomes(run)
	}
	if run.State == journal.BulkCancelled {
		return fmt.Errorf("the run was cancelled by %s: %d of %s were not decided", inertLine(value(run.ChangedBy), maxCell),
			run.Counts[journal.BulkPlanned], deadLetters(run.Total))
	}
	return nil
}

// seenRun is a run as it was seen last, and the API's words for it; nil where it was not.
type seenRun struct {
	run  *api.BulkRun
	text []byte
}

// watcher shows how far a run has come: in a bar on a terminal, otherwise in a line for each tenth and each change.
type watcher struct {
	seenRun
	c    *cli
	bar  *progressBar
	last string
}

// watch looks at a run until its end, or that of ctx, whose error it returns then.
func (w *watcher) watch(ctx context.Context, id string) error {
	heard := time.Now()
	for pause := firstLook; ; pause = min(pause*3/2, lastLook) {
		run, text, err := asked[api.BulkRun](ctx, w.c, "/bulk-runs/"+url.PathEscape(id), nil)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && !mayPass(err):
			return err
		case err != nil && time.Since(heard) > silence:
			return fmt.Errorf("%w; the run goes on: `%s` watches it again", err, runsCommandLine("watch", id))
		case err == nil:
			w.seenRun, heard = seenRun{run, text}, time.Now()
			w.show(run)
			if run.State.Ended() {
				return nil
			}
		}
		clock.Machine{}.Rest(ctx, pause)
	}
}

func (w *watcher) show(r *api.BulkRun) {
	behind := r.Total - r.Counts[journal.BulkPlanned]
	line := progressWords(r, behind)
	if w.bar.w != nil {
		w.bar.draw(behind, r.Total, line)
		return
	}
	const parts = 10
	part := behind * parts / max(r.Total, 1)
	if now := fmt.Sprint(part, r.State, value(r.Hold)); now != w.last && !w.c.json() {
		w.last = now
		fmt.Fprintln(w.c.errOut, line)
	}
}

// progressWords returns how far a run has come.
func progressWords(r *api.BulkRun, behind int64) string {
	words := []string{fmt.Sprintf("%d of %d", behind, r.Total)}
	for _, o := range []journal.BulkOutcome{journal.BulkRecovered, journal.BulkDeadAgain, journal.BulkRefused} {
		if n := r.Counts[o]; n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, strings.ReplaceAll(string(o), "_", " ")))
		}
	}
	switch {
	case r.State != journal.BulkRunning:
		words = append(words, inertLine(string(r.State), maxCell)+by(r.ChangedBy))
	case r.Hold != nil:
		words = append(words, holdWords(r))
	case r.PerMinute > 0:
		left := time.Duration(r.Counts[journal.BulkPlanned]) * time.Minute / time.Duration(r.PerMinute)
		words = append(words, left.Round(time.Second).String()+" left")
	}
	return strings.Join(words, ", ")
}

func by(who *string) string {
	if who == nil {
		return ""
	}
	return " by " + inertLine(*who, maxCell)
}

// holdWords say why a run decides nothing for the moment.
func holdWords(r *api.BulkRun) string {
	why := value(r.Hold)
	if why == deadletter.HoldEngine {
		why = "the engine does not answer"
	}
	return "waits since " + minute(inertLine(value(r.HeldAt), maxCell)) + ": " + inertLine(why, maxCell) +
		"; it goes on by itself"
}
