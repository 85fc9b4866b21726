package main

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/config"
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
		Args: takes(1),
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
	if checked.OK || c.json() {
		if err := c.print(checked); err != nil {
			return err
		}
	}
	return wrongUse(err)
}

func (checked *checkedCatalogue) fail(err error) {
	if wrong, is := errors.AsType[*catalogue.Error](err); is {
		checked.Problems, checked.More = wrong.Problems, wrong.More
		return
	}
	const expected = "a readable YAML file"
	found := strings.TrimSuffix(err.Error(), ", expected "+expected)
	checked.Problems = append(checked.Problems, catalogue.Problem{Field: "file", Found: found, Expected: expected})
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
			"where the file extends the built-in one. With a policy's name, that policy alone, of the whole.",
		Example: `  retry-worker policies show --effective
  retry-worker policies show tiss-submission`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			from, err := loadCatalogue(file)
			if err != nil {
				return err
			}
			if len(args) > 0 {
				return c.showPolicy(from, args[0])
			}
			content := from.YAML()
			if effective {
				content = from.Effective()
			}
			return c.showCatalogue(from, content)
		},
	}
	policiesFileFlag(cmd, &file)
	cmd.Flags().BoolVar(&effective, "effective", false, "show the whole, where the file extends the built-in catalogue")
	return cmd
}

// shownCatalogue is what `policies show -o json` prints; with a name, Policy stands in place of Catalogue.
type shownCatalogue struct {
	Version   string `json:"version"`
	Source    string `json:"source"`
	Catalogue any    `json:"catalogue,omitempty"`
	Name      string `json:"name,omitempty"`
	Policy    any    `json:"policy,omitempty"`
}

func (c *cli) showCatalogue(from *catalogue.Catalogue, content []byte) error {
	if !c.json() {
		return c.printYAML(from, bytes.TrimPrefix(content, []byte("\uFEFF")))
	}
	var document any
	if err := yaml.Unmarshal(content, &document); err != nil {
		return fmt.Errorf("turn the catalogue into JSON: %w", err)
	}
	return c.print(shownCatalogue{Version: from.Version, Source: from.Source, Catalogue: document})
}

func (c *cli) showPolicy(from *catalogue.Catalogue, name string) error {
	if err := knownPolicy(from, name); err != nil {
		return err
	}
	var document struct {
		Policies map[string]any `yaml:"policies"`
	}
	if err := yaml.Unmarshal(from.Effective(), &document); err != nil {
		return fmt.Errorf("read the catalogue: %w", err)
	}
	policy := document.Policies[name]
	if c.json() {
		return c.print(shownCatalogue{Version: from.Version, Source: from.Source, Name: name, Policy: policy})
	}
	text, err := yaml.Marshal(policy)
	if err != nil {
		return fmt.Errorf("write the policy: %w", err)
	}
	return c.printYAML(from, text)
}

// printYAML prints what a catalogue says, below where it is from.
func (c *cli) printYAML(from *catalogue.Catalogue, text []byte) error {
	fmt.Fprintf(c.out, "# version %s, source %s\n", from.Version, strconv.Quote(from.Source))
	_, err := c.out.Write(text)
	return err
}

// knownPolicy says that a catalogue has no policy of that name, if so.
func knownPolicy(from *catalogue.Catalogue, name string) error {
	if from.Policies[name] != nil {
		return nil
	}
	return &usageError{fmt.Errorf("the policy is %q, expected one of %s", name, strings.Join(from.Policies.Names(), ", "))}
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
