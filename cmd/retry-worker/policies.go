package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"retry-worker/internal/catalogue"
)

func (c *cli) policiesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policies",
		Short: "Check a policy catalogue, show the one in force, say what a file changes, or print the format's schema",
		Long: "Checks a policy catalogue before it goes live, shows the one in force, says what a file changes, and prints the JSON\n" +
			"Schema of the format.\n" +
			"In force is the file that " + policiesFileVariable + " names, or else the built-in catalogue.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unknown command %q; `%s --help` lists the commands", args[0], cmd.CommandPath())
			}
			return fmt.Errorf("expected a command behind policies: check, show, diff or schema; `%s --help` says more", cmd.CommandPath())
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(c.policiesCheckCommand(), c.policiesShowCommand(), c.policiesDiffCommand(), c.policiesSchemaCommand())
	return cmd
}

func (c *cli) policiesCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Check a policy catalogue; say where what is wrong",
		Long: "Checks a policy catalogue as the worker does when it takes it up. Exit 0 where it holds, 2 with a line for each\n" +
			"problem: file, line, field, what was found and what was expected.",
		Example: `  retry-worker policies check policies.yaml
  retry-worker policies check policies.yaml -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d files given, expected one, such as policies.yaml; `%s --help` says more", len(args), cmd.CommandPath())
			}
			return nil
		},
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
	Problems []problem `json:"problems"`
	More     int       `json:"more"`
}

type problem struct {
	Line     int    `json:"line"`
	Field    string `json:"field"`
	Found    string `json:"found"`
	Expected string `json:"expected"`
}

func (c *cli) policiesCheck(file string) error {
	checked := checkedCatalogue{File: file, Problems: []problem{}}
	policies, err := catalogue.Load(file)
	if err != nil {
		checked.fail(err)
	} else {
		rules := ruleCount(policies)
		checked.OK, checked.Version, checked.Policies, checked.Rules = true, &policies.Version, policies.Policies.Names(), &rules
	}
	switch {
	case c.json():
		if err := c.printJSON(checked); err != nil {
			return err
		}
	case err == nil:
		fmt.Fprintf(c.out, "%s holds: version %s, %s, %s\n", file, policies.Version,
			counted(len(policies.Policies), "policy", "policies"), counted(*checked.Rules, "rule", "rules"))
	}
	if err != nil {
		return &usageError{err}
	}
	return nil
}

func (checked *checkedCatalogue) fail(err error) {
	wrong, is := errors.AsType[*catalogue.Error](err)
	if !is {
		const expected = "a readable YAML file"
		checked.Problems = append(checked.Problems, problem{Field: "file", Found: strings.TrimSuffix(err.Error(), ", expected "+expected), Expected: expected})
		return
	}
	for _, p := range wrong.Problems {
		checked.Problems = append(checked.Problems, problem{p.Line, p.Field, p.Found, p.Expected})
	}
	checked.More = wrong.More
}

func ruleCount(c *catalogue.Catalogue) int {
	n := 0
	for _, p := range c.Policies {
		n += len(p.Rules.Rules())
	}
	return n
}

func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (c *cli) policiesSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the catalogue's format, for editors",
		Long:  "Prints the JSON Schema of the catalogue's format. An editor with a YAML language server then helps and checks as you write.",
		Example: `  retry-worker policies schema > policies.schema.json
  # and as the first line of policies.yaml:
  # yaml-language-server: $schema=policies.schema.json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := c.out.Write(catalogue.Schema())
			return err
		},
	}
}
