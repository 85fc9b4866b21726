package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/classify"
	"retry-worker/internal/config"
	"retry-worker/internal/decision"
	"retry-worker/internal/plan"
)

func (c *cli) policiesCommand() *cobra.Command {
	return group("policies", "Check a policy catalogue, show the one in force, say what another would have decided, or "+
		"print the format's schema",
		"Checks a policy catalogue before it goes live, shows the one in force, says what another would have\n"+
			"decided on recorded failures, and prints the JSON Schema of the format.\n"+
			"In force is the file that "+policiesFileVariable+" names, or else the built-in catalogue.",
		c.policiesCheckCommand(), c.policiesShowCommand(), c.policiesDiffCommand(), c.policiesSchemaCommand())
}

func (c *cli) policiesCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a policy catalogue; say where what is wrong",
		Long: "Checks a policy catalogue as the worker does when it takes it up. Exit 0 where it holds, 2 with a line\n" +
			"for each problem: file, line, field, what was found and what was expected.",
		Example: `  retry-worker policies check policies.yaml
  retry-worker policies check policies.yaml -o json`,
		Args: takes(1, 1),
		RunE: func(_ *cobra.Command, args []string) error { return c.policiesCheck(args[0]) },
	}
}

// checkedCatalogue is what `policies check -o json` prints.
type checkedCatalogue struct {
	OK   bool   `json:"ok"`
	File string `json:"file"`
	// Version, Policies and Rules are null where it does not hold.
	Version  *string  `json:"version"`
	Policies []string `json:"policies"`
	Rules    *int     `json:"rules"`
	// Problems, at most 20; More are not listed. Of a file that cannot be read there is one, on line 0.
	Problems []catalogue.Problem `json:"problems"`
	More     int                 `json:"more"`
}

func (c *cli) policiesCheck(file string) error {
	checked := checkedCatalogue{File: file, Problems: []catalogue.Problem{}}
	policies, err := catalogue.Load(file)
	if err != nil {
		checked.fail(err)
	} else {
		rules := 0
		for _, p := range policies.Policies {
			rules += len(p.Rules.Rules())
		}
		checked.OK, checked.Version, checked.Rules = true, &policies.Version, &rules
		checked.Policies = policies.Policies.Names()
	}
	unprinted := c.print(checked, func() {
		if checked.OK {
			fmt.Fprintf(c.out, "%s holds: version %s, %s, %s\n", file, policies.Version,
				counted(len(policies.Policies), "policy", "policies"), counted(*checked.Rules, "rule", "rules"))
		}
	})
	if unprinted != nil {
		return unprinted
	}
	return wrongUse(err)
}

func (checked *checkedCatalogue) fail(err error) {
	wrong, is := errors.AsType[*catalogue.Error](err)
	if !is {
		const expected = "a readable YAML file"
		found := strings.TrimSuffix(err.Error(), ", expected "+expected)
		checked.Problems = append(checked.Problems, catalogue.Problem{Field: "file", Found: found, Expected: expected})
		return
	}
	checked.Problems, checked.More = wrong.Problems, wrong.More
}

func counted[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (c *cli) policiesSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the catalogue's format, for editors",
		Long: "Prints the JSON Schema of the catalogue's format. An editor with a YAML language server then helps and " +
			"checks as you write.",
		Example: `  retry-worker policies schema > policies.schema.json
  # and as the first line of policies.yaml:
  # yaml-language-server: $schema=policies.schema.json`,
		RunE: func(*cobra.Command, []string) error {
			_, err := c.out.Write(catalogue.Schema())
			return err
		},
	}
}

func (c *cli) policiesShowCommand() *cobra.Command {
	var file string
	var effective bool
	cmd := &cobra.Command{
		Use:   "show [NAME]",
		Short: "Show the catalogue in force, or what one of its policies says",
		Long: "Shows the catalogue in force as it was written, its version and source in the first line. With --effective " +
			"the whole,\n" +
			"where the file extends the built-in one. With a policy's name, what that policy says, in words.",
		Example: `  retry-worker policies show --effective
  retry-worker policies show tiss-submission`,
		Args: takes(0, 1),
		RunE: func(_ *cobra.Command, args []string) error {
			from, err := loadCatalogue(file)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				content := from.YAML()
				if effective {
					content = from.Effective()
				}
				return c.showCatalogue(from, content)
			}
			return c.showPolicy(from, args[0])
		},
	}
	policiesFileFlag(cmd, &file)
	cmd.Flags().BoolVar(&effective, "effective", false, "show the whole, where the file extends the built-in catalogue")
	return cmd
}

// shownCatalogue is what `policies show -o json` prints; with a name, Policy stands in place of Catalogue.
type shownCatalogue struct {
	Version   string          `json:"version"`
	Source    string          `json:"source"`
	Catalogue json.RawMessage `json:"catalogue,omitempty"`
	Name      string          `json:"name,omitempty"`
	Policy    json.RawMessage `json:"policy,omitempty"`
}

func (c *cli) showCatalogue(from *catalogue.Catalogue, content []byte) error {
	if !c.json() {
		fmt.Fprintf(c.out, "# version %s, source %s\n", from.Version, strconv.Quote(from.Source))
		_, err := c.out.Write(bytes.TrimPrefix(content, []byte("\uFEFF")))
		return err
	}
	document, _, err := asJSON(content, "")
	if err != nil {
		return err
	}
	return c.printJSON(shownCatalogue{Version: from.Version, Source: from.Source, Catalogue: document})
}

