package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retry-worker/internal/api"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// deadLetterStates that a list can be asked for.
var deadLetterStates = []string{"open", "reprocessing", "discarded", "recovered", "all"}

func (c *cli) deadLettersCommand() *cobra.Command {
	return group("dead-letters", "List what was given up, show one, send it again or let it go: one, or many at once",
		speaksToAPI+"Roles: viewer lists, shows and plans; operator retries and discards too, at the limit\n"+
			"once (--force), and many at once of the teams that the token names; admin all of it, and --fresh.\n"+
			"Exit 0 when it is done, 1 when the API refuses or does not answer, 2 for wrong use.",
		c.deadLettersListCommand(), c.deadLettersGroupsCommand(), c.deadLettersShowCommand(), c.deadLettersRetryCommand(),
		c.deadLettersDiscardCommand(),
		c.runsCommand())
}

func (c *cli) deadLettersShowCommand() *cobra.Command {
	return about(c, &cobra.Command{
		Use:     "show ID",
		Short:   "Show one dead letter: what failed, who must act, whether a process waits, what was decided",
		Example: `  retry-worker dead-letters show 3fa85f64-5717-5562-b3fc-2c963f66afa6`,
		Args:    oneDeadLetter,
	}, "/dead-letters/", "", nil, c.printDeadLetter)
}

// oneDeadLetter takes one argument, a dead letter's id.
var oneDeadLetter = oneID("dead letter", "retry-worker dead-letters list", "3fa85f64-5717-5562-b3fc-2c963f66afa6")

// choiceFlags choose dead letters, in a list and in groups.
type choiceFlags struct{ state, policy, team, reason, fingerprint, context, search string }

func (f *choiceFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.state, "state", "open", strings.Join(deadLetterStates, ", "))
	flags.StringVar(&f.policy, "policy", "", "only of this policy")
	flags.StringVar(&f.team, "team", "", "only for this team to act on, such as faturamento")
	flags.StringVar(&f.reason, "reason", "", "only with this reason, such as DUPLICATE_CLAIM or MAX_RETRIES")
	flags.StringVar(&f.fingerprint, "fingerprint", "", "only of this cause, as dead-letters groups prints it")
	flags.StringVar(&f.context, "context", "", "only with that in the claim's context, such as \"operadora=Unimed SP\"")
	flags.StringVar(&f.search, "search", "",
		"a dead letter's id, the beginning of a claim's (message's, job's), or words of the error")
}

// check says what is wrong with them.
func (f *choiceFlags) check() error {
	var wrong []error
	if !slices.Contains(deadLetterStates, f.state) {
		wrong = append(wrong, fmt.Errorf("--state is %q, expected one of %s", f.state, strings.Join(deadLetterStates, ", ")))
	}
	if f.reason != "" && !slices.Contains(decision.Reasons(), decision.Reason(f.reason)) {
		wrong = append(wrong, fmt.Errorf("--reason is %q, expected a reason such as DUPLICATE_CLAIM or MAX_RETRIES",
			f.reason))
	}
	return errors.Join(wrong...)
}

// none reports whether nothing but the state chooses.
func (f *choiceFlags) none() bool {
	return f.policy+f.team+f.reason+f.fingerprint+f.context+f.search == ""
}

// query holds what was given; a parameter without a value is none to the API.
func (f *choiceFlags) query() url.Values {
	return url.Values{"state": {f.state}, "policy": {f.policy}, "team": {f.team}, "reason": {f.reason},
		"fingerprint": {f.fingerprint}, "context": {f.context}, "q": {f.search}}
}

// pageFlags say how much of a list is printed.
type pageFlags struct {
	cursor string
	limit  int
	all    bool
	moves  bool // the list is another one each moment: no cursor goes on with it
}

func (f *pageFlags) register(flags *pflag.FlagSet) {
	flags.IntVar(&f.limit, "limit", deadletter.DefaultItems,
		fmt.Sprintf("how many in a page, 1 to %d", deadletter.MostItems))
	flags.StringVar(&f.cursor, "cursor", "", "go on behind a page: what it gave as next")
	flags.BoolVar(&f.all, "all", false, "every page")
}

func (f *pageFlags) check() error {
	if f.limit < 1 || f.limit > deadletter.MostItems {
		return fmt.Errorf("--limit is %d, expected 1 to %d", f.limit, deadletter.MostItems)
	}
	return nil
}

// wrongUse returns the errors among them, as wrong use; nil if there are none.
func wrongUse(errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return &usageError{err}
	}
	return nil
}

