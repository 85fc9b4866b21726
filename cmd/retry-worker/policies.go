package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/audit"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/config"
	"retry-worker/internal/decision"
	"retry-worker/internal/store"
	"retry-worker/internal/text"
)

// checkedCatalogue is what `policies check -o json` prints.
type checkedCatalogue struct {
	OK   bool   `json:"ok"`
	File string `json:"file"`
	// Version, Policies and Rules are null if the catalogue is invalid.
	Version  *string  `json:"version"`
	Policies []string `json:"policies"`
	Rules    *int     `json:"rules"`
	// Problems holds at most 20; More counts the others. A file that cannot be read has one problem, on line 0.
	Problems     []catalogue.Problem `json:"problems"`
	MoreProblems int                 `json:"moreProblems"`
}

func (c *cli) policiesCheck(_ context.Context, args []string) error {
	file := args[0]
	checked := checkedCatalogue{File: file, Problems: []catalogue.Problem{}}
	policies, err := catalogue.Load(file)
	wrong, invalid := errors.AsType[*catalogue.Error](err)
	switch {
	case invalid:
		checked.Problems, checked.MoreProblems = wrong.Problems, wrong.More
	case err != nil:
		const expected = "a readable YAML file"
		checked.Problems = append(checked.Problems, catalogue.Problem{Field: "file", Expected: expected,
			Found: strings.TrimSuffix(err.Error(), ", expected "+expected)})
	default:
		rules := 0
		for _, p := range policies.Policies {
			rules += len(p.Rules.Rules())
		}
		checked.OK, checked.Version, checked.Rules = true, &policies.Version, &rules
		checked.Policies = policies.Policies.Names()
	}
	if checked.OK || c.json() {
		if err := c.print(checked); err != nil {
			return err
		}
	}
	return err
}

// policiesSchema prints the JSON Schema of the catalogue's format.
func (c *cli) policiesSchema(context.Context, []string) error {
	_, err := c.out.Write(catalogue.Schema())
	return err
}

func (c *cli) policiesShow(context.Context, []string) error {
	from, err := loadCatalogue(c.PoliciesFile)
	if err != nil {
		return err
	}
	if !c.json() {
		_, err := fmt.Fprintf(c.out, "# version %s, source %s\n%s", from.Version, strconv.Quote(from.Source),
			bytes.TrimPrefix(from.Effective(), []byte("\uFEFF")))
		return err
	}
	shown := struct {
		Version   string `json:"version"`
		Source    string `json:"source"`
		Catalogue any    `json:"catalogue"`
	}{from.Version, from.Source, nil}
	if err := yaml.Unmarshal(from.Effective(), &shown.Catalogue); err != nil {
		return fmt.Errorf("turn the catalogue into JSON: %w", err)
	}
	return c.print(shown)
}

// loadCatalogue returns the catalogue in file, which may be built-in, or else in the file that the environment names,
// or the built-in one. An error of an invalid one has a line for each problem.
func loadCatalogue(file string) (*catalogue.Catalogue, error) {
	if file == "" {
		settings, err := config.Load("RETRY_WORKER_POLICIES_FILE")
		if err != nil {
			return nil, err
		}
		file = cmp.Or(settings.PoliciesFile, "built-in")
	}
	if file == "built-in" {
		return catalogue.Default(), nil
	}
	return catalogue.Load(file)
}

// policiesDiff is what `policies diff -o json` prints.
type policiesDiff struct {
	Since string `json:"since"`
	A     string `json:"a"` // the versions of both catalogues
	B     string `json:"b"`
	audit.Differences
	Policies []policyDiff `json:"policies"`
}

type policyDiff struct {
	Policy string `json:"policy"`
	audit.Differences
}

func (c *cli) policiesDiff(ctx context.Context, args []string) error {
	from, noSince := instantOf("--since", c.Since)
	a, noA := loadCatalogue(args[0])
	b, noB := loadCatalogue(args[1])
	if err := errors.Join(noSince, noA, noB); err != nil {
		return err
	}
	return c.readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		line := c.progress("failures replayed")
		defer line.end()
		differences, err := audit.Replay(ctx, reader, from, a.Policies, b.Policies, line.show)
		if err != nil {
			return err
		}
		diff := policiesDiff{Since: decision.Instant(from), A: a.Version, B: b.Version, Policies: []policyDiff{}}
		for _, policy := range slices.Sorted(maps.Keys(differences)) {
			diff.Differences.Add(differences[policy])
			diff.Policies = append(diff.Policies, policyDiff{policy, *differences[policy]})
		}
		return c.print(diff)
	})
}

