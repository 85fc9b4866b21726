package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"retry-worker/internal/console"
	"retry-worker/internal/decision"
	"retry-worker/internal/review"
)

// deadLetterStates that a list can be asked for.
var deadLetterStates = []string{"open", "reprocessing", "discarded", "recovered", "all"}

func (c *cli) deadLettersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead-letters",
		Short: "List what was given up, show one, send it again or let it go",
		Long: "Speaks to the API of a running worker. Where that has a tokens file, it shows the token in " + tokenVariable + ", or the\n" +
			"one in --token-file. Roles: viewer lists and shows; operator retries and discards too; admin also with --force.\n" +
			"Exit 0 when it is done, 1 when the API refuses or does not answer, 2 for wrong use.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q; `%s --help` lists the commands", args[0], cmd.CommandPath())
			}
			return fmt.Errorf("expected a command behind dead-letters: list, show, retry or discard; `%s --help` says more", cmd.CommandPath())
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(c.deadLettersListCommand(), c.deadLettersShowCommand(), c.deadLettersRetryCommand(), c.deadLettersDiscardCommand())
	return cmd
}

type listFlags struct {
	serverFlags
	state, policy, team, reason, search, cursor string
	limit                                       int
	all                                         bool
}

func (c *cli) deadLettersListCommand() *cobra.Command {
	var f listFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List dead letters, the newest first",
		Long: "Lists dead letters, the newest first, in a table that fits the terminal (COLUMNS says how wide it is where there is\n" +
			"none). -o json prints the API's answer, a line for each page.",
		Example: `  retry-worker dead-letters list
  retry-worker dead-letters list --team cadastro --search "carteira"
  retry-worker dead-letters list --state all --all -o json | jq -r '.items[].id'`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.deadLettersList(cmd.Context(), &f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.state, "state", "open", strings.Join(deadLetterStates, ", "))
	flags.StringVar(&f.policy, "policy", "", "only of this policy")
	flags.StringVar(&f.team, "team", "", "only for this team to act on, such as faturamento")
	flags.StringVar(&f.reason, "reason", "", "only with this reason, such as DUPLICATE_CLAIM or MAX_RETRIES")
	flags.StringVar(&f.search, "search", "", "a dead letter's id, the beginning of a claim's (message's, job's), or words of the error")
	flags.IntVar(&f.limit, "limit", review.DefaultItems, fmt.Sprintf("how many in a page, 1 to %d", review.MostItems))
	flags.StringVar(&f.cursor, "cursor", "", "go on behind a page: what it gave as next")
	flags.BoolVar(&f.all, "all", false, "every page")
	f.register(flags)
	return cmd
}

// check says what is wrong with the flags, all of it at once.
func (f *listFlags) check() error {
	var wrong []error
	if !slices.Contains(deadLetterStates, f.state) {
		wrong = append(wrong, fmt.Errorf("--state is %q, expected one of %s", f.state, strings.Join(deadLetterStates, ", ")))
	}
	if f.reason != "" && !slices.Contains(decision.Reasons(), decision.Reason(f.reason)) {
		wrong = append(wrong, fmt.Errorf("--reason is %q, expected a reason such as DUPLICATE_CLAIM or MAX_RETRIES", f.reason))
	}
	if f.limit < 1 || f.limit > review.MostItems {
		wrong = append(wrong, fmt.Errorf("--limit is %d, expected 1 to %d", f.limit, review.MostItems))
	}
	if len(wrong) == 0 {
		return nil
	}
	return &usageError{errors.Join(wrong...)}
}

// path of a page.
func (f *listFlags) path(cursor string) string {
	q := url.Values{"state": {f.state}, "limit": {strconv.Itoa(f.limit)}}
	for name, value := range map[string]string{"policy": f.policy, "team": f.team, "reason": f.reason, "q": f.search, "cursor": cursor} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return "/dead-letters?" + q.Encode()
}

func (c *cli) deadLettersList(ctx context.Context, f *listFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	api, err := f.client()
	if err != nil {
		return err
	}
	table := c.deadLetterTable()
	for cursor := f.cursor; ; {
		page, err := c.deadLetterPage(ctx, api, f.path(cursor), table)
		switch {
		case err != nil:
			return err
		case page.Next == nil || !f.all || c.outputFailed():
			c.moreFollow(f, page, table)
			return nil
		case *page.Next == cursor:
			return fmt.Errorf("%s gives the same page again and again; is it a retry-worker?", api.base)
		}
		cursor = *page.Next
	}
}

// deadLetterPage asks for a page and prints it.
func (c *cli) deadLetterPage(ctx context.Context, api *apiClient, path string, table *deadLetterTable) (*console.DeadLetterPage, error) {
	body, err := api.ask(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	var page console.DeadLetterPage
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, api.foreign(err)
	}
	if c.json() {
		fmt.Fprintf(c.out, "%s\n", body)
	} else {
		table.print(page.Items)
	}
	return &page, nil
}

// outputFailed tells that nobody reads on.
func (c *cli) outputFailed() bool {
	out, checked := c.out.(*checkedWriter)
	return checked && out.err != nil
}

// moreFollow says, below a table, what is not in it.
func (c *cli) moreFollow(f *listFlags, last *console.DeadLetterPage, table *deadLetterTable) {
	switch {
	case c.json():
	case last.Next != nil:
		fmt.Fprintf(c.out, "\nMore follow: --all lists them all, --cursor %s goes on.\n", inertLine(*last.Next, 200))
	case table.rows == 0 && (f.state == "all" || f.policy+f.team+f.reason+f.search != ""):
		fmt.Fprintln(c.out, "No dead letter found.")
	case table.rows == 0:
		fmt.Fprintf(c.out, "No dead letter is %s.\n", f.state)
	}
}

