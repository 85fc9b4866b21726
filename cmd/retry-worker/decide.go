package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

type decideFlags struct {
	policy, policiesFile, now string
	vars                      []string
	explain                   bool
}

func (c *cli) decideCommand() *cobra.Command {
	var f decideFlags
	cmd := &cobra.Command{
		Use:   "decide",
		Short: "Say what would be decided for one failure; needs no engine and no store",
		Long: "Says what would be decided for one failure. Needs no engine and no store, and remembers nothing. The worker that\n" +
			"--server names knows what was learnt and taught of the cause, too.\n" +
			"Exit 0 for every decision, 2 for input that is rejected.",
		Example: `  retry-worker decide --id CLM-001-1234567890 --error "TIMEOUT - no answer after 30s" --retry-count 1
  retry-worker decide --policy whatsapp-message --id MSG-1 --error "not sent" --http-status 429 -o json
  retry-worker decide --policy job-queue --id JOB-1 --error "disk full" --var maxAttempts=3 --var delayBetweenAttempts=PT30S`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.server.server != "" {
				return c.askDecision(cmd, f)
			}
			return c.decide(cmd, f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", decision.DefaultPolicy, "policy that decides")
	flags.String("id", "", "the claim's (message's, job's) id")
	flags.String("error", "", "error text as the process has it")
	flags.String("retry-count", "", "retries already made; left out: 0")
	flags.String("last-submission-time", "",
		"instant of the last submission, RFC 3339 or without a zone (UTC); left out: none")
	flags.String("http-status", "", "HTTP status of the failure, where the policy reads one; left out: none")
	flags.StringArrayVar(&f.vars, "var", nil,
		"NAME=VALUE of a variable that only some policies read, such as maxAttempts=3; may be given again")
	flags.StringVar(&f.now, "now", "", "instant of the analysis, RFC 3339 or without a zone (UTC); left out: now")
	flags.BoolVar(&f.explain, "explain", false, "say what else was found in the error, and why it lost")
	policiesFileFlag(cmd, &f.policiesFile)
	c.server.register(flags)
	flags.Lookup("server").Usage = "worker to ask: host:port or https://…; left out: none is asked"
	return cmd
}

func (c *cli) decide(cmd *cobra.Command, f decideFlags) error {
	now, err := nowOr("--now", f.now)
	if err != nil {
		return err
	}
	from, err := loadCatalogue(f.policiesFile)
	if err != nil {
		return err
	}
	var v decision.Variables
	flags := map[string]string{}
	if p, rejection := from.Policies.Find(f.policy); rejection == nil {
		if v, flags, err = f.variables(cmd, p); err != nil {
			return &usageError{err}
		}
	}
	d, flat := worker.DryRun(from.Policies, f.policy, v, now, nil)
	if f.explain {
		flat = worker.WithEvidence(flat, worker.Explain(from.Policies, f.policy, v))
	}
	if d.Rejection == nil || c.json() {
		err = c.print([]byte(flat))
	}
	if err == nil && d.Rejection != nil {
		err = rejected(cmd, d.Rejection, flags)
	}
	return err
}

// askDecision prints what a worker would decide.
func (c *cli) askDecision(cmd *cobra.Command, f decideFlags) error {
	if f.policiesFile != "" || cmd.Flags().Changed("last-submission-time") {
		return &usageError{errors.New("--policies-file or --last-submission-time is given, but a worker has its own " +
			"policies, and reads no such instant; leave it or --server out")}
	}
	own, err := f.own()
	if err != nil {
		return &usageError{err}
	}
	variables := map[string]json.RawMessage{}
	for name, value := range own {
		variables[name] = json.RawMessage(value)
	}
	body := map[string]any{"policy": f.policy, "variables": variables}
	for flag, field := range map[string]string{
		"id": "id", "error": "error", "retry-count": "retryCount", "http-status": "httpStatus", "now": "now",
	} {
		if cmd.Flags().Changed(flag) {
			body[field] = json.RawMessage(valueOf(cmd, flag))
		}
	}
	_, answer, err := order[any](cmd.Context(), c, "/decisions", body)
	if refused, is := errors.AsType[*api.Refused](err); is && refused.Status == http.StatusUnprocessableEntity {
		if c.json() {
			fmt.Fprintln(c.out, string(refused.Body))
		}
		return &usageError{errors.New(refused.Message)}
	}
	if err != nil {
		return err
	}
	if !f.explain {
		answer = worker.WithoutEvidence(answer)
	}
	return c.print(answer)
}

// rejected returns what is wrong with the input, by the flags that gave it.
func rejected(cmd *cobra.Command, r *decision.Rejection, flags map[string]string) error {
	shown := *r
	if flag, has := flags[r.Variable]; has {
		if !cmd.Flags().Changed(flag) {
			return &usageError{fmt.Errorf("--%s is missing, expected %s", flag, r.Expected)}
		}
		shown.Variable = "--" + flag
	}
	return &usageError{errors.New(journal.RejectionMessage(&shown))}
}

// variables returns what p reads of a process that holds the flags' values, and the flag of each variable. The error
// says which flag p has no use for.
func (f *decideFlags) variables(cmd *cobra.Command, p *decision.Policy) (decision.Variables, map[string]string, error) {
	if cmd.Flags().Changed("http-status") && p.HTTPStatusVariable == "" {
		return decision.Variables{}, nil, fmt.Errorf("--http-status is given, but %s reads no HTTP status; leave it out, "+
			"or put it into --error", p.Name)
	}
	values, err := f.own()
	if err != nil {
		return decision.Variables{}, nil, err
	}
	read := decision.Policies{p.Name: p}.Variables()
	for name := range values {
		if !slices.Contains(read, name) {
			return decision.Variables{}, nil, fmt.Errorf("--var %q: %s does not read it, expected one of %s", name, p.Name,
				strings.Join(read, ", "))
		}
	}
	flags := map[string]string{
		p.IDVariable: "id", p.ErrorVariable: "error", decision.RetryCountVariable: "retry-count",
		decision.LastSubmissionVariable: "last-submission-time", p.HTTPStatusVariable: "http-status",
	}
	for variable, flag := range flags {
		if _, twice := values[variable]; twice {
			return decision.Variables{}, nil, fmt.Errorf("--var %q: it has a flag of its own, expected --%s", variable, flag)
		}
		if flag == "id" || flag == "error" || cmd.Flags().Changed(flag) {
			values[variable] = valueOf(cmd, flag)
		}
	}
	return p.Variables(func(name string) decision.Value { return values[name] }), flags, nil
}

// own returns the variables of --var, each the JSON that it is, or else a text.
func (f *decideFlags) own() (map[string]decision.Value, error) {
	own := map[string]decision.Value{}
	for _, given := range f.vars {
		name, value, found := strings.Cut(given, "=")
		if _, twice := own[name]; !found || name == "" || twice {
			return nil, fmt.Errorf("--var is %q, expected NAME=VALUE, such as maxAttempts=3, each name once", given)
		}
		if own[name] = decision.Text(value); json.Valid([]byte(value)) {
			own[name] = decision.Value(strings.TrimSpace(value))
		}
	}
	return own, nil
}

// valueOf returns what a flag gives: a number where it is to be one, otherwise a text.
func valueOf(cmd *cobra.Command, flag string) decision.Value {
	text := cmd.Flags().Lookup(flag).Value.String()
	if flag == "retry-count" || flag == "http-status" {
		return decision.Typed(text)
	}
	return decision.Text(text)
}
