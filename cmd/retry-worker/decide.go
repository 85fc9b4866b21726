package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"retry-worker/internal/api"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/text"
)

func (c *cli) decideCommand() *cobra.Command {
	op := operationOf("POST /decisions")
	cmd := &cobra.Command{
		Use:   "decide",
		Short: "Say what would be decided for one failure; needs no engine and no store",
		Long: "Says what would be decided for one failure. Needs no engine and no store, and remembers nothing. The worker that\n" +
			"--server names has its own policies, and knows what was learnt and taught of the cause, too.\n" +
			"Exit 0 for every decision, 2 for input that is rejected.",
		Example: `  retry-worker decide --id CLM-001-1234567890 --error "TIMEOUT - no answer after 30s" --retry-count 1
  retry-worker decide --policy whatsapp-message --id MSG-1 --error "not sent" --http-status 429 -o json
  retry-worker decide --policy job-queue --id JOB-1 --error "disk full" --var maxAttempts=3 --var delayBetweenAttempts=PT30S`,
	}
	op.register(cmd)
	flags := cmd.Flags()
	vars := flags.StringArray("var", nil,
		"NAME=VALUE of a variable that only some policies read, such as maxAttempts=3; may be given again")
	file := policiesFileFlag(cmd)
	c.server.register(flags)
	flags.Lookup("server").Usage = "worker to ask: host:port or https://…; left out: none is asked"
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		own, err := ownVariables(*vars)
		if err != nil {
			return err
		}
		_, body := op.given(cmd)
		body["variables"] = own
		answer, err := c.decision(cmd, body, *file)
		if refused, is := errors.AsType[*api.Refused](err); is {
			if c.json() && refused.Body != nil {
				fmt.Fprintln(c.out, string(refused.Body))
			}
			return &usageError{refused}
		}
		if err != nil {
			return err
		}
		return c.print(answer)
	}
	return cmd
}

// decision asks the worker that --server names; without --server it decides by the catalogue in force.
func (c *cli) decision(cmd *cobra.Command, body map[string]any, file string) ([]byte, error) {
	if c.server.server != "" {
		if file != "" {
			return nil, &usageError{errors.New("--policies-file is given, but a worker has its own policies; leave it or " +
				"--server out")}
		}
		return c.post(cmd.Context(), "/decisions", body)
	}
	from, err := loadCatalogue(file)
	if err != nil {
		return nil, err
	}
	answer, err := api.Decide(from.Policies, time.Now().Truncate(time.Second), text.JSON(body))
	if refused, is := errors.AsType[*api.Refused](err); is {
		refused.Message = operationOf("POST /decisions").inFlags(refused.Message)
		policy, _ := body["policy"].(string)
		if p, _ := from.Policies.Find(policy); p != nil {
			refused.Message = inFlag(inFlag(refused.Message, p.IDVariable, "--id"), p.ErrorVariable, "--error")
		}
	}
	return answer, err
}

// ownVariables returns the variables of --var. A value that is no JSON is a text.
func ownVariables(given []string) (map[string]json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for _, g := range given {
		name, value, found := strings.Cut(g, "=")
		if _, twice := all[name]; !found || name == "" || twice {
			return nil, &usageError{fmt.Errorf("--var is %q, expected NAME=VALUE, such as maxAttempts=3, each name once", g)}
		}
		if all[name] = json.RawMessage(strings.TrimSpace(value)); !json.Valid([]byte(value)) {
			all[name] = json.RawMessage(decision.Text(value))
		}
	}
	return all, nil
}

type planFlags struct{ policy, maxAttempts, delay, destination, at string }

func (c *cli) planCommand() *cobra.Command {
	var f planFlags
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Show what a policy means: when each of its retries comes",
		Long: "Shows a policy's whole ladder, as if every retry failed at once: the earliest, nominal and latest wait before\n" +
			"each retry, the same from the first failure on, and the total limit, in which hours do not count that a\n" +
			"destination is closed. A retry that may pass it is then not scheduled. As a table or as JSON (times in\n" +
			"seconds). Needs no engine and no store.",
		Example: `  retry-worker plan --policy tiss-submission -o json
  retry-worker plan --policy tiss-submission --destination unimed-sp --at 2026-12-24T17:00:00-03:00
  retry-worker plan --policy job-queue --max-attempts 4 --delay-between-attempts PT30S`,
	}
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", "", "policy to show; left out: all")
	flags.StringVar(&f.maxAttempts, "max-attempts", "",
		"attempts that a job asks for, the first one included, where its policy lets it")
	flags.StringVar(&f.delay, "delay-between-attempts", "",
		"delay that a job asks for, ISO 8601 or milliseconds, where its policy lets it")
	flags.StringVar(&f.destination, "destination", "", "destination of the claim, whose calendar moves its retries")
	flags.StringVar(&f.at, "at", "",
		"when the claim fails first (without a zone: UTC); left out: now, where a destination is given")
	file := policiesFileFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error { return c.plan(&f, *file) }
	return cmd
}

