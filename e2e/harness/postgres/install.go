// Package postgres runs a real PostgreSQL on this machine, installed or fetched by Maven, for tests and benchmarks.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

const (
	// minVersion is the oldest PostgreSQL that the journal is made for.
	minVersion = 15
	// toolTime bounds one `postgres --version`.
	toolTime = 10 * time.Second
	// FetchedOnly is the environment variable that passes over what is installed, where it is "true".
	FetchedOnly = "POSTGRES_TEST_FETCHED"
)

// installedFolders are the usual places of servers that are not on the PATH, as patterns.
var installedFolders = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
}

// Install is a PostgreSQL whose server can be started. It is a value; copies are fine.
type Install struct {
	Bin     string // the folder of initdb and postgres
	Version string // "15.10"
	home    string // of a fetched one: the folder with all its files, which may be copied elsewhere
}

// Provide returns a PostgreSQL of version 15 or newer: an installed one (on the PATH, where pg_config
// says, in the usual folders of Linux and macOS, the newest first there), or else one that is fetched
// once by Maven into the user's cache. progress may be nil. Several processes may call it at a time. The
// error is one line; it wraps harness.Missing where a person must install something.
func Provide(ctx context.Context, progress func(fetch.Progress)) (Install, error) {
	if os.Getenv(FetchedOnly) != "true" {
		i, err := find(ctx)
		if _, missing := errors.AsType[harness.Missing](err); !missing {
			return i, err
		}
	}
	i, err := download(ctx, progress)
	if err != nil {
		return Install{}, fmt.Errorf("fetch PostgreSQL: %w", err)
	}
	return i, nil
}

// find is the first installed server that is new enough and runs; Missing where there is none.
func find(ctx context.Context) (Install, error) {
	var seen []string
	for _, bin := range installed(ctx) {
		if slices.Contains(seen, bin) {
			continue
		}
		seen = append(seen, bin)
		version, err := tryServer(ctx, bin)
		if ctx.Err() != nil {
			return Install{}, fmt.Errorf("find PostgreSQL: %w", ctx.Err())
		}
		if err == nil && major(version) >= minVersion {
			return Install{Bin: bin, Version: version}, nil
		}
	}
	return Install{}, harness.Missing("no PostgreSQL 15 or newer; install one, for example: apt-get install postgresql")
}

// installed are the folders to try, the first choice first.
func installed(ctx context.Context) []string {
	var bins []string
	if path, err := exec.LookPath("postgres"); err == nil {
		bins = append(bins, binOf(path)...)
	}
	if path, err := exec.LookPath("pg_config"); err == nil {
		ctx, cancel := context.WithTimeout(ctx, toolTime)
		defer cancel()
		if out, err := exec.CommandContext(ctx, path, "--bindir").Output(); err == nil {
			bins = append(bins, strings.TrimSpace(string(out)))
		}
	}
	for _, pattern := range installedFolders {
		found, _ := filepath.Glob(pattern) // a bad pattern is a test's matter
		slices.SortFunc(found, func(a, b string) int { return folderVersion(b) - folderVersion(a) })
		bins = append(bins, found...)
	}
	return bins
}

// binOf is the folder that a command on the PATH is a link into.
func binOf(path string) []string {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	return []string{filepath.Dir(resolved)}
}

var numbers = regexp.MustCompile(`\d+`)

// major is the first number of a version; 0 without one.
func major(version string) int {
	n, _ := strconv.Atoi(numbers.FindString(version))
	return n
}

// folderVersion is what the name of the folder above a bin tells, as "postgresql@16" does.
func folderVersion(bin string) int { return major(filepath.Base(filepath.Dir(bin))) }

var versionLine = regexp.MustCompile(`\(PostgreSQL\) (\d[\w.]*)`)

// tryServer runs both commands of a server as the user that they will run as, and returns the version.
func tryServer(ctx context.Context, bin string) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	for _, name := range []string{"initdb", "postgres"} {
		path := filepath.Join(bin, name)
		cmd := exec.CommandContext(ctx, path, "--version")
		cmd.Dir, cmd.WaitDelay = "/", time.Second
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: harness.Nobody()}
		out, err := cmd.CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("run %s --version: %w: %s", path, err, strings.TrimSpace(string(out)))
		}
		m := versionLine.FindSubmatch(out)
		if m == nil {
			return "", fmt.Errorf("%s --version names no version: %q", path, out)
		}
		version = string(m[1])
	}
	return version, nil
}