// decisions is the request of a dry run.
const decisions = "POST /decisions"

func (c *cli) decide(ctx context.Context, _ []string) error {
	own, err := ownVariables(c.Var)
	if err != nil {
		return err
	}
	_, body := operationOf(decisions).given(c.command.Flags())
	body["variables"] = own
	answer, err := c.decision(ctx, body)
	if refused, is := errors.AsType[*access.Refusal](err); is && c.json() && refused.Body != nil {
		fmt.Fprintln(c.out, string(refused.Body))
	}
	if err != nil {
		return err
	}
	return c.print(answer)
}

// decision asks the worker that --server names; without --server it decides by the catalogue in force.
func (c *cli) decision(ctx context.Context, body map[string]any) ([]byte, error) {
	if c.Server != "" {
		if c.PoliciesFile != "" {
			return nil, errors.New("--policies-file is given, but a worker has its own policies; leave it or " +
				"--server out")
		}
		return c.post(ctx, "/decisions", body)
	}
	from, err := loadCatalogue(c.PoliciesFile)
	if err != nil {
		return nil, err
	}
	answer, err := api.Decide(from.Policies, time.Now().Truncate(time.Second), text.JSON(body))
	if refused, is := errors.AsType[*access.Refusal](err); is {
		refused.Message = operationOf(decisions).inFlags(refused.Message)
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
			return nil, fmt.Errorf("--var is %q, expected NAME=VALUE, such as maxAttempts=3, each name once", g)
		}
		if all[name] = json.RawMessage(strings.TrimSpace(value)); !json.Valid([]byte(value)) {
			all[name] = json.RawMessage(decision.Text(value))
		}
	}
	return all, nil
}

// plans is what `plan -o json` prints.
type plans struct {
	// Catalogue is its version.
	Catalogue string            `json:"catalogue"`
	Unit      string            `json:"unit"`
	Plans     []*catalogue.Plan `json:"plans"`
}

func (c *cli) plan(context.Context, []string) error {
	from, err := loadCatalogue(c.PoliciesFile)
	if err != nil {
		return err
	}
	names := from.Policies.Names()
	if c.Policy != "" && from.Policies[c.Policy] == nil {
		return fmt.Errorf("the policy is %q, expected one of %s", c.Policy, strings.Join(names, ", "))
	}
	if c.Policy != "" {
		names = []string{c.Policy}
	}
	at, err := instantOf("--at", c.At)
	if err != nil {
		return err
	}
	if c.Destination != "" && c.At == "" {
		at = time.Now().Truncate(time.Second)
	}
	all := plans{Catalogue: from.Version, Unit: "seconds"}
	for _, name := range names {
		own, err := c.own(from.Policies[name])
		if err != nil {
			return err
		}
		all.Plans = append(all.Plans, catalogue.PlanAt(from.Policies[name], own, c.Destination, at))
	}
	if c.json() {
		return c.print(all)
	}
	if _, named := from.Destinations.Named[c.Destination]; !named && c.Destination != "" {
		fmt.Fprintf(c.out, "%s is not in the policies file: it goes by the default's settings.\n\n", text.Inert(c.Destination))
	}
	for i, p := range all.Plans {
		if i > 0 {
			fmt.Fprintln(c.out)
		}
		if err := c.ladder(p); err != nil {
			return err
		}
		if own := from.Policies[p.Policy].Own; own != nil && c.MaxAttempts+c.DelayBetweenAttempts == "" {
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
func (c *cli) own(p *decision.Policy) (own decision.OwnPolicy, err error) {
	var may decision.OwnVariables
	if p.Own != nil {
		may = *p.Own
	}
	value := func(flag, variable, given string) decision.Value {
		switch {
		case given == "":
		case variable != "":
			return decision.Typed(given)
		case c.Policy != "":
			err = fmt.Errorf("%s is given, but %s lets no job say it; leave it out", flag, p.Name)
		}
		return ""
	}
	attempts := value("--max-attempts", may.MaxAttempts, c.MaxAttempts)
	delay := value("--delay-between-attempts", may.Delay, c.DelayBetweenAttempts)
	if err != nil || attempts+delay == "" {
		return own, err
	}
	own, rejection := p.ReadOwn(&decision.Variables{MaxAttempts: attempts, Delay: delay})
	if rejection != nil {
		err = rejection
	}
	return own, err
}
