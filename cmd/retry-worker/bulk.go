package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"retry-worker/internal/api"
	"retry-worker/internal/clock"
	"retry-worker/internal/journal"
)

// bulkFlags say which dead letters a bulk run decides on, and how it is begun.
type bulkFlags struct {
	filters           []string
	plan, yes, detach bool
}

const bulkHelp = "\n\nWith --filter it decides on all open dead letters that fit: it shows first what would be done (--plan ends\n" +
	"there), asks (--yes does not), and follows the bulk run to its end. Ctrl-C ends the following, not the run:\n" +
	"`retry-worker dead-letters runs` shows, pauses and cancels it. --filter takes key=value, key one of policy,\n" +
	"team, reason, fingerprint, ids, context, q, since and until (an instant, a date or an age such as 3d), and may\n" +
	"be given again: all must fit. --filter all is every open one. -o json prints the plan, then the run at its end.\n" +
	"Exit 1 where nothing was started, or the run was cancelled."

// verdictCommand returns a command that decides on one dead letter, or on many.
func (c *cli) verdictCommand(verb journal.BulkAction, example string) *cobra.Command {
	cmd := c.action("dead-letters", &action{use: string(verb) + " ID", request: "POST /dead-letters/{id}/" + string(verb),
		example: example})
	cmd.Example += "\n  retry-worker dead-letters " + string(verb) + " --filter team=ti --filter until=2h --plan"
	cmd.Use = fmt.Sprintf("%s ID | %s --filter key=value …", verb, verb)
	cmd.Long += bulkHelp
	var f bulkFlags
	flags := cmd.Flags()
	flags.StringArrayVar(&f.filters, "filter", nil, "all that fits instead of one: `key=value`, may be given again; or all")
	flags.BoolVar(&f.plan, "plan", false, "show what would be done, and do nothing (role viewer)")
	flags.BoolVar(&f.yes, "yes", false, "do not ask before it starts; needed where there is no terminal")
	flags.BoolVar(&f.detach, "detach", false, "start it and do not follow it")
	operationOf("POST /bulk-runs/plan").register(cmd, "perMinute")
	one := cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		for _, name := range []string{"plan", "yes", "detach", "per-minute"} {
			if flags.Changed(name) && !flags.Changed("filter") {
				return fmt.Errorf("--%s is for many at once, expected it with --filter only", name)
			}
		}
		if flags.Changed("filter") && (len(args) > 0 || flags.Changed("deadline") || flags.Changed("protocol-number")) {
			return errors.New("--filter and an id, --deadline or --protocol-number are given, expected many without them, or one without --filter")
		}
		if len(args) != 1 && !flags.Changed("filter") {
			return fmt.Errorf("nothing is chosen, expected the id of one dead letter, or --filter key=value for many (--filter "+
				"all for every open one); `%s --help` says more", cmd.CommandPath())
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return one(cmd, args)
		}
		return c.bulk(cmd, verb, &f)
	}
	return cmd
}

// parseFilter returns what --filter chooses, as the API takes it.
func parseFilter(given []string, now time.Time) (map[string]string, error) {
	filter := map[string]string{}
	for _, g := range given {
		key, value, pair := strings.Cut(g, "=")
		_, twice := filter[key]
		switch {
		case g == "all" && len(given) == 1:
			return filter, nil
		case !pair || value == "":
			return nil, &usageError{fmt.Errorf("--filter is %q, expected key=value, or all alone", g)}
		case twice:
			return nil, &usageError{fmt.Errorf("--filter %s is given twice, expected once: all filters must fit", key)}
		}
		if filter[key] = value; key == "since" || key == "until" {
			at, err := instantOrAge("--filter "+key, value, now)
			if err != nil {
				return nil, err
			}
			filter[key] = at.Format(time.RFC3339Nano)
		}
	}
	return filter, nil
}

