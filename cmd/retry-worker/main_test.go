package main

import (
	"cmp"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retry-worker/internal/testkit"
)

// TestHelp: each command says what it does. One with commands below it lists them, and one that takes anything shows
// an example.
func TestHelp(t *testing.T) {
	testkit.Environment(t, nil)
	for _, c := range commands((&cli{}).root()) {
		help := retryWorker(append(strings.Fields(c.CommandPath())[1:], "--help")...).done(t).stdout
		wanted := []string{cmp.Or(c.Long, c.Short), "Usage:\n  " + c.CommandPath()}
		if c.HasAvailableSubCommands() {
			wanted = append(wanted, "Available Commands:\n")
		} else if takesAnything(c) {
			wanted = append(wanted, "Examples:\n  "+c.CommandPath())
		}
		for _, want := range wanted {
			if want == "" || !strings.Contains(help, want) {
				t.Errorf("%s: the help does not have %q:\n%s", c.CommandPath(), want, help)
			}
		}
	}
}

// takesAnything reports whether a command has arguments, or flags besides --help.
func takesAnything(c *cobra.Command) bool {
	flags := 0
	c.LocalNonPersistentFlags().VisitAll(func(*pflag.Flag) { flags++ })
	return flags > 1 || strings.Contains(c.Use, " ")
}

// commands returns a command and those below it.
func commands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			all = append(all, commands(below)...)
		}
	}
	return all
}

// Typing only the program's name serves nothing and makes no journal; decide needs none either.
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
