// Package chromium runs a real headless Chromium on this machine, without a way beyond it, for tests of what a browser shows.
package chromium

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

const (
	// minVersion is the oldest that knows all that the tests ask of it.
	minVersion = 120
	// toolTime bounds one `chromium --version`.
	toolTime = 20 * time.Second
	// InstallCommand is what a person types where this package may not.
	InstallCommand = "apt-get install -y chromium"
)

// commands are the names that browsers of this kind go by on the PATH, the first choice first, and where
// macOS keeps them.
var commands = []string{
	"chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
	"/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
}

// Install is a browser that can be started. It is a value; copies are fine.
type Install struct {
	Path    string
	Version string // "156.0.8078.79"
}

// Provide returns a Chromium, or a Chrome, of version 120 or newer: an installed one, or else Debian's,
// which is installed by apt-get where this process is root; say hears of it before, and may be nil. The
// error is one line; it wraps harness.Missing where a person must install something.
func Provide(ctx context.Context, say func(string)) (Install, error) {
	i, err := find(ctx)
	if _, missing := errors.AsType[harness.Missing](err); !missing {
		return i, err
	}
	if errApt := fetch.Debian(ctx, "Chromium or Chrome", say, "chromium", "fonts-dejavu-core"); errApt != nil {
		return Install{}, harness.Missing(fmt.Sprintf("%v; %v", err, errApt))
	}
	return find(ctx)
}

// find is the first installed browser that is new enough and runs; Missing where there is none.
func find(ctx context.Context) (Install, error) {
	var older []string
	for _, name := range commands {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		version, err := versionOf(ctx, path)
		if ctx.Err() != nil {
			return Install{}, fmt.Errorf("find Chromium: %w", ctx.Err())
		}
		switch {
		case err != nil: // a stub that only says where to buy one, say
			older = append(older, path+", which does not run")
		case major(version) < minVersion:
			older = append(older, version+" at "+path)
		default:
			return Install{Path: path, Version: version}, nil
		}
	}
	found := "none"
	if len(older) > 0 {
		found = strings.Join(older, ", ")
	}
	return Install{}, harness.Missing(fmt.Sprintf("no Chromium %d or newer (found: %s)", minVersion, found))
}

var versionLine = regexp.MustCompile(`(?:Chromium|Chrome)\D* (\d+(?:\.\d+)+)`)

// versionOf runs a browser's --version, as the user that it will run as.
func versionOf(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.Dir, cmd.WaitDelay = "/", time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: harness.Nobody()}
	out, err := cmd.Output() // what it complains of on standard error is no version
	if err != nil {
		return "", fmt.Errorf("run %s --version: %w", path, err)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return "", fmt.Errorf("%s --version names no version: %q", path, out)
	}
	return string(m[1]), nil
}

func major(version string) int {
	first, _, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(first) // digits, by the pattern
	return n
}

// enterable is whether everybody may go through a folder and those above it.
func enterable(dir string) bool {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	for ; ; resolved = filepath.Dir(resolved) {
		info, err := os.Stat(resolved)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if resolved == filepath.Dir(resolved) {
			return true
		}
	}
}