// bulk plans, shows the plan, asks, starts and follows.
func (c *cli) bulk(cmd *cobra.Command, verb journal.BulkAction, f *bulkFlags) error {
	ctx := cmd.Context()
	filter, err := parseFilter(f.filters, time.Now())
	if err != nil {
		return err
	}
	reason := cmd.Flags().Lookup("reason").Value.String()
	switch {
	case f.plan && (f.yes || f.detach):
		return &usageError{errors.New("--plan does nothing, expected neither --yes nor --detach with it")}
	case !f.plan && strings.TrimSpace(reason) == "":
		return &usageError{errors.New("--reason is missing, expected why, in a few words: it is kept in the audit")}
	case !f.plan && !f.yes && !c.interactive():
		return &usageError{errors.New("--yes is missing: there is no terminal to ask on; --plan shows what would be done")}
	}
	_, command, err := operationOf("POST /bulk-runs/plan").given(cmd)
	if err != nil {
		return err
	}
	command["action"], command["filter"] = verb, filter
	plan, text, err := order[api.BulkPlan](ctx, c, "/bulk-runs/plan", command)
	if err != nil {
		return err
	}
	command["reason"], command["token"] = reason, plan.Token
	retry := operationOf("POST /dead-letters/{id}/retry")
	for i := range plan.Refused {
		plan.Refused[i].Message = retry.inFlags(plan.Refused[i].Message)
	}
	if plan.Token = ""; c.json() {
		err = c.print(text)
	} else {
		err = c.print(plan, "causes: fingerprint count reason pattern teams policy lastSeen")
	}
	switch {
	case err != nil:
		return err
	case f.plan && !c.json():
		fmt.Fprintln(c.out, "\nThis was a plan: nothing was changed.")
		return nil
	case f.plan:
		return nil
	case plan.Ready == 0:
		return fmt.Errorf("nothing was started: of %d open dead letters that fit, none can be decided", plan.Total)
	case !f.yes && !c.agreed(plan):
		return errors.New("nothing was started")
	}
	return c.start(ctx, command, f.detach)
}

// start starts what was planned, and follows it.
func (c *cli) start(ctx context.Context, command map[string]any, detach bool) error {
	// Before it begins, so that its id is not lost.
	watch, stop := untilSignal(ctx)
	defer stop()
	run, text, err := order[api.BulkRun](ctx, c, "/bulk-runs", command)
	switch {
	case err != nil:
		return err
	case detach && c.json():
		return c.print(text)
	case !c.json():
		fmt.Fprintf(c.out, "\nBulk run %s has started; `%s` follows it.\n", inertLine(run.ID, maxCell), runs("watch", run.ID))
	}
	if detach {
		return nil
	}
	return c.follow(watch, run.ID)
}

// order sends a command on many to the API.
func order[T any](ctx context.Context, c *cli, path string, command map[string]any) (*T, []byte, error) {
	body, err := json.Marshal(command)
	if err != nil {
		return nil, nil, err
	}
	return asked[T](ctx, c, &request{operation: operationOf("POST " + path), path: path, body: body})
}

// runs returns how a run is watched, cancelled or shown.
func runs(verb, id string) string {
	return "retry-worker dead-letters runs " + verb + " " + inertLine(id, maxCell)
}