// list asks for a list, page by page, and prints it. Below a table it says that there is nothing (none), or that more
// follow.
func list[T any](ctx context.Context, c *cli, path string, q url.Values, table *table[T], none string) error {
	q.Set("limit", strconv.Itoa(c.page.limit))
	for at := c.page.cursor; ; {
		q.Set("cursor", at)
		page, body, err := asked[api.Page[T]](ctx, c, path+"?"+q.Encode(), nil)
		if err != nil {
			return err
		}
		c.printAnswer(body, func() { table.print(page.Items) })
		if page.Next == nil || !c.page.all || c.out.failed() { // nobody reads on where it cannot be written
			c.endList(table.rows == 0, none, page.Next)
			return nil
		}
		if *page.Next == at {
			return fmt.Errorf("%s gives the same page again and again; is it a retry-worker?", c.server.made.Base)
		}
		at = *page.Next
	}
}

// endList says, below a table, that there is nothing, or that it has not all: a search may find nothing before it ends a page.
func (c *cli) endList(empty bool, none string, next *string) {
	switch {
	case c.json():
	case next == nil && empty:
		fmt.Fprintln(c.out, none)
	case next == nil:
	case c.page.moves:
		fmt.Fprintln(c.out, "\nMore follow: --all lists them all.")
	default:
		fmt.Fprintf(c.out, "\nMore follow: --all lists them all, --cursor %s goes on.\n", inertLine(*next, 200))
	}
}

type listFlags struct {
	choiceFlags
	period period
	sort   string
}

func (c *cli) deadLettersListCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List dead letters: the newest first, or by deadline, amount or age",
		Long: "Lists dead letters, the newest first or as --sort says, in a table that fits the terminal (COLUMNS says how wide it is\n" +
			"where there is none). -o json prints the API's answer, a line for each page.\n" +
			"An age is such as 90m, 2h, 3d or 1w, by this machine's clock; a date is midnight UTC of that day.",
		Example: `  retry-worker dead-letters list
  retry-worker dead-letters list --team cadastro --search "carteira"
  retry-worker dead-letters list --sort deadline --limit 20
  retry-worker dead-letters list --older-than 3d --team faturamento
  retry-worker dead-letters list --state all --all -o json | jq -r '.items[].id'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.deadLettersList(cmd.Context(), &f, time.Now()) },
	}
	flags := cmd.Flags()
	f.choiceFlags.register(flags)
	f.period.register(flags)
	flags.StringVar(&f.sort, "sort", "", "deadline (then amount, then age), amount or age; none last (default the newest first)")
	c.page.register(flags)
	c.server.register(flags)
	return cmd
}

func (c *cli) deadLettersList(ctx context.Context, f *listFlags, now time.Time) error {
	since, until, err := f.period.bounds("", now)
	c.page.moves = f.period.moves()
	if c.page.cursor != "" && c.page.moves {
		err = errors.Join(err, errors.New("--cursor goes on with the very same list, and an age means another one each "+
			"moment, expected --since and --until with it, or --all without it"))
	}
	if f.sort != "" && !slices.Contains(deadletter.Sorts(), f.sort) {
		err = errors.Join(err, fmt.Errorf("--sort is %q, expected one of %s", f.sort, strings.Join(deadletter.Sorts(), ", ")))
	}
	if err := wrongUse(f.check(), c.page.check(), err); err != nil {
		return err
	}
	q := f.query()
	q.Set("sort", f.sort)
	q.Set("since", since)
	q.Set("until", until)
	none := "No dead letter found."
	if f.state != "all" && f.none() && since+until == "" {
		none = "No dead letter is " + f.state + "."
	}
	return list(ctx, c, "/dead-letters", q, c.deadLetterTable(), none)
}

func (c *cli) deadLettersGroupsCommand() *cobra.Command {
	var f choiceFlags
	cmd := &cobra.Command{
		Use:   "groups",
		Short: "List dead letters by their cause, the one with the most first",
		Long: "Lists the causes that dead letters died of, the one with the most first: those with the same policy, " +
			"reason and error\n" +
			"(without numbers, ids and dates) are one group. Its fingerprint chooses them: `retry-worker dead-letters list\n" +
			"--fingerprint …` lists them, `retry-worker dead-letters retry --filter fingerprint=…` sends all of them again.\n" +
			"-o json prints the API's answer, a line for each page.",
		Example: `  retry-worker dead-letters groups
  retry-worker dead-letters groups --team ti -o json | jq -r '.items[] | [.count, .fingerprint, .pattern] | @tsv'
  retry-worker dead-letters retry --filter fingerprint=0a1b2c3d4e5f6071 --plan`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.deadLettersGroups(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	f.register(flags)
	c.page.register(flags)
	c.server.register(flags)
	return cmd
}

func (c *cli) deadLettersGroups(ctx context.Context, f *choiceFlags) error {
	if err := wrongUse(f.check(), c.page.check()); err != nil {
		return err
	}
	return list(ctx, c, "/dead-letters/groups", f.query(), c.groupTable(), "No dead letter found.")
}

