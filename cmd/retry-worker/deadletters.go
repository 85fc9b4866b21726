package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"retry-worker/internal/console"
	"retry-worker/internal/deadletter"
)

// deadLetterStates that a list can be asked for.
var deadLetterStates = []string{"open", "reprocessing", "discarded", "recovered", "all"}

func (c *cli) deadLettersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead-letters",
		Short: "List what was given up, show one, send it again or let it go: one, or many at once",
		Long: "Speaks to the API of a running worker. Where that has a tokens file, it shows the token in " + tokenVariable + ", or the\n" +
			"one in --token-file. Roles: viewer lists, shows and plans; operator retries and discards too, at the limit\n" +
			"once (--force), and many at once of the teams that the token names; admin all of it, and --fresh.\n" +
			"Exit 0 when it is done, 1 when the API refuses or does not answer, 2 for wrong use.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q; `%s --help` lists the commands", args[0], cmd.CommandPath())
			}
			return fmt.Errorf("expected a command behind dead-letters: list, groups, show, retry, discard or runs; `%s --help` says more", cmd.CommandPath())
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(c.deadLettersListCommand(), c.deadLettersGroupsCommand(), c.deadLettersShowCommand(), c.deadLettersRetryCommand(), c.deadLettersDiscardCommand(),
		c.runsCommand())
	return cmd
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
	case !deadletter.IsID(strings.ToLower(args[0])):
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