// interactive reports whether somebody can be asked.
func (c *cli) interactive() bool {
	in, isIn := c.in.(*os.File)
	out, isOut := c.errOut.(*os.File)
	return c.asks || isIn && isOut && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// agreed asks whether the plan is to be carried out. What cannot be taken back takes the number of those it is about.
func (c *cli) agreed(p *api.BulkPlan) bool {
	wanted := "y"
	what, final := map[journal.BulkAction]string{journal.BulkDiscard: "Let %s go for good",
		journal.BulkAccept: "Close %s for good as what the portal has already"}[p.Action]
	if final {
		wanted = strconv.FormatInt(p.Ready, 10)
		fmt.Fprintf(c.errOut, "\n"+what+"? Type %s to do it: ", counted(p.Ready, "dead letter"), wanted)
	} else {
		fmt.Fprintf(c.errOut, "\nSend %s again? [y/N] ", counted(p.Ready, "dead letter"))
	}
	answer, err := bufio.NewReader(c.in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (answer == wanted || wanted == "y" && answer == "yes")
}

func (c *cli) watchCommand() *cobra.Command {
	cmd := c.action("dead-letters runs", &action{use: "watch RUN", request: "GET /bulk-runs/{id}", example: anID})
	cmd.Short = "Follow a bulk run to its end"
	cmd.Long = "Shows how far the run has come, to its end. Ctrl-C ends the watching, not the run.\n" +
		"Exit 0 when the run has ended, or is no longer watched; 1 when it was cancelled, or the API does not answer."
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, stop := untilSignal(cmd.Context())
		defer stop()
		return c.follow(ctx, args[0])
	}
	return cmd
}

const (
	// A run is looked at after firstLook, then less and less often, until it is every lastLook.
	firstLook, lastLook = 50 * time.Millisecond, time.Second
	// silence is how long the API may not answer before watching is given up.
	silence = time.Minute
)

// follow watches a run to its end and prints it. Where ctx ends first, it says how to go on: the run does so by itself.
func (c *cli) follow(ctx context.Context, id string) error {
	line := c.progress("")
	run, text, err := c.watch(ctx, id, line)
	line.end()
	if err == nil {
		err = c.print(text)
	} else if ctx.Err() != nil {
		fmt.Fprintf(c.errOut, "retry-worker: no longer watched, the run goes on; `%s` ends it, `%s` watches it again\n",
			runs("cancel", id), runs("watch", id))
		err = nil
	}
	if err == nil && run != nil && run.State == journal.BulkCancelled {
		err = fmt.Errorf("the run was cancelled by %s: %d of %s were not decided", inertLine(value(run.ChangedBy), maxCell),
			run.Counts[journal.BulkPlanned], counted(run.Total, "dead letter"))
	}
	return err
}

// watch looks at a run until its end, and returns it, or until ctx ends.
func (c *cli) watch(ctx context.Context, id string, line *progress) (*api.BulkRun, []byte, error) {
	heard := time.Now()
	r := &request{operation: operationOf("GET /bulk-runs/{id}"), path: "/bulk-runs/" + url.PathEscape(id)}
	for pause := firstLook; ; pause = min(pause*3/2, lastLook) {
		run, text, err := asked[api.BulkRun](ctx, c, r)
		switch {
		case err != nil && (ctx.Err() != nil || !mayPass(err)):
			return nil, nil, err
		case err != nil && time.Since(heard) > silence:
			return nil, nil, fmt.Errorf("%w; the run goes on: `%s` watches it again", err, runs("watch", id))
		case err == nil && run.State.Ended():
			return run, text, nil
		case err == nil:
			heard = time.Now()
			line.draw(runWords(run))
		}
		clock.Machine{}.Rest(ctx, pause)
	}
}

// mayPass reports whether asking again later can help: nobody answered, or the answer was that it cannot be known now.
func mayPass(err error) bool {
	refused, is := errors.AsType[*api.Refused](err)
	return !is || refused.Status >= http.StatusInternalServerError || refused.Status == http.StatusTooManyRequests
}

// runWords returns how far a run has come.
func runWords(r *api.BulkRun) string {
	planned := r.Counts[journal.BulkPlanned]
	words := fmt.Sprintf("%s: %d of %d, %d recovered, %d dead again, %d refused", r.State, r.Total-planned, r.Total,
		r.Counts[journal.BulkRecovered], r.Counts[journal.BulkDeadAgain], r.Counts[journal.BulkRefused])
	switch {
	case r.Hold != nil:
		words += ", waits (" + *r.Hold + ") and goes on by itself"
	case r.State == journal.BulkRunning && r.PerMinute > 0:
		words += ", " + (time.Duration(planned) * time.Minute / time.Duration(r.PerMinute)).Round(time.Second).String() + " left"
	}
	return inertLine(words, maxValue)
}
