package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"retry-worker/internal/api"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

const manyHelp = "\n\nWith --filter it decides on all open dead letters that fit: it shows what would be done, and with --yes does\n" +
	"it. The bulk run goes on by itself; `retry-worker dead-letters runs` shows, pauses and cancels it. --filter\n" +
	"takes key=value, key one of policy, team, reason, fingerprint, ids, context, assignee, followUp, q, since and\n" +
	"until (an instant, a date or an age such as 3d), and may be given again: all must fit. --filter all is every open one. -o json\n" +
	"prints the plan, and below it the run. Exit 1 where there was nothing to start."

// verdictCommand returns a command that decides on one dead letter or on many.
func (c *cli) verdictCommand(verb journal.BulkAction, example string) *cobra.Command {
	cmd := c.action("dead-letters", &action{use: string(verb) + " ID", request: "POST /dead-letters/{id}/" + string(verb),
		example: example})
	cmd.Example += "\n  retry-worker dead-letters " + string(verb) + " --filter team=ti --filter until=2h"
	cmd.Use = fmt.Sprintf("%s ID | %s --filter key=value …", verb, verb)
	cmd.Long += manyHelp
	flags := cmd.Flags()
	filters := flags.StringArray("filter", nil, "all that fits instead of one: `key=value`, may be given again; or all")
	yes := flags.Bool("yes", false, "do it; without, it is shown only (role viewer)")
	operationOf("POST /bulk-runs/plan").register(cmd, "perMinute")
	one := cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		many := flags.Changed("filter")
		switch {
		case !many && (*yes || flags.Changed("per-minute")):
			return errors.New("--yes or --per-minute is given, expected them with --filter only")
		case many && (len(args) > 0 || flags.Changed("deadline") || flags.Changed("protocol-number")):
			return errors.New("--filter and an id, --deadline or --protocol-number are given, expected many without them, or one " +
				"without --filter")
		case !many && len(args) != 1:
			return fmt.Errorf("nothing is chosen, expected the id of one dead letter, or --filter key=value for many (--filter "+
				"all for every open one); `%s --help` says more", cmd.CommandPath())
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return one(cmd, args)
		}
		return c.bulk(cmd, verb, *filters, *yes)
	}
	return cmd
}

// assignCommand returns the command that assigns one dead letter, or all of somebody's.
func (c *cli) assignCommand() *cobra.Command {
	cmd := c.action("dead-letters", &action{use: "assign ID", request: "PUT /dead-letters/{id}/assignment",
		example: anID + ` --follow-up 2026-03-04 --note "operadora responde na quarta"`})
	one, all := cmd.RunE, c.action("dead-letters", &action{use: "assign NAME", request: "PUT /assignees/{name}"}).RunE
	cmd.Use += " | assign --of NAME"
	cmd.Long += "\nWith --of it is all that somebody has, such as a colleague who left (role admin);\n" +
		"left are those on which the one with --to may not decide."
	cmd.Example += "\n  retry-worker dead-letters assign --of ana.souza --to bia.lima"
	flags := cmd.Flags()
	flags.Lookup("to").Usage = "who gets it: an account's name; left out: you"
	nobody := flags.Bool("nobody", false, "give it back")
	of := flags.String("of", "", "all that this account has, instead of one")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		to, many := flags.Changed("to"), *of != ""
		if len(args) > 1 || (len(args) == 1) == many || *nobody && to || many && !*nobody && !to {
			return errors.New("expected the id of one dead letter, or --of NAME for all that somebody has, with --to or --nobody")
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !*nobody && !flags.Changed("to") {
			_ = flags.Set("to", deadletter.Me) // cannot fail for a text
		}
		if *of != "" {
			return all(cmd, []string{*of})
		}
		return one(cmd, args)
	}
	return cmd
}

// parseFilter returns the filters of --filter in the API's form.
func parseFilter(given []string) (map[string]string, error) {
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
		filter[key] = value
	}
	return filter, nil
}

// bulk shows what a bulk run would do; with --yes it starts the run.
func (c *cli) bulk(cmd *cobra.Command, verb journal.BulkAction, filters []string, yes bool) error {
	filter, err := parseFilter(filters)
	if err != nil {
		return err
	}
	_, command := operationOf("POST /bulk-runs/plan").given(cmd)
	command["action"], command["filter"] = verb, filter
	text, err := c.post(cmd.Context(), "/bulk-runs/plan", command)
	if err != nil {
		return err
	}
	var plan api.BulkPlan
	if err := json.Unmarshal(text, &plan); err != nil {
		return c.foreign(err)
	}
	command["reason"], command["token"] = cmd.Flags().Lookup("reason").Value.String(), plan.Token
	command["filter"] = plan.Filter // has an instant where an age was given
	err = c.printPlan(&plan, text)
	switch {
	case err != nil:
		return err
	case !yes && !c.json():
		fmt.Fprintln(c.out, "\nThis is a plan: --yes with a --reason carries it out.")
		return nil
	case !yes:
		return nil
	case plan.Ready == 0:
		return fmt.Errorf("nothing was started: of %d open dead letters that fit, none can be decided", plan.Total)
	}
	if text, err = c.post(cmd.Context(), "/bulk-runs", command); err != nil {
		return err
	}
	if !c.json() {
		fmt.Fprintln(c.out, "\nA bulk run does it:")
	}
	return c.print(text)
}

// printPlan prints a plan: unchanged as JSON; for people without the token, and with flags in place of the API's
// fields.
func (c *cli) printPlan(plan *api.BulkPlan, text []byte) error {
	if c.json() {
		return c.print(text)
	}
	retry := operationOf("POST /dead-letters/{id}/retry")
	for i := range plan.Refused {
		plan.Refused[i].Message = retry.inFlags(plan.Refused[i].Message)
	}
	plan.Token = ""
	return c.print(plan, "causes: fingerprint count reason pattern teams policy lastSeen")
}

// post sends a body to the API and returns the answer.
func (c *cli) post(ctx context.Context, path string, body map[string]any) ([]byte, error) {
	return c.ask(ctx, &request{operation: operationOf("POST " + path), path: path, body: text.JSON(body)})
}
