package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

type decideFlags struct {
	policy, id, errorText, retryCount, lastSubmission, now string
	httpStatus                                             int
}

func (c *cli) decideCommand() *cobra.Command {
	var f decideFlags
	cmd := &cobra.Command{
		Use:   "decide",
		Short: "Say what would be decided for one failure; needs no engine and no store",
		Long: "Says what would be decided for one failure. Needs no engine and no store, and remembers nothing.\n" +
			"Exit 0 for every decision, 2 for input that is rejected.",
		Example: `  retry-worker decide --id CLM-001-1234567890 --error "TIMEOUT - no answer after 30s" --retry-count 1
  retry-worker decide --policy tiss-submission --id CLM-001-1234567890 --error INVALID_PATIENT_DATA -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.decide(cmd, f) },
	}
	cmd.Flags().StringVar(&f.policy, "policy", decision.DefaultPolicy, "policy that decides")
	cmd.Flags().StringVar(&f.id, "id", "", "the claim's (message's, job's) id")
	cmd.Flags().StringVar(&f.errorText, "error", "", "error text as the process has it")
	cmd.Flags().StringVar(&f.retryCount, "retry-count", "", "retries already made; left out: 0")
	cmd.Flags().StringVar(&f.lastSubmission, "last-submission-time", "", "instant of the last submission, RFC 3339 or without a zone (UTC); left out: none")
	cmd.Flags().IntVar(&f.httpStatus, "http-status", 0, "HTTP status of the failure, for policies that read one")
	cmd.Flags().StringVar(&f.now, "now", "", "instant of the analysis, RFC 3339; left out: now")
	return cmd
}

func (c *cli) decide(cmd *cobra.Command, f decideFlags) error {
	now := time.Now()
	if cmd.Flags().Changed("now") {
		var err error
		if now, err = instantFlag(f.now); err != nil {
			return err
		}
	}
	v := decision.Variables{ID: decision.Text(f.id), Error: decision.Text(f.errorText)}
	if cmd.Flags().Changed("retry-count") {
		v.RetryCount = numberOrText(f.retryCount)
	}
	if cmd.Flags().Changed("last-submission-time") {
		v.LastSubmissionTime = decision.Text(f.lastSubmission)
	}
	d, flat := worker.DryRun(catalogue.Default().Policies, f.policy, v, now)
	if c.json() {
		fmt.Fprintln(c.out, string(flat))
	} else if d.Rejection == nil {
		c.printDecision(&d)
	}
	if d.Rejection != nil {
		return &usageError{errors.New(journal.RejectionMessage(d.Rejection))}
	}
	return nil
}

func (c *cli) printDecision(d *decision.Decision) {
	row := func(name, value string) { fmt.Fprintf(c.out, "%-15s %s\n", name, value) }
	row("outcome", string(d.Outcome))
	row("why", d.RetryReason)
	rule := d.MatchedRule
	if rule == "" {
		rule = "no rule matched"
	}
	row("classification", string(d.ErrorClassification)+" ("+rule+")")
	if d.ShouldRetry() {
		row("next retry", d.NextRetryTime.Format(time.RFC3339)+" (in "+d.Backoff.Delay.String()+")")
		row("retry", strconv.FormatInt(d.RetryCount, 10)+" of "+strconv.FormatInt(d.MaxRetries, 10))
	} else {
		row("who acts", string(d.Team))
	}
	row("policy", d.Policy)
}

// instantFlag reads --now. Years of four digits only: later ones have no RFC 3339 form.
func instantFlag(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || t.UTC().Year() < 1 || t.UTC().Year() > 9998 {
		return t, &usageError{fmt.Errorf("--now is %q, expected an instant such as 2025-01-12T10:40:00Z", s)}
	}
	return t, nil
}

// numberOrText is a flag as the JSON value a process would hold: a number where it is one, and nothing
// but that (no white space, which would end up in a message).
func numberOrText(s string) decision.Value {
	var n json.Number
	if json.Unmarshal([]byte(s), &n) == nil && n.String() == s && s != "" {
		return decision.Value(s)
	}
	return decision.Text(s)
}
