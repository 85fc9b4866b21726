package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/pflag"

	"retry-worker/internal/console"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// bulkFlags say which many, and how.
type bulkFlags struct {
	filters           []string
	perMinute         int64
	plan, yes, detach bool
}

// bulkOnly are the flags that only many at once have, but for --filter.
var bulkOnly = []string{"plan", "yes", "detach", "per-minute"}

func (f *bulkFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.filters, "filter", nil, "all that fits instead of one: `key=value`, may be given again; or all")
	flags.BoolVar(&f.plan, "plan", false, "show what would be done, and do nothing (role viewer)")
	flags.BoolVar(&f.yes, "yes", false, "do not ask before it starts; needed where there is no terminal")
	flags.BoolVar(&f.detach, "detach", false, "start it and do not follow it")
	flags.Int64Var(&f.perMinute, "per-minute", deadletter.DefaultPerMinute, fmt.Sprintf("how many are decided in a minute at most, 1 to %d", journal.MaxPerMinute))
}

// bulkRequest is the API's, of a plan (without reason and token) and of a start.
type bulkRequest struct {
	Action     journal.BulkAction `json:"action"`
	Filter     map[string]string  `json:"filter"`
	ForceRetry bool               `json:"forceRetry"`
	Fresh      bool               `json:"fresh"`
	When       string             `json:"when,omitempty"`
	PerMinute  int64              `json:"perMinute"`
	Reason     string             `json:"reason,omitempty"`
	Token      string             `json:"token,omitempty"`
}

// request that the flags ask for; its errors are wrong use.
func (f *verdictFlags) request(now time.Time) (*bulkRequest, error) {
	filter, err := parseFilter(f.filters, now)
	wrong := []error{err, f.check()}
	if f.perMinute < 1 || f.perMinute > journal.MaxPerMinute {
		wrong = append(wrong, fmt.Errorf("--per-minute is %d, expected 1 to %d", f.perMinute, journal.MaxPerMinute))
	}
	if f.plan && (f.yes || f.detach) {
		wrong = append(wrong, errors.New("--plan does nothing, expected neither --yes nor --detach with it"))
	}
	if !f.plan {
		wrong = append(wrong, checkReason(f.reason))
	}
	return &bulkRequest{Action: f.action, Filter: filter, ForceRetry: f.force, Fresh: f.fresh, When: f.when, PerMinute: f.perMinute}, wrongUse(wrong...)
}

// bulk plans, shows the plan, asks, starts and follows.
func (c *cli) bulk(ctx context.Context, f *verdictFlags, now time.Time) error {
	request, err := f.request(now)
	if err != nil {
		return err
	}
	if !f.plan && !f.yes && !c.interactive() {
		return &usageError{errors.New("--yes is missing: there is no terminal to ask on; --plan shows what would be done")}
	}
	api, err := f.client()
	if err != nil {
		return err
	}
	plan, text, err := asked[console.BulkPlan](ctx, api, "/bulk-runs/plan", request)
	if err != nil {
		return err
	}
	if c.json() {
		fmt.Fprintf(c.out, "%s\n", text)
	} else {
		c.printPlan(plan)
	}
	switch {
	case f.plan && !c.json():
		fmt.Fprintln(c.out, "\nThis was a plan: nothing was changed.")
		return nil
	case f.plan:
		return nil
	case plan.Total == 0:
		return errors.New("nothing was started: no open dead letter fits the filter")
	case plan.Ready == 0:
		return errors.New("nothing was started: all of them would be refused, for what the plan says")
	case !f.yes && !c.agreed(plan):
		return errors.New("nothing was started")
	}
	request.Reason, request.Token = f.reason, plan.Token
	return c.startBulk(ctx, api, request, f.detach)
}

// startBulk starts what was planned, and follows it.
func (c *cli) startBulk(ctx context.Context, api *apiClient, request *bulkRequest, detach bool) error {
	watch, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM) // before it begins, so that its id is not lost
	defer stop()
	run, text, err := asked[console.BulkRun](ctx, api, "/bulk-runs", request)
	if err != nil {
		return err
	}
	switch {
	case detach && c.json():
		fmt.Fprintf(c.out, "%s\n", text)
		return nil
	case detach:
		fmt.Fprintf(c.out, "\nBulk run %s has started; `%s` follows it.\n", inertLine(run.ID, maxCell), runsCommandLine("watch", run.ID))
		return nil
	case !c.json():
		fmt.Fprintf(c.out, "\nBulk run %s has started.\n", inertLine(run.ID, maxCell))
	}
	return c.follow(watch, api, run.ID, seenRun{run, text})
}

// runsCommandLine is how a run is watched, cancelled or shown.
func runsCommandLine(verb, id string) string {
	return "retry-worker dead-letters runs " + verb + " " + inertLine(id, maxCell)
}

// interactive tells whether somebody can be asked.
func (c *cli) interactive() bool {
	if c.asks {
		return true
	}
	in, isIn := c.in.(*os.File)
	out, isOut := c.errOut.(*os.File)
	return isIn && isOut && isatty.IsTerminal(in.Fd()) && isatty.IsTerminal(out.Fd())
}

// agreed asks whether the plan is to be carried out. What cannot be taken back takes the number of those it is about.
func (c *cli) agreed(p *console.BulkPlan) bool {
	wanted := "y"
	if p.Action == journal.BulkDiscard {
		wanted = strconv.FormatInt(p.Ready, 10)
		fmt.Fprintf(c.errOut, "\nLet %s go for good? Type %s to do it: ", deadLetters(p.Ready), wanted)
	} else {
		fmt.Fprintf(c.errOut, "\nSend %s again? [y/N] ", deadLetters(p.Ready))
	}
	answer, err := bufio.NewReader(c.in).ReadString('\n')
	answer = strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (answer == wanted || wanted == "y" && answer == "yes")
}

// deadLetters are so many of them.
func deadLetters(n int64) string {
	if n == 1 {
		return "1 dead letter"
	}
	return fmt.Sprintf("%d dead letters", n)
}