// plans is what `plan -o json` prints.
type plans struct {
	// Catalogue is its version.
	Catalogue string            `json:"catalogue"`
	Unit      string            `json:"unit"`
	Plans     []*catalogue.Plan `json:"plans"`
}

func (c *cli) plan(f *planFlags, file string) error {
	from, err := loadCatalogue(file)
	if err != nil {
		return err
	}
	names := from.Policies.Names()
	if f.policy != "" && from.Policies[f.policy] == nil {
		return &usageError{fmt.Errorf("the policy is %q, expected one of %s", f.policy, strings.Join(names, ", "))}
	}
	if f.policy != "" {
		names = []string{f.policy}
	}
	at, err := instantOf("--at", f.at)
	if err != nil {
		return err
	}
	if f.destination != "" && f.at == "" {
		at = time.Now().Truncate(time.Second)
	}
	all := plans{Catalogue: from.Version, Unit: "seconds"}
	for _, name := range names {
		own, err := f.own(from.Policies[name])
		if err != nil {
			return &usageError{err}
		}
		all.Plans = append(all.Plans, catalogue.PlanAt(from.Policies[name], own, f.destination, at))
	}
	if c.json() {
		return c.print(all)
	}
	if _, named := from.Destinations.Named[f.destination]; !named && f.destination != "" {
		fmt.Fprintf(c.out, "%s is not in the policies file: it goes by the default's settings.\n\n", text.Inert(f.destination))
	}
	for i, p := range all.Plans {
		if i > 0 {
			fmt.Fprintln(c.out)
		}
		if err := c.ladder(p); err != nil {
			return err
		}
		if own := from.Policies[p.Policy].Own; own != nil && f.maxAttempts+f.delay == "" {
			fmt.Fprintf(c.out, "Shown for a job that brings no retry policy of its own (%s).\n", own.MaxAttempts)
		}
	}
	return nil
}

// ladder prints a plan for people: the settings, and a line for each retry.
func (c *cli) ladder(p *catalogue.Plan) error {
	var rows []map[string]any
	for _, r := range p.Retries {
		row := map[string]any{"retry": r.Number, "mayPassLimit": r.MayPassLimit, "closed": r.Why}
		for name, of := range map[string]catalogue.Range{"wait": r.Wait, "total": r.FromFirst} {
			row[name+"Earliest"], row[name+"Nominal"], row[name+"Latest"] = of.Earliest.String(), of.Nominal.String(), of.Latest.String()
		}
		if r.At != nil {
			row["at"] = r.At.Format("Mon 2006-01-02 15:04 -0700")
		}
		rows = append(rows, row)
	}
	columns := "retries: retry waitEarliest waitNominal waitLatest totalEarliest totalNominal totalLatest mayPassLimit"
	if p.FirstFailure != nil {
		columns += " at closed"
	}
	limit := "none"
	if p.TotalLimit > 0 {
		limit = p.TotalLimit.String() + " from the first failure"
	}
	fields := map[string]any{"description": p.Description, "destination": p.Destination,
		"maxRetries": p.MaxRetries, "totalLimit": limit, "retries": rows}
	if p.NeverScheduled > 0 {
		fields["neverScheduled"] = p.NeverScheduled
	}
	fmt.Fprintln(c.out, p.Policy)
	return c.print(fields, columns)
}

// own returns the retry policy of a job with the flags' values. It is an error if the policy named by --policy does not
// let jobs bring them.
func (f *planFlags) own(p *decision.Policy) (own decision.OwnPolicy, err error) {
	var may decision.OwnVariables
	if p.Own != nil {
		may = *p.Own
	}
	value := func(flag, variable, given string) decision.Value {
		switch {
		case given == "":
		case variable != "":
			return decision.Typed(given)
		case f.policy != "":
			err = fmt.Errorf("%s is given, but %s lets no job say it; leave it out", flag, p.Name)
		}
		return ""
	}
	attempts := value("--max-attempts", may.MaxAttempts, f.maxAttempts)
	delay := value("--delay-between-attempts", may.Delay, f.delay)
	if err != nil || attempts+delay == "" {
		return own, err
	}
	own, rejection := p.ReadOwn(&decision.Variables{MaxAttempts: attempts, Delay: delay})
	if rejection != nil {
		err = rejection
	}
	return own, err
}
