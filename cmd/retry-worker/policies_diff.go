package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"retry-worker/internal/catalogue"
)

func (c *cli) policiesDiffCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "diff [FILE]",
		Short: "Say what a policy catalogue changes against the built-in one",
		Long: "Says what a policy catalogue changes against the built-in one, a line each: what stands where, and what stands there now.\n" +
			"Without a file, of the catalogue in force.",
		Example: `  retry-worker policies diff policies.yaml
  retry-worker policies diff -o json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("%d files given, expected one at most; `%s --help` says more", len(args), cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			file := ""
			if len(args) > 0 {
				file = args[0]
			}
			from, err := loadCatalogue(file)
			if err != nil {
				return err
			}
			return c.policiesDiff(from)
		},
	}
}

// changedCatalogue is what `policies diff -o json` prints.
type changedCatalogue struct {
	Version string             `json:"version"`
	Source  string             `json:"source"`
	BuiltIn string             `json:"builtIn"` // the built-in catalogue's version
	Changes []catalogue.Change `json:"changes"`
}

func (c *cli) policiesDiff(from *catalogue.Catalogue) error {
	builtIn := catalogue.Default()
	changes := catalogue.Changes(builtIn, from)
	if c.json() {
		return c.printJSON(changedCatalogue{from.Version, from.Source, builtIn.Version, append([]catalogue.Change{}, changes...)})
	}
	for _, change := range changes {
		fmt.Fprintln(c.out, change)
	}
	if len(changes) == 0 {
		fmt.Fprintln(c.out, "nothing differs from the built-in catalogue")
	}
	return nil
}
