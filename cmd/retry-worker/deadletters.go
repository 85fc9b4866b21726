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
		c.deadLettersListCommand(), c.deadLettersGroupsCommand(), about(c, &cobra.Command{
			Use:     "show ID",
			Short:   "Show one dead letter: what failed, who must act, whether a process waits, what was decided",
			Example: `  retry-worker dead-letters show 3fa85f64-5717-5562-b3fc-2c963f66afa6`,
			Args:    oneDeadLetter,
		}, "/dead-letters/", "", nil, c.printDeadLetter), c.deadLettersRetryCommand(), c.deadLettersDiscardCommand(),
		c.runsCommand())
}

// oneDeadLetter takes one argument, a dead letter's id.
var oneDeadLetter = takesID("dead letter", "retry-worker dead-letters list")

// registerChoice registers what chooses dead letters, in a list and in groups.
func registerChoice(flags *pflag.FlagSet) {
	flags.String("state", "open", listed(deadLetterStates))
	flags.String("policy", "", "only of this policy")
	flags.String("team", "", "only for this team to act on, such as faturamento")
	flags.String("reason", "", "only with this reason, such as DUPLICATE_CLAIM or MAX_RETRIES")
	flags.String("fingerprint", "", "only of this cause, as dead-letters groups prints it")
	flags.String("context", "", "only with that in the claim's context, such as \"operadora=Unimed SP\"")
	flags.String("search", "",
		"a dead letter's id, the beginning of a claim's (message's, job's), or words of the error")
}

// choice returns what the flags of registerChoice choose.
func choice(flags *pflag.FlagSet) (url.Values, error) {
	q := query(flags, "state", "policy", "team", "reason", "fingerprint", "context", "search")
	q["q"] = q["search"]
	q.Del("search")
	return q, errors.Join(oneOf("state", q.Get("state"), deadLetterStates), checkDeadReason("reason", q.Get("reason")))
}

// checkDeadReason says what is wrong with the reason of dead letters that a flag chooses.
func checkDeadReason(flag, reason string) error {
	if reason == "" || slices.Contains(decision.Reasons(), decision.Reason(reason)) {
		return nil
	}
	return fmt.Errorf("--%s is %q, expected a reason such as DUPLICATE_CLAIM or MAX_RETRIES", flag, reason)
}

// query returns the flags of these names as a request's parameters; one without a value is none to the API.
func query(flags *pflag.FlagSet, names ...string) url.Values {
	q := url.Values{}
	for _, name := range names {
		q.Set(name, flags.Lookup(name).Value.String())
	}
	return q
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

// wrongUse returns the errors among them, as wrong use; nil if there are none.
func wrongUse(errs ...error) error {
	if err := errors.Join(errs...); err != nil {
		return &usageError{err}
	}
	return nil
}

// lists completes a command that lists what ask asks for, page by page: an address of the API and its parameters.
func lists[T any](
	cmd *cobra.Command, table *table[T], none string, ask func(flags *pflag.FlagSet, args []string) (string, url.Values, error),
) *cobra.Command {
	c := table.c
	c.page.register(cmd.Flags())
	c.server.register(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		path, q, err := ask(cmd.Flags(), args)
		if c.page.limit < 1 || c.page.limit > deadletter.MostItems {
			err = errors.Join(err, fmt.Errorf("--limit is %d, expected 1 to %d", c.page.limit, deadletter.MostItems))
		}
		if err := wrongUse(err); err != nil {
			return err
		}
		return list(cmd.Context(), path, q, table, none)
	}
	return cmd
}

// list asks for a list, page by page, and prints it. Below a table it says that there is nothing (none), or that more
// follow.
func list[T any](ctx context.Context, path string, q url.Values, table *table[T], none string) error {
	c := table.c
	q.Set("limit", strconv.Itoa(c.page.limit))
	for at := c.page.cursor; ; {
		q.Set("cursor", at)
		page, body, err := asked[api.Page[T]](ctx, c, path+"?"+q.Encode(), nil)
		if err != nil {
			return err
		}
		if err := c.print(body, func() { table.print(page.Items) }); err != nil {
			return err
		}
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

func (c *cli) deadLettersListCommand() *cobra.Command {
	var given period
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List dead letters: the newest first, or by deadline, amount or age",
		Long: "Lists dead letters, the newest first or as --sort says, in a table cut to the terminal (COLUMNS says how wide it is\n" +
			"where there is none). -o json prints the API's answer, a line for each page.\n" +
			"An age is such as 90m, 2h, 3d or 1w, by this machine's clock; a date is midnight UTC of that day.",
		Example: `  retry-worker dead-letters list
  retry-worker dead-letters list --team cadastro --search "carteira"
  retry-worker dead-letters list --sort deadline --limit 20
  retry-worker dead-letters list --older-than 3d --team faturamento
  retry-worker dead-letters list --state all --all -o json | jq -r '.items[].id'`,
	}
	registerChoice(cmd.Flags())
	given.register(cmd.Flags())
	cmd.Flags().String("sort", "", "deadline (then amount, then age), amount or age; none last (default the newest first)")
	ask := func(flags *pflag.FlagSet, _ []string) (string, url.Values, error) {
		q, wrong := choice(flags)
		since, until, err := given.bounds("", time.Now())
		c.page.moves = given.moves()
		if c.page.cursor != "" && c.page.moves {
			err = errors.Join(err, errors.New("--cursor goes on with the very same list, and an age means another one each "+
				"moment, expected --since and --until with it, or --all without it"))
		}
		q["sort"], q["since"], q["until"] = query(flags, "sort")["sort"], []string{since}, []string{until}
		if q.Get("sort") != "" {
			err = errors.Join(err, oneOf("sort", q.Get("sort"), deadletter.Sorts()))
		}
		return "/dead-letters", q, errors.Join(wrong, err)
	}
	const head = "ID, SUBJECT, REASON, TEAM, ERROR, STATE, SINCE, TRIES, DEADLINE, CONTEXT"
	table := tableOf(c, head, func(d *api.DeadLetter) []any {
		return []any{d.ID, d.Subject.ID, d.Reason, d.ResponsibleTeam, d.Error, d.State, minute(d.CreatedAt),
			fmt.Sprintf("%d/%d", d.RetryCount, d.MaxRetries), minute(value(d.Deadline)), contextLine(d.Context)}
	})
	return lists(cmd, table, "No dead letter found.", ask)
}

func (c *cli) deadLettersGroupsCommand() *cobra.Command {
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
	}
	registerChoice(cmd.Flags())
	return lists(cmd, c.groupTable(), "No dead letter found.",
		func(flags *pflag.FlagSet, _ []string) (string, url.Values, error) {
			q, err := choice(flags)
			return "/dead-letters/groups", q, err
		})
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

// contextLine is what is known of a claim, in one line.
func contextLine(of decision.Context) string {
	parts := make([]string, len(of))
	for i := range of {
		parts[i] = of[i].Variable + "=" + of[i].Value
	}
	return strings.Join(parts, ", ")
}
