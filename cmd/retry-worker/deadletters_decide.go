package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// verdictFlags say what is done with one dead letter, or with many.
type verdictFlags struct {
	serverFlags
	bulkFlags
	action       journal.BulkAction
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

const bulkHelp = "With --filter it decides on all that fit, however many there are (role admin). It shows first what would be done (--plan\n" +
	"ends there) and asks (--yes does not); then a bulk run decides them one by one, so many a minute, and is followed to its\n" +
	"end. Ctrl-C ends the following, not the run: `retry-worker dead-letters runs` shows, pauses and cancels it.\n" +
	"Filters, all of which must fit: policy, team, reason, fingerprint (of `retry-worker dead-letters groups`), q (words of the\n" +
	"error), older-than and younger-than (an age such as 2h or 3d), since and until (a date or RFC 3339); `--filter all` is every\n" +
	"open one. What is refused stays as it is: the run ends well, and says how many and why. -o json prints the plan, then the\n" +
	"run at its end. Exit 1 where nothing was started, or the run was cancelled."

func (c *cli) deadLettersRetryCommand() *cobra.Command {
	f := verdictFlags{action: journal.BulkRetry}
	cmd := &cobra.Command{
		Use:   "retry ID | retry --filter key=value …",
		Short: "Send it again, or all that a filter chooses: the process that waits goes on",
		Long: "Records the decision, under the name of the token, and prints the dead letter as it stands then. The process gets it as\n" +
			"soon as the engine takes it. At the limit it takes --force for one more try, and --fresh too for the whole ladder again.\n\n" +
			bulkHelp,
		Example: `  retry-worker dead-letters retry 3fa85f64-5717-5562-b3fc-2c963f66afa6 --reason "cadastro corrigido"
  retry-worker dead-letters retry 3fa85f64-5717-5562-b3fc-2c963f66afa6 --reason "portal voltou" --force --when now
  retry-worker dead-letters retry --filter team=ti --filter older-than=2h --plan
  retry-worker dead-letters retry --filter fingerprint=0a1b2c3d4e5f6071 --reason "senha corrigida" --per-minute 120`,
		Args: f.args,
		RunE: func(cmd *cobra.Command, args []string) error { return c.decideOn(cmd, &f, args) },
	}
	flags := cmd.Flags()
	f.registerDecision(flags)
	flags.BoolVar(&f.force, "force", false, "one more try at or above the limit")
	flags.BoolVar(&f.fresh, "fresh", false, "begin the whole ladder again; takes --force (role admin)")
	flags.StringVar(&f.when, "when", "backoff", "backoff (after the policy's delay) or now")
	return cmd
}

func (c *cli) deadLettersDiscardCommand() *cobra.Command {
	f := verdictFlags{action: journal.BulkDiscard}
	cmd := &cobra.Command{
		Use:   "discard ID | discard --filter key=value …",
		Short: "Let it go, or all that a filter chooses: the process that waits ends",
		Long: "Records the decision, under the name of the token, and prints the dead letter as it stands then. The process that waits\n" +
			"ends as soon as the engine takes it.\n\n" + bulkHelp,
		Example: `  retry-worker dead-letters discard 3fa85f64-5717-5562-b3fc-2c963f66afa6 --reason "paga à vista"
  retry-worker dead-letters discard --filter policy=job-queue --filter older-than=30d --plan`,
		Args: f.args,
		RunE: func(cmd *cobra.Command, args []string) error { return c.decideOn(cmd, &f, args) },
	}
	f.registerDecision(cmd.Flags())
	return cmd
}

func (f *verdictFlags) registerDecision(flags *pflag.FlagSet) {
	flags.StringVar(&f.reason, "reason", "", "why, in your words; kept in the audit")
	f.bulkFlags.register(flags)
	f.serverFlags.register(flags)
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
		return fmt.Errorf("nothing is chosen, expected the id of one dead letter, or --filter key=value for many (--filter all for every open one); `%s --help` says more", cmd.CommandPath())
	}
	for _, name := range bulkOnly {
		if cmd.Flags().Changed(name) {
			return fmt.Errorf("--%s is for many at once, expected it with --filter only; `%s --help` says more", name, cmd.CommandPath())
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
	return c.decideOnOne(cmd.Context(), f, "/dead-letters/"+url.PathEscape(args[0]))
}

func (c *cli) decideOnOne(ctx context.Context, f *verdictFlags, path string) error {
	if f.action == journal.BulkDiscard {
		return c.deadLetter(ctx, &f.serverFlags, path+"/discard", map[string]string{"reason": f.reason})
	}
	return c.deadLetter(ctx, &f.serverFlags, path+"/retry", retryRequest{Reason: f.reason, ForceRetry: f.force, When: f.when, Fresh: f.fresh})
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