func (c *cli) deadLettersShowCommand() *cobra.Command {
	var f serverFlags
	cmd := &cobra.Command{
		Use:     "show ID",
		Short:   "Show one dead letter: what failed, who must act, whether a process waits, what was decided",
		Example: `  retry-worker dead-letters show 3fa85f64-5717-5562-b3fc-2c963f66afa6`,
		Args:    oneDeadLetter,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.deadLetter(cmd.Context(), &f, "/dead-letters/"+url.PathEscape(args[0]), nil)
		},
	}
	f.register(cmd.Flags())
	return cmd
}

// oneDeadLetter takes one argument, a dead letter's id.
func oneDeadLetter(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) != 1:
		return fmt.Errorf("%d ids given, expected one as `retry-worker dead-letters list` prints them; `%s --help` says more", len(args), cmd.CommandPath())
	case !review.IsID(strings.ToLower(args[0])):
		return fmt.Errorf("%s is no dead letter's id, expected one as `retry-worker dead-letters list` prints them, such as 3fa85f64-5717-5562-b3fc-2c963f66afa6",
			strconv.QuoteToASCII(inertLine(args[0], 60)))
	}
	return nil
}

// deadLetter asks for a dead letter, or has one decided on, and prints it as it stands then.
func (c *cli) deadLetter(ctx context.Context, f *serverFlags, path string, body any) error {
	api, err := f.client()
	if err != nil {
		return err
	}
	text, err := api.ask(ctx, path, body)
	if err != nil {
		return err
	}
	if c.json() {
		fmt.Fprintf(c.out, "%s\n", text)
		return nil
	}
	var d console.DeadLetter
	if err := json.Unmarshal(text, &d); err != nil {
		return api.foreign(err)
	}
	c.printDeadLetter(&d)
	return nil
}

type retryFlags struct {
	serverFlags
	reason, when string
	force, fresh bool
}

// retryRequest is the API's.
type retryRequest struct {
	Reason     string `json:"reason"`
	ForceRetry bool   `json:"forceRetry"`
	When       string `json:"when"`
	Fresh      bool   `json:"fresh"`
}

func (c *cli) deadLettersRetryCommand() *cobra.Command {
	var f retryFlags
	cmd := &cobra.Command{
		Use:   "retry ID",
		Short: "Send it again: the process that waits goes on",
		Long: "Records the decision, under the name of the token, and prints the dead letter as it stands then. The process gets it as\n" +
			"soon as the engine takes it. At the limit it takes --force for one more try, and --fresh too for the whole ladder again.",
		Example: `  retry-worker dead-letters retry 3fa85f64-5717-5562-b3fc-2c963f66afa6 --reason "cadastro corrigido"
  retry-worker dead-letters retry 3fa85f64-5717-5562-b3fc-2c963f66afa6 --reason "portal voltou" --force --when now`,
		Args: oneDeadLetter,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return c.deadLetter(cmd.Context(), &f.serverFlags, "/dead-letters/"+url.PathEscape(args[0])+"/retry",
				retryRequest{Reason: f.reason, ForceRetry: f.force, When: f.when, Fresh: f.fresh})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.reason, "reason", "", "why, in your words; kept in the audit")
	flags.BoolVar(&f.force, "force", false, "one more try at or above the limit (role admin)")
	flags.BoolVar(&f.fresh, "fresh", false, "begin the whole ladder again; takes --force")
	flags.StringVar(&f.when, "when", "backoff", "backoff (after the policy's delay) or now")
	f.register(flags)
	return cmd
}

func (f *retryFlags) check() error {
	wrong := []error{checkReason(f.reason)}
	if f.when != string(review.Backoff) && f.when != string(review.Now) {
		wrong = append(wrong, fmt.Errorf("--when is %q, expected backoff or now", f.when))
	}
	if f.fresh && !f.force {
		wrong = append(wrong, errors.New("--fresh begins the whole ladder again, expected --force with it"))
	}
	if err := errors.Join(wrong...); err != nil {
		return &usageError{err}
	}
	return nil
}

// checkReason says what is wrong with a person's words.
func checkReason(reason string) error {
	switch n := utf8.RuneCountInString(strings.TrimSpace(reason)); {
	case n == 0:
		return errors.New("--reason is missing, expected why, in a few words: it is kept in the audit")
	case n > review.MaxReason:
		return fmt.Errorf("--reason has %d characters, expected at most %d", n, review.MaxReason)
	}
	return nil
}

func (c *cli) deadLettersDiscardCommand() *cobra.Command {
	var f serverFlags
	var reason string
	cmd := &cobra.Command{
		Use:     "discard ID",
		Short:   "Let it go: the process that waits ends",
		Example: `  retry-worker dead-letters discard 3fa85f64-5717-5562-b3fc-2c963f66afa6 --reason "paga à vista"`,
		Args:    oneDeadLetter,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkReason(reason); err != nil {
				return &usageError{err}
			}
			return c.deadLetter(cmd.Context(), &f, "/dead-letters/"+url.PathEscape(args[0])+"/discard", map[string]string{"reason": reason})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, in your words; kept in the audit")
	f.register(cmd.Flags())
	return cmd
}
