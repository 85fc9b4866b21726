package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"retry-worker/internal/api"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// verdictFlags say what is done with one dead letter, or with many.
type verdictFlags struct {
	action       journal.BulkAction
	reason, when string
	deadline     string
	force, fresh bool

	// Which many, and how.
	filters           []string
	perMinute         int64
	plan, yes, detach bool
}

// bulkOnly are the flags that only many at once have, but for --filter.
var bulkOnly = []string{"plan", "yes", "detach", "per-minute"}

const bulkHelp = "With --filter it decides on all that fit, however many there are (role admin; or operator, with a team\n" +
	"that the token names in the filter). It shows first what would be done (--plan ends there) and asks (--yes\n" +
	"does not); then a bulk run decides them one by one, so many a minute, and is followed to its end. Ctrl-C\n" +
	"ends the following, not the run:\n" +
	"`retry-worker dead-letters runs` shows, pauses and cancels it. Filters, all of which must fit: policy,\n" +
	"team, reason, fingerprint (of `retry-worker dead-letters groups`), ids (of dead letters, with commas),\n" +
	"context (such as operadora=Unimed SP), q (words of the error), older-than and younger-than (an age such as\n" +
	"2h or 3d), since and until (a date or RFC 3339); `--filter all` is every open one. What is refused stays\n" +
	"as it is: the run ends well, and says how many. -o json prints the plan, then the run at its end.\n" +
	"Exit 1 where nothing was started, or the run was cancelled."

func (c *cli) deadLettersRetryCommand() *cobra.Command {
	cmd, f := c.verdictCommand(journal.BulkRetry, "Send it again, or all that a filter chooses: the process that waits goes on",
		"Records the decision, under the name of the token, and prints the dead letter as it stands then. The "+
			"process gets it as\n"+
			"soon as the engine takes it. At the limit it takes --force for one more try, and --fresh too for the whole "+
			"ladder again;\nafter its deadline --force, or a new --deadline.\n\n",
		`  retry-worker dead-letters retry 3fa85f64-5717-5562-b3fc-2c963f66afa6 --reason "cadastro corrigido"
  retry-worker dead-letters retry 3fa85f64-5717-5562-b3fc-2c963f66afa6 --reason "portal voltou" --force --when now
  retry-worker dead-letters retry --filter team=ti --filter older-than=2h --plan
  retry-worker dead-letters retry --filter fingerprint=0a1b2c3d4e5f6071 --reason "senha corrigida" --per-minute 120`)
	flags := cmd.Flags()
	flags.BoolVar(&f.force, "force", false, "one more try at or above the limit, or after the deadline")
	flags.StringVar(&f.deadline, "deadline", "", "a new submissionDeadline of the one, `RFC3339`; none leaves it as it is")
	flags.BoolVar(&f.fresh, "fresh", false, "begin the whole ladder again; takes --force (role admin)")
	flags.StringVar(&f.when, "when", "backoff", "backoff (after the policy's delay) or now")
	return cmd
}

func (c *cli) deadLettersDiscardCommand() *cobra.Command {
	cmd, _ := c.verdictCommand(journal.BulkDiscard, "Let it go, or all that a filter chooses: the process that waits ends",
		"Records the decision, under the name of the token, and prints the dead letter as it stands then. The "+
			"process that waits\n"+
			"ends as soon as the engine takes it.\n\n",
		`  retry-worker dead-letters discard 3fa85f64-5717-5562-b3fc-2c963f66afa6 --reason "paga à vista"
  retry-worker dead-letters discard --filter policy=job-queue --filter older-than=30d --plan`)
	return cmd
}

