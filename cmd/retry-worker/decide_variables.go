package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"retry-worker/internal/decision"
)

// variables are what p reads of a process that holds the flags' values. The error says which flag p has no use for.
func (f *decideFlags) variables(cmd *cobra.Command, p *decision.Policy) (decision.Variables, error) {
	if cmd.Flags().Changed("http-status") && p.HTTPStatusVariable == "" {
		return decision.Variables{}, fmt.Errorf("--http-status is given, but %s reads no HTTP status; leave it out, or put it into --error", p.Name)
	}
	values := map[string]decision.Value{p.IDVariable: decision.Text(f.id), p.ErrorVariable: decision.Text(f.errorText)}
	flags := map[string]string{p.IDVariable: "--id", p.ErrorVariable: "--error"}
	for _, o := range []struct {
		variable, flag string
		value          decision.Value
	}{
		{decision.RetryCountVariable, "retry-count", decision.Typed(f.retryCount)},
		{decision.LastSubmissionVariable, "last-submission-time", decision.Text(f.lastSubmission)},
		{p.HTTPStatusVariable, "http-status", decision.Typed(f.httpStatus)},
	} {
		flags[o.variable] = "--" + o.flag
		if cmd.Flags().Changed(o.flag) {
			values[o.variable] = o.value
		}
	}
	if err := f.others(p, flags, values); err != nil {
		return decision.Variables{}, err
	}
	return p.Variables(func(name string) decision.Value { return values[name] }), nil
}

// others adds the variables of --var, which p must read and no other flag may give.
func (f *decideFlags) others(p *decision.Policy, flags map[string]string, values map[string]decision.Value) error {
	read := variableNames(p)
	for _, given := range f.vars {
		name, value, found := strings.Cut(given, "=")
		_, again := values[name]
		switch {
		case !found || name == "":
			return fmt.Errorf("--var is %q, expected NAME=VALUE, such as maxAttempts=3", given)
		case !slices.Contains(read, name):
			return fmt.Errorf("--var %q: %s does not read it, expected one of %s", name, p.Name, strings.Join(read, ", "))
		case flags[name] != "":
			return fmt.Errorf("--var %q: it has a flag of its own, expected %s", name, flags[name])
		case again:
			return fmt.Errorf("--var %q is given twice, expected one value", name)
		}
		values[name] = jsonOrText(value)
	}
	return nil
}

// variableNames that p reads, in alphabetical order.
func variableNames(p *decision.Policy) []string { return decision.Policies{p.Name: p}.Variables() }

// jsonOrText is s as the JSON it is, or else as text.
func jsonOrText(s string) decision.Value {
	if json.Valid([]byte(s)) {
		return decision.Value(strings.TrimSpace(s))
	}
	return decision.Text(s)
}
