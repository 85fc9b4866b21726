package main

import (
	"github.com/spf13/cobra"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/config"
)

// policiesFileVariable names the catalogue for the worker and for every command that reads policies.
const policiesFileVariable = "RETRY_WORKER_POLICIES_FILE"

// policiesFileFlag lets a command read another catalogue than the worker does.
func policiesFileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "policies-file", "", "policy catalogue to read; left out: "+policiesFileVariable+", or else the built-in one")
}

// loadCatalogue is the catalogue in file, or in the one that the environment names, or the built-in one. A wrong one is
// wrong input, a line for each problem.
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
