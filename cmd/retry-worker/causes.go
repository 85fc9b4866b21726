package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"retry-worker/internal/api"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
)

func (c *cli) causesCommand() *cobra.Command {
	return group("causes", "List causes of failures, teach what is done about one, take that back, or export it as rules",
		speaksToAPI+"Roles: viewer lists, shows and exports; admin teaches and forgets, each with a reason, "+
			"which the\n"+
			"audit keeps. Failures with the same policy, reason and error, without numbers, ids and dates, have one cause.\n"+
			"Exit 0 when it is done, 1 when the API refuses or does not answer, 2 for wrong use.",
		c.causesListCommand(), c.causeCommand(&cobra.Command{
			Use:     "show CAUSE",
			Short:   "Show one cause: how its failures went, and what was taught of it",
			Example: `  retry-worker causes show 0a1b2c3d4e5f6071`,
		}, "", nil), c.causesTeachCommand(), c.causesForgetCommand(), c.causesExportCommand())
}

func (c *cli) causesListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List causes, the one with the most failures first",
		Example: `  retry-worker causes list
  retry-worker causes list --taught -o json | jq -r '.items[] | [.id, .taught.by] | @tsv'`,
	}
	cmd.Flags().String("policy", "", "only those of this policy")
	cmd.Flags().Bool("taught", false, "only those that a person taught something of")
	table := tableOf(c, "CAUSE, FAILURES, TAUGHT, ERROR, RECOVERED, CLASS, LAST, POLICY", func(f *api.Cause) []any {
		return []any{f.ID, f.Failures, cmp.Or(taughtOf(f), "-"), f.Pattern, f.Recovered, f.Classification,
			minute(f.LastSeen), f.Policy}
	})
	return lists(cmd, table, "No cause found.",
		func(flags *pflag.FlagSet, _ []string) (string, url.Values, error) {
			return "/causes", query(flags, "policy", "taught"), nil
		})
}

// taughtOf is what was taught in a few words; empty where nothing was.
func taughtOf(f *api.Cause) string {
	if f.Taught == nil {
		return ""
	}
	return strings.TrimSpace(string(f.Taught.Classification) + " " + value(f.Taught.Team))
}

func (c *cli) causesTeachCommand() *cobra.Command {
	var transient bool
	var team, reason string
	cmd := c.causeCommand(&cobra.Command{
		Use:   "teach CAUSE",
		Short: "Teach that a cause is permanent, for a team to act, or transient (role admin)",
		Long: "Says what is done about a cause from now on, in place of what was taught of it before. What the error itself\n" +
			"proves stays above it: the codes that the specification names, and those of TISS in their own place.",
		Example: `  retry-worker causes teach 0a1b2c3d4e5f6071 --permanent-for cadastro --reason "a operadora confirmou"
  retry-worker causes teach 0a1b2c3d4e5f6071 --transient --reason "passa quando o lote anterior fecha"`,
	}, "/teach", func() (any, error) {
		if transient == (team != "") {
			return nil, fmt.Errorf("--transient is %t and --permanent-for %q, expected one of them", transient, team)
		}
		body := map[string]string{"classification": string(decision.Transient), "reason": reason}
		if !transient {
			body["classification"], body["team"] = string(decision.Permanent), team
		}
		return body, checkReason(reason)
	})
	flags := cmd.Flags()
	flags.BoolVar(&transient, "transient", false, "it passes by itself and is retried")
	flags.StringVar(&team, "permanent-for", "", "no retry heals it: the team that acts on it")
	flags.StringVar(&reason, "reason", "", "why, in a few words (required)")
	return cmd
}

func (c *cli) causesForgetCommand() *cobra.Command {
	var reason string
	cmd := c.causeCommand(&cobra.Command{
		Use:     "forget CAUSE",
		Short:   "Take back what was taught of a cause (role admin)",
		Example: `  retry-worker causes forget 0a1b2c3d4e5f6071 --reason "a operadora corrigiu o leiaute"`,
	}, "/teach", func() (any, error) { return api.Forgetting{Reason: reason}, checkReason(reason) })
	cmd.Flags().StringVar(&reason, "reason", "", "why, in a few words (required)")
	return cmd
}

// causeCommand completes a command about one cause, as about does.
func (c *cli) causeCommand(cmd *cobra.Command, address string, body func() (any, error)) *cobra.Command {
	cmd.Args = takes(1, 1)
	return about(c, cmd, "/causes/", address, body, c.printCause)
}

func (c *cli) printCause(f *api.Cause) {
	line, done := c.sheet()
	line("cause", f.ID)
	line("policy", f.Policy)
	line("reason", f.Reason)
	line("error", f.Pattern)
	line("class", f.Classification)
	line("seen", f.FirstSeen+" to "+f.LastSeen)
	line("failures", fmt.Sprintf("%d: %d retried, %d at the limit, %d permanent", f.Failures, f.Retried, f.Exhausted,
		f.Permanent))
	line("recovered", f.Recovered)
	if l := &f.Learnt; l.Closed > 0 {
		line("of retried ones", fmt.Sprintf("%d of %d recovered", l.Recovered, l.Closed))
		if l.Hopeless && f.Taught == nil {
			line("advice", fmt.Sprintf("treat it as permanent? `retry-worker causes teach %s --permanent-for TEAM`", f.ID))
		}
	}
	if t := f.Taught; t != nil {
		line("taught", fmt.Sprintf("%s by %s at %s: %s", taughtOf(f), t.By, t.At, t.Reason))
	}
	done()
}

