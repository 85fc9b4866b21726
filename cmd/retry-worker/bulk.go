package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"retry-worker/internal/api"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/text"
)

// planning is the request of a bulk run's plan.
const planning = "POST /bulk-runs/plan"

type manyFlags struct {
	Filter []string
	Yes    bool
}

// decideMany decides on one dead letter, or on all that --filter chooses.
func (c *cli) decideMany(cmd *command, f *manyFlags, args []string) error {
	changed := cmd.Flags().Changed
	switch many := changed("filter"); {
	case !many && (f.Yes || changed("per-minute")):
		return wrongUse(errors.New("--yes or --per-minute is given, expected them with --filter only"))
	case many && (len(args) > 0 || changed("deadline") || changed("protocol-number")):
		return wrongUse(errors.New("--filter and an id, --deadline or --protocol-number are given, expected many without them, " +
			"or one without --filter"))
	case !many && len(args) != 1:
		return wrongUse(fmt.Errorf("nothing is chosen, expected the id of one dead letter, or --filter key=value for many (--filter "+
			"all for every open one); `%s --help` says more", cmd.CommandPath()))
	case many:
		return c.bulk(cmd, f)
	}
	return c.send(cmd, cmd.op, args)
}

type assignFlags struct {
	Nobody bool
	Of     string
}

// assign assigns one dead letter, or all of somebody's.
func (c *cli) assign(cmd *command, f *assignFlags, args []string) error {
	to, many := cmd.Flags().Changed("to"), f.Of != ""
	switch {
	case len(args) > 1 || (len(args) == 1) == many || f.Nobody && to || many && !f.Nobody && !to:
		return wrongUse(errors.New("expected the id of one dead letter, or --of NAME for all that somebody has, with --to or --nobody"))
	case !f.Nobody && !to:
		_ = cmd.Flags().Set("to", deadletter.Me) // cannot fail for a text
	case many:
		return c.send(cmd, operationOf("PUT /assignees/{name}"), []string{f.Of})
	}
	return c.send(cmd, cmd.op, args)
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
func (c *cli) bulk(cmd *command, f *manyFlags) error {
	filter, err := parseFilter(f.Filter)
	if err != nil {
		return err
	}
	_, command := operationOf(planning).given(cmd)
	command["action"], command["filter"] = cmd.Name(), filter
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
	case !f.Yes && !c.json():
		fmt.Fprintln(c.out, "\nThis is a plan: --yes with a --reason carries it out.")
		return nil
	case !f.Yes:
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
