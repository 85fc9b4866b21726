package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"retry-worker/internal/metrics"
)

// Set by the linker (see the Makefile).
var (
	version = "dev"
	commit  = "unknown"
	date    = "unknown" // of the commit, RFC 3339
)

func build() metrics.Build {
	return metrics.Build{Version: version, Commit: commit, GoVersion: runtime.Version()}
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		RunE: func(*cobra.Command, []string) error {
			b := build()
			shown := map[string]string{"version": b.Version, "commit": b.Commit, "date": date, "goVersion": b.GoVersion}
			return c.print(shown, func() {
				fmt.Fprintf(c.out, "retry-worker %s (commit %s of %s, %s)\n", b.Version, b.Commit, date, b.GoVersion)
			})
		},
	}
}