func (c *cli) causesExportCommand() *cobra.Command {
	var policy string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print what was taught as rules for the policies file",
		Long: "Prints what was taught as a catalogue that extends the built-in one: a rule for each cause, with the words of\n" +
			"its error that stay the same and the newest such error as its test. Look each over, its reason above all, before\n" +
			"it goes into RETRY_WORKER_POLICIES_FILE; what is a rule there can be forgotten here. A cause whose words make no\n" +
			"rule stands in a comment.",
		Example: `  retry-worker causes export > taught.yaml && retry-worker policies check taught.yaml`,
		RunE:    func(cmd *cobra.Command, _ []string) error { return c.causesExport(cmd.Context(), policy) },
	}
	cmd.Flags().StringVar(&policy, "policy", "", "only those of this policy")
	c.server.register(cmd.Flags())
	return cmd
}

// taughtRule is a rule as a catalogue has it.
type taughtRule struct {
	Name    string          `yaml:"name"`
	Phrases []string        `yaml:"phrases,flow"`
	Reason  decision.Reason `yaml:"reason"`
	Team    string          `yaml:"team,omitempty"`
	Matches []string        `yaml:"matches"`
}

// taughtRules are those of a policy.
type taughtRules struct {
	Permanent []taughtRule `yaml:"permanent,omitempty"`
	Transient []taughtRule `yaml:"transient,omitempty"`
}

func (c *cli) causesExport(ctx context.Context, policy string) error {
	policies, left := map[string]*taughtRules{}, ""
	q := url.Values{"policy": {policy}, "taught": {"true"}}
	for more := true; more; {
		page, _, err := asked[api.Page[api.Cause]](ctx, c, "/causes?"+q.Encode(), nil)
		if err != nil {
			return err
		}
		for i := range page.Items {
			f := &page.Items[i]
			r, err := c.ruleOf(ctx, f)
			if err != nil {
				return err
			}
			if policies[f.Policy] == nil {
				policies[f.Policy] = &taughtRules{}
			}
			rules := &policies[f.Policy].Transient
			if f.Taught.Classification == decision.Permanent {
				rules = &policies[f.Policy].Permanent
			}
			*rules = append(*rules, r)
			if _, wrong := catalogueOf(policies); wrong != nil {
				*rules = slices.Delete(*rules, len(*rules)-1, len(*rules))
				if len(policies[f.Policy].Permanent)+len(policies[f.Policy].Transient) == 0 {
					delete(policies, f.Policy) // such as one that the built-in catalogue does not have
				}
				left += fmt.Sprintf("  # %s of %s makes no rule of its own here: %s\n", f.ID, inertLine(f.Policy, 60),
					inertLine(f.Pattern, 200))
			}
		}
		if more = page.Next != nil; more {
			q.Set("cursor", *page.Next)
		}
	}
	text, err := catalogueOf(policies)
	if err == nil {
		_, err = fmt.Fprintf(c.out, "%s%s", text, left)
	}
	return err
}

// ruleOf makes a rule of what was taught.
func (c *cli) ruleOf(ctx context.Context, f *api.Cause) (taughtRule, error) {
	letters, _, err := asked[api.Page[api.DeadLetter]](ctx, c, "/dead-letters?state=all&limit=1&fingerprint="+f.ID, nil)
	if err != nil {
		return taughtRule{}, err
	}
	sample, reason := f.Pattern, f.Reason
	if len(letters.Items) > 0 && letters.Items[0].Error != "" {
		sample = letters.Items[0].Error
	}
	if !slices.Contains(decision.RuleReasons(), reason) {
		if reason = "TEMPORARY_ERROR"; f.Taught.Classification == decision.Permanent {
			reason = "CLAIM_DENIED"
		}
	}
	return taughtRule{Name: "taught-" + f.ID, Phrases: []string{phraseOf(f.Pattern)}, Reason: reason,
		Team: value(f.Taught.Team), Matches: []string{sample}}, nil
}

// phraseOf is the longest part of a cause's error in which nothing differs from case to case.
func phraseOf(pattern string) (longest string) {
	for part := range strings.SplitSeq(pattern, "#") {
		if part = strings.TrimSpace(part); len(part) > len(longest) {
			longest = part
		}
	}
	return longest
}

// catalogueOf returns the rules as a catalogue, and an error where they cannot stand in one.
func catalogueOf(policies map[string]*taughtRules) ([]byte, error) {
	text, err := yaml.Marshal(struct {
		Extends  string                  `yaml:"extends"`
		Policies map[string]*taughtRules `yaml:"policies,omitempty"`
	}{"built-in", policies})
	if err == nil {
		_, err = catalogue.Parse("what was taught", text)
	}
	return text, err
}
