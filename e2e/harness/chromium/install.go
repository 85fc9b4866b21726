// Package chromium runs a real headless Chromium on this machine, without a way beyond it, for tests of what a browser shows.
package chromium

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/fetch"
)

// minVersion is the oldest that knows all that the tests ask of it.
const minVersion = 120

// shell is Debian's package and command of a Chromium that has no window: pages cost it a quarter of what they cost the whole browser.
const shell = "chromium-headless-shell"

// commands are the names that browsers of this kind go by on the PATH, the first choice first, and where macOS keeps them.
var commands = []string{
	shell, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
	"/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
}

// Install is a browser that can be started. It is a value; copies are fine.
type Install struct {
	Path    string
	Version string // "156.0.8078.79"
}

// Require returns a Chromium, or a Chrome, of version 120 or newer: an installed one, or else Debian's, which is installed by apt-get
// where this process is root. Where there is none to be had, the test ends as [harness.Require] says.
func Require(t testing.TB) Install {
	t.Helper()
	harness.SkipIfShort(t)
	i, err := provided()
	harness.Require(t, "Chromium", err, "apt-get install -y "+shell)
	return i
}

var provided = fetch.Once(find, func(ctx context.Context) error {
	return fetch.Debian(ctx, "Chromium or Chrome", shell, "fonts-dejavu-core")
})

var versionLine = regexp.MustCompile(`(?:Chromium|Chrome)\D* ((\d+)(?:\.\d+)+)`)

// find is the first installed browser that is new enough and runs, as the user that it will run as; Missing where there is none.
func find(ctx context.Context) (Install, error) {
	for _, name := range commands {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		out := &harness.Tail{} // what it complains of on standard error is no version
		if _, err := harness.Run(ctx, harness.Command{Path: path, Args: []string{"--version"}, Dir: "/", User: harness.Nobody(), Screen: out}); err != nil {
			continue // a stub that only says where to buy one, say
		}
		if m := versionLine.FindStringSubmatch(out.LastLine()); m != nil {
			if major, _ := strconv.Atoi(m[2]); major >= minVersion {
				return Install{Path: path, Version: m[1]}, nil
			}
		}
	}
	return Install{}, harness.Missing(fmt.Sprintf("no Chromium %d or newer", minVersion))
}
