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

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/audit"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/config"
	"retry-worker/internal/decision"
	"retry-worker/internal/store"
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
	return wrongUse(err)
}

// policiesSchema prints the JSON Schema of the catalogue's format.
func (c *cli) policiesSchema(context.Context, []string) error {
	_, err := c.out.Write(catalogue.Schema())
	return err
}

func (c *cli) policiesShow(_ *command, f *fileFlag, _ []string) error {
	from, err := loadCatalogue(f.PoliciesFile)
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

// shownCatalogue is what `policies show -o json` prints.
type shownCatalogue struct {
	Version   string `json:"version"`
	Source    string `json:"source"`
	Catalogue any    `json:"catalogue"`
}

// fileFlag names another policies file than the worker's.
type fileFlag struct{ PoliciesFile string }

// loadCatalogue returns the catalogue in file, or in the file that the environment names, or the built-in one. An
// invalid one is a usageError with a line for each problem.
func loadCatalogue(file string) (_ *catalogue.Catalogue, err error) {
	if file == "" {
		var settings config.Settings
		settings, err = config.Load("RETRY_WORKER_POLICIES_FILE")
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

type diffFlags struct{ Since string }

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

func (c *cli) policiesDiff(cmd *command, f *diffFlags, args []string) error {
	from, err := instantOf("--since", f.Since)
	if err != nil {
		return err
	}
	var catalogues [2]*catalogue.Catalogue
	for i, file := range args {
		if catalogues[i] = catalogue.Default(); file != builtInName {
			if catalogues[i], err = loadCatalogue(file); err != nil {
				return err
			}
		}
	}
	return readJournal(cmd.Context(), func(ctx context.Context, reader store.Reader) error {
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
