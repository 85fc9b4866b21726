package main

import (
	"cmp"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
)

// TestHelp: each command says what it does, and each flag what it is for. One with commands below it lists them, and one that
// takes anything shows an example.
func TestHelp(t *testing.T) {
	testkit.Environment(t, nil)
	for _, c := range commands((&cli{}).root()) {
		help := retryWorker(append(strings.Fields(c.CommandPath())[1:], "--help")...).done(t).stdout
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: nothing is said of --%s", c.CommandPath(), f.Name)
			}
		})
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

// TestCommandsAreDescribed: commands.txt describes no flag that its command does not have, and no task is without a command.
func TestCommandsAreDescribed(t *testing.T) {
	root := (&cli{}).root()
	all, tasks := commands(root), (&cli{}).tasks()
	for n, entry := range strings.Split(strings.TrimSpace(commandsText), "\n\n") {
		described := entryOf(entry)
		delete(tasks, described.path)
		of := all // the first entry is the program's, with flags that several have
		if n > 0 {
			found, _, err := root.Find(strings.Fields(described.path))
			testkit.Must(t, err)
			of = []*cobra.Command{found}
		}
		for flag := range described.usages {
			if !slices.ContainsFunc(of, func(c *cobra.Command) bool { return c.Flags().Lookup(flag) != nil }) {
				t.Errorf("%s: there is no --%s", described.path, flag)
			}
		}
	}
	for path := range tasks {
		t.Errorf("commands.txt does not describe %s", path)
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

func TestDecideWithoutNowIsNow(t *testing.T) {
	before := time.Now().Truncate(time.Second)
	o := retryWorker("decide", "--id", "CLM-1-1", "--error", "TIMEOUT", "-o", "json").object(t)
	next, err := time.Parse(time.RFC3339, o["nextRetryTime"].(string))
	testkit.Must(t, err)
	analysed := next.Add(-time.Duration(o["backoffMinutes"].(float64)) * time.Minute)
	if analysed.Before(before) || analysed.After(time.Now()) {
		t.Errorf("analysed at %v, want now (%v)", analysed, before)
	}
}

func TestMain(m *testing.M) { harness.Main(m) }

// TestProductionAlone: the program holds neither the development engine nor the samples, nor anything made for tests, by
// whatever way.
func TestProductionAlone(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil || !strings.Contains(string(out), "retry-worker/internal/app\n") {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	foreign := regexp.MustCompile(`(?m)^(retry-worker/(internal/(engine|demo|testkit|sim)|e2e|bench|tools).*|testing)$`)
	if found := foreign.FindAllString(string(out), -1); found != nil {
		t.Errorf("the program holds %q", found)
	}
}