// verdictCommand returns a command that decides on one dead letter or many, and its flags.
func (c *cli) verdictCommand(action journal.BulkAction, short, long, example string) (*cobra.Command, *verdictFlags) {
	f := &verdictFlags{action: action}
	cmd := &cobra.Command{
		Use:   fmt.Sprintf("%s ID | %s --filter key=value …", action, action),
		Short: short, Long: long + bulkHelp, Example: example,
		Args: f.args,
		RunE: func(cmd *cobra.Command, args []string) error { return c.decideOn(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.reason, "reason", "", "why, in your words; kept in the audit")
	flags.StringArrayVar(&f.filters, "filter", nil,
		"all that fits instead of one: `key=value`, may be given again; or all")
	flags.BoolVar(&f.plan, "plan", false, "show what would be done, and do nothing (role viewer)")
	flags.BoolVar(&f.yes, "yes", false, "do not ask before it starts; needed where there is no terminal")
	flags.BoolVar(&f.detach, "detach", false, "start it and do not follow it")
	flags.Int64Var(&f.perMinute, "per-minute", deadletter.DefaultPerMinute,
		fmt.Sprintf("how many are decided in a minute at most, 1 to %d", journal.MaxPerMinute))
	c.server.register(flags)
	return cmd, f
}

// args of the command: one dead letter's id, or none where filters choose.
func (f *verdictFlags) args(cmd *cobra.Command, args []string) error {
	filtered := cmd.Flags().Changed("filter")
	switch {
	case filtered && len(args) > 0:
		return fmt.Errorf("an id and --filter are given, expected one of them; `%s --help` says more", cmd.CommandPath())
	case filtered:
		return nil
	case len(args) == 0:
		return fmt.Errorf("nothing is chosen, expected the id of one dead letter, or --filter key=value for many "+
			"(--filter all for every open one); `%s --help` says more", cmd.CommandPath())
	}
	for _, name := range bulkOnly {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is for many at once, expected it with --filter only; `%s --help` says more", name,
				cmd.CommandPath())
		}
	}
	return oneDeadLetter(cmd, args)
}

func (c *cli) decideOn(cmd *cobra.Command, f *verdictFlags, args []string) error {
	if len(args) == 0 {
		return c.bulk(cmd.Context(), f, time.Now())
	}
	if err := wrongUse(checkReason(f.reason), f.check()); err != nil {
		return err
	}
	body := f.manner()
	body["reason"] = f.reason
	path := "/dead-letters/" + url.PathEscape(args[0]) + "/" + string(f.action)
	return show(cmd.Context(), c, path, body, c.printDeadLetter)
}

// manner returns how it is to be retried, as the API takes it.
func (f *verdictFlags) manner() map[string]any {
	if f.action != journal.BulkRetry {
		return map[string]any{}
	}
	manner := map[string]any{"forceRetry": f.force, "fresh": f.fresh, "when": f.when}
	if f.deadline != "" {
		manner["submissionDeadline"] = f.deadline
	}
	return manner
}

// check says what is wrong with how it is to be retried.
func (f *verdictFlags) check() error {
	var wrong []error
	if f.action == journal.BulkRetry && f.when != string(deadletter.Backoff) && f.when != string(deadletter.Now) {
		wrong = append(wrong, fmt.Errorf("--when is %q, expected backoff or now", f.when))
	}
	if f.fresh && !f.force {
		wrong = append(wrong, errors.New("--fresh begins the whole ladder again, expected --force with it"))
	}
	if f.deadline != "" {
		_, err := instantFlag("deadline", f.deadline)
		wrong = append(wrong, err)
	}
	return errors.Join(wrong...)
}

// checkReason says what is wrong with a person's words.
func checkReason(reason string) error {
	switch n := utf8.RuneCountInString(strings.TrimSpace(reason)); {
	case n == 0:
		return errors.New("--reason is missing, expected why, in a few words: it is kept in the audit")
	case n > deadletter.MaxReason:
		return fmt.Errorf("--reason has %d characters, expected at most %d", n, deadletter.MaxReason)
	}
	return nil
}