func (c *cli) groupTable() *table[api.DeadLetterGroup] {
	return tableOf(c, "FINGERPRINT, COUNT, REASON, ERROR, TEAMS, POLICY, LAST, FIRST", func(g *api.DeadLetterGroup) []any {
		return []any{cmp.Or(value(g.Fingerprint), "-"), g.Count, g.Reason, g.Pattern, listed(g.Teams), g.Policy,
			minute(g.LastSeen), minute(g.FirstSeen)}
	})
}

// printDeadLetter prints one, a line for each thing that is known of it.
func (c *cli) printDeadLetter(d *api.DeadLetter) {
	line, done := c.sheet()
	defer done()
	line("dead letter", d.ID)
	line("state", d.State)
	line("subject", d.Subject.ID+" ("+d.Subject.Policy+ofTenant(d.Subject.Tenant)+")")
	line("outcome", string(d.Outcome)+" ("+string(d.Reason)+")")
	line("to act", d.ResponsibleTeam)
	line("error", d.Error)
	line("class", classWords(d.ErrorClassification, d.MatchedRule))
	line("retries", fmt.Sprintf("%d of %d%s", d.RetryCount, d.MaxRetries, limitWords(d)))
	line("first failure", value(d.FirstFailure))
	line("deadline", deadlineWords(d))
	line("given up", d.CreatedAt)
	line("process", processWords(d))
	if r := d.Review; r != nil {
		line("decided", r.Decision+forced(r.ForceRetry, r.Fresh)+" by "+r.By+" at "+r.At)
		line("bulk run", value(d.BulkRun))
		line("because", r.Reason)
		line("next retry", value(r.NextRetryTime))
		line("new deadline", value(r.Deadline))
		line("delivery", deliveryWords[d.Delivery])
	}
}

func ofTenant(tenant string) string {
	if tenant == journal.DefaultTenant {
		return ""
	}
	return ", tenant " + tenant
}

// value returns a text that may not be there.
func value(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// classWords returns a class and the rule that gave it.
func classWords(class, rule *string) string {
	if class != nil && rule != nil {
		return *class + " (" + *rule + ")"
	}
	return value(class)
}

func limitWords(d *api.DeadLetter) string {
	if d.State == journal.DeadLetterOpen && d.RetryCount >= d.MaxRetries {
		return " (a retry takes --force)"
	}
	return ""
}

// deadlineWords returns the claim's deadline, and that what a person sends again after it misses it (R29).
func deadlineWords(d *api.DeadLetter) string {
	if d.State == journal.DeadLetterOpen && d.ForceNeeded && d.RetryCount < d.MaxRetries {
		return value(d.Deadline) + " (missed: a retry takes --force, or a new --deadline)"
	}
	if d.Review != nil && d.Review.Deadline == nil {
		deadline, known := decision.ParseInstant(value(d.Deadline))
		if next, ok := decision.ParseInstant(value(d.Review.NextRetryTime)); known && ok && next.After(deadline) {
			return *d.Deadline + " (missed: it goes all the same, after the deadline)"
		}
	}
	return value(d.Deadline)
}

// forced says that limits are overridden.
func forced(force, fresh bool) string {
	switch {
	case fresh:
		return ", forced, from the beginning"
	case force:
		return ", forced"
	default:
		return ""
	}
}

func processWords(d *api.DeadLetter) string {
	switch d.Process {
	case deadletter.Waiting:
		return "waits (instance " + strconv.FormatInt(d.ProcessInstanceKey, 10) + ")"
	case deadletter.Expected:
		return "has not come to its review task yet (instance " + strconv.FormatInt(d.ProcessInstanceKey, 10) + ")"
	case deadletter.Nobody:
		return "nobody waits: it can be discarded; start the process again to send it again"
	default:
		return ""
	}
}

var deliveryWords = map[string]string{
	"pending": "the process gets it as soon as the engine takes it",
	"taken":   "the process took it",
	"nobody":  "no process waits for it",
}

func (c *cli) deadLetterTable() *table[api.DeadLetter] {
	const head = "ID, SUBJECT, REASON, TEAM, ERROR, STATE, SINCE, TRIES, DEADLINE, CONTEXT"
	return tableOf(c, head, func(d *api.DeadLetter) []any {
		return []any{d.ID, d.Subject.ID, d.Reason, d.ResponsibleTeam, d.Error, d.State, minute(d.CreatedAt),
			fmt.Sprintf("%d/%d", d.RetryCount, d.MaxRetries), minute(value(d.Deadline)), contextLine(d.Context)}
	})
}

// contextLine is what is known of a claim, in one line.
func contextLine(of decision.Context) string {
	parts := make([]string, len(of))
	for i := range of {
		parts[i] = of[i].Variable + "=" + of[i].Value
	}
	return strings.Join(parts, ", ")
}
