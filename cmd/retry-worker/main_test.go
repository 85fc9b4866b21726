package main

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// TestHelp: what each command says of itself is a file of testdata/help, and no other file is there.
func TestHelp(t *testing.T) {
	testkit.Environment(t, nil)
	all := paths((&cli{}).root())
	for _, path := range all {
		name := strings.ReplaceAll(strings.TrimPrefix(path, "retry-worker "), " ", "-")
		t.Run(name, func(t *testing.T) {
			r := retryWorker(append(strings.Fields(path)[1:], "--help")...).done(t)
			golden.Check(t, "testdata/help/"+name+".txt", r.stdout)
		})
	}
	files, err := os.ReadDir("testdata/help")
	if err != nil || len(files) != len(all) {
		t.Errorf("%d files of %d commands (%v)", len(files), len(all), err)
	}
}

// paths of a command and of those below it, as they are typed.
func paths(c *cobra.Command) []string {
	all := []string{c.CommandPath()}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			all = append(all, paths(below)...)
		}
	}
	return all
}

// Nothing is served, and no journal is made, by who only types the program's name; decide needs none either.
func TestWithoutACommandHelpIsPrinted(t *testing.T) {
	t.Chdir(t.TempDir())
	testkit.Environment(t, nil)
	if r, help := retryWorker(), retryWorker("--help"); r != help || r.code != exitDone {
		t.Errorf("got %+v, want %+v", r, help)
	}
	retryWorker("decide", "--id", "CLM-1-1", "--error", "TIMEOUT").done(t)
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("it leaves %v behind (%v)", files, err)
	}
}

func TestVersion(t *testing.T) {
	r := retryWorker("version")
	if want := "retry-worker dev (commit unknown of unknown, " + runtime.Version() + ")\n"; r.stdout != want || r.code != exitDone {
		t.Errorf("got %q, exit %d, want %q", r.stdout, r.code, want)
	}
	o := retryWorker("version", "-o", "json").object(t)
	if o["version"] != "dev" || o["commit"] != "unknown" || o["date"] != "unknown" || o["goVersion"] != runtime.Version() || len(o) != 4 {
		t.Errorf("got %v", o)
	}
}
