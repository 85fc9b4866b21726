// Package postgres runs a real PostgreSQL on this machine, for tests and benchmarks.
package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

// minVersion is the oldest PostgreSQL that the journal is made for.
const minVersion = 15

// installedFolders are the usual places of servers on Linux and macOS.
var installedFolders = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin"}

// Install is a PostgreSQL whose server can be started. It is a value; copies are fine.
type Install struct {
	Bin     string // the folder of initdb and postgres
	Version string // "15.10"
}

// Provide returns a PostgreSQL of version 15 or newer: an installed one, or else Debian's, which is installed by apt-get where
// this process is root on a machine that starts no services. Several processes may call it at a time. The error is one line;
// it is harness.Missing where a person must install one.
func Provide() (Install, error) { return provided() }

var provided = fetch.Once(find, func(ctx context.Context) error {
	const services = "/run/systemd/system"
	if _, err := os.Stat(services); err == nil {
		return fmt.Errorf("it is not installed by itself where %s is, which would start it as a service", services)
	}
	return fetch.Debian(ctx, "PostgreSQL", "postgresql")
})

// find is an installed PostgreSQL that is new enough and runs, as the user that it will run as; Missing where there is none.
func find(ctx context.Context) (Install, error) {
	for _, pattern := range installedFolders {
		found, _ := filepath.Glob(pattern)
		for _, bin := range found {
			if version, err := tryServer(ctx, bin); err == nil && major(version) >= minVersion {
				return Install{Bin: bin, Version: version}, nil
			}
		}
	}
	return Install{}, harness.Missing(fmt.Sprintf("no PostgreSQL %d or newer", minVersion))
}

var numbers = regexp.MustCompile(`\d+`)

// major is the first number of a version; 0 without one.
func major(version string) int {
	n, _ := strconv.Atoi(numbers.FindString(version))
	return n
}

// tryServer runs both commands of a server as the user that they will run as, and returns the version.
func tryServer(ctx context.Context, bin string) (version string, err error) {
	for _, name := range []string{"initdb", "postgres"} {
		p, err := harness.Run(ctx, harness.Command{Path: filepath.Join(bin, name), Args: []string{"--version"}, Dir: "/", User: harness.Nobody()})
		if err != nil {
			return "", err
		}
		_, version, _ = strings.Cut(p.LastLine(), "(PostgreSQL) ")
	}
	version, _, _ = strings.Cut(version, " ")
	return version, nil
}
