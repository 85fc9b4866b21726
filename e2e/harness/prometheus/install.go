// Package prometheus runs a real Prometheus and promtool on this machine, installed or fetched by apt-get, for tests.
package prometheus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

const (
	// minMajor and minMinor are the oldest that the tests are made for: Debian 12's.
	minMajor, minMinor = 2, 42
	// toolTime bounds one `promtool --version`.
	toolTime = 20 * time.Second
	// fetchTime bounds what apt-get does, and fetchGrace its end.
	fetchTime  = 10 * time.Minute
	fetchGrace = 10 * time.Second
	// InstallCommand is what a person types where this package may not.
	InstallCommand = "apt-get install -y prometheus"
)

// Install is a Prometheus that can be started. It is a value; copies are fine.
type Install struct {
	Server, Promtool string // paths of the two programs
	Version          string // "2.42.0+ds"
}

// Provide returns a Prometheus of version 2.42 or newer with its promtool: an installed one, or Debian's package, which is
// downloaded by apt-get and unpacked in the user's cache: nothing is installed, no service started. say hears of it before,
// and may be nil. Several processes may call it at a time. The error is one line; it wraps harness.Missing where a person must
// install something.
func Provide(ctx context.Context, say func(string)) (Install, error) {
	i, err := find(ctx, "")
	if _, missing := errors.AsType[harness.Missing](err); !missing {
		return i, err
	}
	cache, errCache := fetch.CacheDir()
	if errCache != nil {
		return Install{}, errCache
	}
	item := fetch.Item{Dir: filepath.Join(cache, "prometheus"), Proof: "usr/bin/promtool"}
	item.Fill = func(ctx context.Context, dir string) error { return download(ctx, dir, say) }
	if errFetch := item.Provide(ctx, fetch.NewReporter("Prometheus", nil)); errFetch != nil {
		return Install{}, harness.Missing(fmt.Sprintf("%v; %v", err, errFetch))
	}
	return find(ctx, filepath.Join(item.Dir, "usr/bin"))
}

// find is the Prometheus in a folder, or on the PATH where it is empty; Missing where there is none that is new enough.
func find(ctx context.Context, dir string) (Install, error) {
	var i Install
	for name, path := range map[string]*string{"prometheus": &i.Server, "promtool": &i.Promtool} {
		found, err := exec.LookPath(filepath.Join(dir, name))
		if err != nil {
			return Install{}, harness.Missing("no " + name + " on the PATH")
		}
		*path = found
		version, err := versionOf(ctx, found, name)
		if err != nil {
			return Install{}, harness.Missing(err.Error())
		}
		if !recent(version) {
			return Install{}, harness.Missing(fmt.Sprintf("no Prometheus %d.%d or newer (found: %s at %s)", minMajor, minMinor, version, found))
		}
		i.Version = version
	}
	return i, nil
}

var versionLine = regexp.MustCompile(`^\w+, version (\S+)`)

func versionOf(ctx context.Context, path, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("run %s --version: %w", path, err)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%s at %s is another program than Prometheus's", name, path)
	}
	return string(m[1]), nil
}

var numbers = regexp.MustCompile(`\d+`)

func recent(version string) bool {
	parts := numbers.FindAllString(version, 2)
	if len(parts) < 2 {
		return false
	}
	major, errMajor := strconv.Atoi(parts[0])
	minor, errMinor := strconv.Atoi(parts[1])
	return errMajor == nil && errMinor == nil && cmp.Or(cmp.Compare(major, minMajor), cmp.Compare(minor, minMinor)) >= 0
}

// download has apt-get fetch Debian's package, which anybody may, and unpacks it into dir.
func download(ctx context.Context, dir string, say func(string)) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return errors.New("put prometheus and promtool on the PATH")
	}
	if say != nil {
		say("Prometheus is not there: downloading Debian's package by apt-get")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	fetching := []string{"download", "-q", "prometheus"}
	if err = run(ctx, dir, apt, fetching...); err != nil && os.Geteuid() == 0 { // its lists may be missing, or old
		if err = run(ctx, dir, apt, "update", "-q", "-o", "DPkg::Lock::Timeout=300"); err == nil {
			err = run(ctx, dir, apt, fetching...)
		}
	}
	if err != nil {
		return err
	}
	packages, err := filepath.Glob(filepath.Join(dir, "prometheus_*.deb"))
	if err != nil || len(packages) != 1 {
		return fmt.Errorf("`apt-get download prometheus` left %d packages, expected one", len(packages))
	}
	if err := run(ctx, dir, "dpkg-deb", "--extract", packages[0], dir); err != nil {
		return err
	}
	return os.Remove(packages[0])
}

// run runs a program in dir to its end, or until ctx ends.
func run(ctx context.Context, dir, name string, args ...string) error {
	path, err := exec.LookPath(name)
	if err != nil {
		return err
	}
	p, err := harness.Start(harness.Command{Path: path, Args: args, Dir: dir, Env: append(os.Environ(), "LC_ALL=C.UTF-8")})
	if err != nil {
		return err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(ctx.Err(), p.Stop(context.WithoutCancel(ctx), fetchGrace))
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("`%s %s` failed: %w: %s", filepath.Base(name), strings.Join(args, " "), err, p.LastLine())
	}
	return nil
}