// asJSON returns a catalogue's YAML as JSON, and the part of it that is the named policy.
func asJSON(text []byte, name string) (document, policy json.RawMessage, err error) {
	var content map[string]any
	if err := yaml.Unmarshal(text, &content); err != nil {
		return nil, nil, fmt.Errorf("turn the catalogue into JSON: %w", err)
	}
	if document, err = json.Marshal(content); err != nil {
		return nil, nil, fmt.Errorf("turn the catalogue into JSON: %w", err)
	}
	policies, _ := content["policies"].(map[string]any)
	policy, err = json.Marshal(policies[name])
	return document, policy, err
}

func (c *cli) showPolicy(from *catalogue.Catalogue, name string) error {
	p := from.Policies[name]
	if p == nil {
		return &usageError{fmt.Errorf("the policy is %q, expected one of %s", name,
			strings.Join(from.Policies.Names(), ", "))}
	}
	if c.json() {
		_, policy, err := asJSON(from.Effective(), name)
		if err != nil {
			return err
		}
		return c.printJSON(shownCatalogue{Version: from.Version, Source: from.Source, Name: name, Policy: policy})
	}
	c.printPolicy(from, p)
	return nil
}

// printPolicy tells a person what p says: what it reads, its limits and backoff, and each rule in the order they are
// tried.
func (c *cli) printPolicy(from *catalogue.Catalogue, p *decision.Policy) {
	row, done := c.sheet()
	row("policy", p.Name)
	row("catalogue", from.Version+", source "+strconv.Quote(from.Source))
	row("description", p.Description)
	row("id", p.IDVariable+", matches "+p.IDPattern.String())
	row("error", p.ErrorVariable)
	row("HTTP status", p.HTTPStatusVariable)
	row("also reads", decision.RetryCountVariable+", "+decision.LastSubmissionVariable)
	if p.Own != nil {
		row("job's own", jobVariables(p.Own))
	}
	row("retries", p.MaxRetries)
	row("backoff", plan.Backoff(&p.Backoff))
	limit := "none"
	if p.TotalLimit > 0 {
		limit = plan.Words(p.TotalLimit) + " from the first failure"
	}
	row("total limit", limit)
	row("at the limit", "to "+string(p.LimitTeam))
	row("empty error", p.EmptyError)
	row("unknown error", string(cmp.Or(p.UnknownError, decision.RetryUnknown)))
	for _, team := range teamsOf(p) {
		row("team", who(from.Teams, team))
	}
	done()
	c.printRules(p.Rules.Rules())
}

// teamsOf returns the teams that p names, in alphabetical order.
func teamsOf(p *decision.Policy) []decision.Team {
	teams := []decision.Team{p.LimitTeam}
	for _, r := range p.Rules.Rules() {
		if r.Team != "" {
			teams = append(teams, r.Team)
		}
	}
	slices.Sort(teams)
	return slices.Compact(teams)
}

// jobVariables lists the variables in which a job brings its own retry policy.
func jobVariables(own *decision.OwnVariables) string {
	names := slices.DeleteFunc([]string{own.MaxAttempts, own.Delay, own.NonRetryable},
		func(name string) bool { return name == "" })
	return strings.Join(names, ", ") + " (what the job says goes before retries and backoff)"
}

// who returns a team with what it does.
func who(teams map[decision.Team]catalogue.Team, team decision.Team) string {
	if description := teams[team].Description; description != "" {
		return string(team) + " (" + description + ")"
	}
	return string(team)
}

// printRules in the order they are tried (R2).
func (c *cli) printRules(rules []classify.Rule) {
	if len(rules) == 0 {
		fmt.Fprintln(c.out, "\nno rules: every error is unknown")
		return
	}
	fmt.Fprintf(c.out, "\n%s, tried in this order:\n", counted(len(rules), "rule", "rules"))
	for i := range rules {
		c.printRule(&rules[i])
	}
}

func (c *cli) printRule(r *classify.Rule) {
	head := string(r.Class) + "  " + r.Name
	if r.Presumed() {
		head += ", presumed where no rule above matches"
	}
	if r.Reason != "" && string(r.Reason) != r.Name {
		head += ", reason " + string(r.Reason)
	}
	if r.Team != "" {
		head += ", to " + string(r.Team)
	}
	fmt.Fprintln(c.out, head)
	for _, finds := range []struct {
		what  string
		items []string
	}{
		{"codes", r.Codes}, {"HTTP statuses", r.Statuses}, {"TISS faults", r.TISSFaults}, {"TISS codes", r.TISSCodes},
		{"phrases", r.Phrases}, {"refusals", r.Refusals}, {"approvals", r.Approvals}, {"things", r.Things},
		{"patterns", r.Patterns},
	} {
		if len(finds.items) > 0 && !slices.Equal(finds.items, []string{r.Name}) {
			fmt.Fprintf(c.out, "           %s: %s\n", finds.what, strings.Join(finds.items, ", "))
		}
	}
	if r.Hint != "" {
		fmt.Fprintf(c.out, "           hint: %s\n", r.Hint)
	}
}

// policiesFileVariable names the catalogue for the worker and for every command that reads policies.
const policiesFileVariable = "RETRY_WORKER_POLICIES_FILE"

// policiesFileFlag lets a command read another catalogue than the worker does.
func policiesFileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "policies-file", "",
		"policy catalogue to read; left out: "+policiesFileVariable+", or else the built-in one")
}

// loadCatalogue returns the catalogue in file, or in the one that the environment names, or the built-in one. A wrong
// one is wrong input, a line for each problem.
func loadCatalogue(file string) (*catalogue.Catalogue, error) {
	if file == "" {
		var err error
		if file, err = config.PoliciesFile(); err != nil {
			return nil, &usageError{err}
		}
	}
	if file == "" {
		return catalogue.Default(), nil
	}
	c, err := catalogue.Load(file)
	if err != nil {
		return nil, &usageError{err}
	}
	return c, nil
}
