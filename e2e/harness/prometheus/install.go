// Package prometheus runs a real Prometheus and promtool on this machine, installed or fetched by apt-get, for tests.
package prometheus

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

// minMajor and minMinor are the oldest that the tests are made for: Debian 12's.
const minMajor, minMinor = 2, 42

// Install is a Prometheus that can be started. It is a value; copies are fine.
type Install struct {
	Server, Promtool string // paths of the two programs
	Version          string // "2.42.0+ds"
}

// Require returns a Prometheus of version 2.42 or newer with its promtool: an installed one, or Debian's package, which is downloaded
// by apt-get and unpacked in the user's cache: nothing is installed, no service started. Where there is none to be had, the test ends
// as [harness.Require] says.
func Require(t testing.TB) Install {
	t.Helper()
	harness.SkipIfShort(t)
	i, err := provided()
	harness.Require(t, "Prometheus", err, "apt-get install -y prometheus")
	return i
}

// folder of the programs, once they were fetched; empty before.
var folder string

var provided = fetch.Once(find, func(ctx context.Context) error {
	item := fetch.Item{Name: "prometheus", Proof: "usr/bin/promtool", Fill: download}
	dir, err := item.Provide(ctx, harness.Say)
	folder = filepath.Join(dir, "usr/bin")
	return err
})

var versionLine = regexp.MustCompile(`(?m)^\w+, version ((\d+)\.(\d+)\S*)`)

// find is the Prometheus in the folder, or on the PATH where there is none; Missing where it is too old, too.
func find(ctx context.Context) (i Install, err error) {
	for name, path := range map[string]*string{"prometheus": &i.Server, "promtool": &i.Promtool} {
		if *path, err = exec.LookPath(filepath.Join(folder, name)); err != nil {
			return Install{}, harness.Missing("no " + name + " on the PATH")
		}
		out, err := exec.CommandContext(ctx, *path, "--version").CombinedOutput()
		m := versionLine.FindSubmatch(out)
		if err != nil || m == nil {
			return Install{}, harness.Missing(*path + " is not Prometheus's")
		}
		major, _ := strconv.Atoi(string(m[2]))
		minor, _ := strconv.Atoi(string(m[3]))
		if major < minMajor || major == minMajor && minor < minMinor {
			return Install{}, harness.Missing(fmt.Sprintf("no Prometheus %d.%d or newer (found: %s at %s)", minMajor, minMinor, m[1], *path))
		}
		i.Version = string(m[1])
	}
	return i, nil
}

// download has apt-get fetch Debian's package, which anybody may, and unpacks it into dir.
func download(ctx context.Context, dir string) error {
	err := fetch.AptGet(ctx, dir, "download", "prometheus")
	if err != nil && os.Geteuid() == 0 { // its lists may be missing, or old
		if err = fetch.AptGet(ctx, dir, "update"); err == nil {
			err = fetch.AptGet(ctx, dir, "download", "prometheus")
		}
	}
	if err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(dir, "prometheus_*.deb"))
	if err != nil || len(packages) != 1 {
		return fmt.Errorf("`apt-get download prometheus` left %d packages, expected one", len(packages))
	}
	if out, err := exec.CommandContext(ctx, "dpkg-deb", "--extract", packages[0], dir).CombinedOutput(); err != nil {
		return fmt.Errorf("unpack Prometheus: %w: %s", err, out)
	}
	return os.Remove(packages[0])
}