// request returns the command that the flags ask for, as the API takes it; its errors are wrong use.
func (f *verdictFlags) request(now time.Time) (map[string]any, error) {
	filter, err := parseFilter(f.filters, now)
	wrong := []error{err, f.check()}
	if f.perMinute < 1 || f.perMinute > journal.MaxPerMinute {
		wrong = append(wrong, fmt.Errorf("--per-minute is %d, expected 1 to %d", f.perMinute, journal.MaxPerMinute))
	}
	if f.deadline != "" {
		wrong = append(wrong, errors.New("--deadline is for one, expected it without --filter"))
	}
	if f.plan && (f.yes || f.detach) {
		wrong = append(wrong, errors.New("--plan does nothing, expected neither --yes nor --detach with it"))
	}
	if !f.plan {
		wrong = append(wrong, checkReason(f.reason))
	}
	request := f.manner()
	request["action"], request["filter"], request["perMinute"] = f.action, filter, f.perMinute
	return request, wrongUse(wrong...)
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
	plan, text, err := asked[api.BulkPlan](ctx, c, "/bulk-runs/plan", request)
	if err != nil {
		return err
	}
	err = c.print(text, func() { c.printPlan(plan) })
	switch {
	case err != nil:
		return err
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
	request["reason"], request["token"] = f.reason, plan.Token
	return c.startBulk(ctx, request, f.detach)
}

// startBulk starts what was planned, and follows it.
func (c *cli) startBulk(ctx context.Context, request map[string]any, detach bool) error {
	// Before it begins, so that its id is not lost.
	watch, stop := untilSignal(ctx)
	defer stop()
	run, text, err := asked[api.BulkRun](ctx, c, "/bulk-runs", request)
	if err != nil {
		return err
	}
	switch {
	case detach:
		return c.print(text, func() {
			fmt.Fprintf(c.out, "\nBulk run %s has started; `%s` follows it.\n", inertLine(run.ID, maxCell),
				runsCommandLine("watch", run.ID))
		})
	case !c.json():
		fmt.Fprintf(c.out, "\nBulk run %s has started.\n", inertLine(run.ID, maxCell))
	}
	return c.follow(watch, run.ID, seenRun{run, text})
}

// runsCommandLine returns how a run is watched, cancelled or shown.
func runsCommandLine(verb, id string) string {
	return "retry-worker dead-letters runs " + verb + " " + inertLine(id, maxCell)
}

// interactive reports whether somebody can be asked.
func (c *cli) interactive() bool {
	if c.asks {
		return true
	}
	in, isIn := c.in.(*os.File)
	out, isOut := c.errOut.(*os.File)
	return isIn && isOut && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// agreed asks whether the plan is to be carried out. What cannot be taken back takes the number of those it is about.
func (c *cli) agreed(p *api.BulkPlan) bool {
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

// deadLetters returns so many of them.
func deadLetters(n int64) string {
	return counted(n, "dead letter", "dead letters")
}

// printPlan says what would be done.
func (c *cli) printPlan(p *api.BulkPlan) {
	line, done := c.sheet()
	line("would be", planWords(p))
	line("filter", filterWords(&p.Filter))
	if p.Ready > 0 {
		line("pace", fmt.Sprintf("%d a minute: takes about %s", p.PerMinute, time.Duration(p.Seconds)*time.Second))
	}
	if p.Total > 0 {
		line("given up", minute(value(p.Oldest))+" to "+minute(value(p.Newest))+" UTC")
	}
	done()
	if len(p.Tallies) > 0 {
		fmt.Fprintf(c.out, "\nThese %d:\n", p.Ready)
		tableOf(c, "COUNT, REASON, TEAM, POLICY", func(t *deadletter.ReadyCount) []any {
			return []any{t.Count, t.Reason, t.Team, t.Policy}
		}).print(p.Tallies)
	}
	if len(p.Refused) > 0 {
		fmt.Fprintf(c.out, "\nThese %d would be refused, and stay as they are:\n", p.Total-p.Ready)
		table := tableOf(c, "COUNT, CODE, WHY", func(r *deadletter.RefusedCount) []any {
			return []any{r.Count, r.Code, inFlags.Replace(r.Message)}
		})
		table.most = maxText
		table.print(p.Refused)
	}
	if len(p.Causes) > 0 {
		cut := ""
		if len(p.Causes) >= deadletter.MostCauses {
			cut = fmt.Sprintf(", the first %d", deadletter.MostCauses)
		}
		fmt.Fprintf(c.out, "\nTheir causes%s:\n", cut)
		c.groupTable().print(p.Causes)
	}
}

// planWords returns what would be done with how many.
func planWords(p *api.BulkPlan) string {
	if p.Total == 0 {
		return "nothing: no open dead letter fits"
	}
	of := ""
	if p.Ready != p.Total {
		of = fmt.Sprintf(" of %d", p.Total)
	}
	return actionWords(&p.BulkCommand) + ": " + strconv.FormatInt(p.Ready, 10) + of
}

// actionWords returns what is done.
func actionWords(b *api.BulkCommand) string {
	switch {
	case b.Action == journal.BulkDiscard:
		return "let go"
	case b.When == deadletter.Now:
		return "sent again at once" + forced(b.ForceRetry, b.Fresh)
	default:
		return "sent again, after the policy's backoff" + forced(b.ForceRetry, b.Fresh)
	}
}

// filterWords returns what chooses, as --filter takes it.
func filterWords(f *api.BulkFilter) string {
	chosen := map[string]*string{}
	text, err := json.Marshal(f)
	if err = errors.Join(err, json.Unmarshal(text, &chosen)); err != nil {
		return err.Error() // cannot be: it holds texts only
	}
	var words []string
	for _, key := range slices.Sorted(maps.Keys(chosen)) {
		if chosen[key] != nil {
			words = append(words, key+"="+*chosen[key])
		}
	}
	if words == nil {
		return "all that are open"
	}
	return strings.Join(words, ", ")
}
