package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"retry-worker/internal/audit"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/config"
	"retry-worker/internal/decision"
	"retry-worker/internal/store"
)

func (c *cli) policiesCommand() *cobra.Command {
	return group("policies", "Check a policy catalogue, show the one in force, or say what another would have decided",
		"In force is the file that "+policiesFileVariable+" names, or else the built-in catalogue.",
		&cobra.Command{
			Use:   "check FILE",
			Short: "Check a policy catalogue; say where what is wrong",
			Long: "Checks a policy catalogue as the worker does when it takes it up. Exit 0 if it is sound, 2 with a line\n" +
				"for each problem: file, line, field, what was found and what was expected.",
			Example: "  retry-worker policies check policies.yaml",
			Args:    takes(1),
			RunE:    func(_ *cobra.Command, args []string) error { return c.policiesCheck(args[0]) },
		}, c.policiesShowCommand(), c.policiesDiffCommand(),
		&cobra.Command{
			Use:   "schema",
			Short: "Print the JSON Schema of the catalogue's format, for editors",
			Example: `  retry-worker policies schema > policies.schema.json
  # and as the first line of policies.yaml:
  # yaml-language-server: $schema=policies.schema.json`,
			RunE: func(*cobra.Command, []string) error {
				_, err := c.out.Write(catalogue.Schema())
				return err
			},
		})
}

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

func (c *cli) policiesCheck(file string) error {
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
	return wrongUse(err)
}

func (c *cli) policiesShowCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the catalogue in force",
		Long: "Shows the catalogue in force, its version and source in the first line: the whole, where the file extends\n" +
			"the built-in one.",
		Example: "  retry-worker policies show > policies.yaml\n  retry-worker policies show --policies-file policies.yaml",
	}
	file := policiesFileFlag(cmd)
	cmd.RunE = func(*cobra.Command, []string) error {
		from, err := loadCatalogue(*file)
		if err != nil {
			return err
		}
		if !c.json() {
			_, err := fmt.Fprintf(c.out, "# version %s, source %s\n%s", from.Version, strconv.Quote(from.Source),
				bytes.TrimPrefix(from.Effective(), []byte("\uFEFF")))
			return err
		}
		shown := shownCatalogue{Version: from.Version, Source: from.Source}
		if err := yaml.Unmarshal(from.Effective(), &shown.Catalogue); err != nil {
			return fmt.Errorf("turn the catalogue into JSON: %w", err)
		}
		return c.print(shown)
	}
	return cmd
}

// shownCatalogue is what `policies show -o json` prints.
type shownCatalogue struct {
	Version   string `json:"version"`
	Source    string `json:"source"`
	Catalogue any    `json:"catalogue"`
}

// policiesFileVariable names the policies file for the worker and for every command that reads policies.
const policiesFileVariable = "RETRY_WORKER_POLICIES_FILE"

// policiesFileFlag adds the flag for another policies file than the worker's.
func policiesFileFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("policies-file", "", "policy catalogue to read; left out: "+policiesFileVariable+", or else the built-in one")
}

// loadCatalogue returns the catalogue in file, or in the file that the environment names, or the built-in one. An
// invalid one is a usageError with a line for each problem.
func loadCatalogue(file string) (_ *catalogue.Catalogue, err error) {
	if file == "" {
		var settings config.Settings
		settings, err = config.Load(policiesFileVariable)
		file = settings.PoliciesFile
	}
	if err == nil && file == "" {
		return catalogue.Default(), nil
	}
	var from *catalogue.Catalogue
	if err == nil {
		from, err = catalogue.Load(file)
	}
	return from, wrongUse(err)
}

func (c *cli) policiesDiffCommand() *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Say what catalogue B would have decided otherwise than A on recorded failures",
		Long: "Replays the failures that the journal holds through two catalogues, and counts by policy those that B\n" +
			"decides otherwise than A (one retries, the other gives up, or to another team) and those that B retries\n" +
			"earlier or later. Not comparable are those of which the journal does not hold all that a decision\n" +
			"needs, such as a retry policy that the job brought. A and B are files, or " + builtInName + ". What was taught\n" +
			"holds in both. Reads the journal that RETRY_WORKER_DATABASE_URL names, beside a running worker too.",
		Example: "  retry-worker policies diff built-in policies.yaml --since 30d",
		Args:    takes(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.policiesDiff(cmd.Context(), args[0], args[1], since)
		},
	}
	cmd.Flags().StringVar(&since, "since", "90d", "first failure: an instant, a date, or an age such as 30d")
	return cmd
}

// builtInName stands for the built-in catalogue in place of a file.
const builtInName = "built-in"

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

func (c *cli) policiesDiff(ctx context.Context, a, b, since string) error {
	from, err := instantOf("--since", since)
	if err != nil {
		return err
	}
	var catalogues [2]*catalogue.Catalogue
	for i, file := range []string{a, b} {
		if catalogues[i] = catalogue.Default(); file != builtInName {
			if catalogues[i], err = loadCatalogue(file); err != nil {
				return err
			}
		}
	}
	return readJournal(ctx, func(ctx context.Context, reader store.Reader) error {
		line := c.progress("failures replayed")
		defer line.end()
		differences, err := audit.Replay(ctx, reader, from, catalogues[0].Policies, catalogues[1].Policies, line.show)
		if err != nil {
			return err
		}
		diff := policiesDiff{Since: decision.Instant(from), A: catalogues[0].Version, B: catalogues[1].Version,
			Policies: []policyDiff{}}
		for _, policy := range slices.Sorted(maps.Keys(differences)) {
			diff.Differences.Add(differences[policy])
			diff.Policies = append(diff.Policies, policyDiff{policy, *differences[policy]})
		}
		return c.print(diff)
	})
}
