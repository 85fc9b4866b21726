package chromium

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
)

// machine is a PATH with commands of a test's own.
type machine struct {
	t    *testing.T
	path string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "chromium-test-") // where nobody can get to
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("PATH", dir)
	return machine{t, dir}
}

func (m machine) has(name, script string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.path, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func TestProvideTakesWhatIsThereAndNewEnough(t *testing.T) {
	for name, c := range map[string]struct {
		there map[string]string
		want  string
	}{
		"Debian's": {map[string]string{"chromium": "echo grumble >&2; echo Chromium 156.0.8078.79 built on Debian GNU/Linux 12"}, "chromium 156.0.8078.79"},
		"Chrome":   {map[string]string{"google-chrome": "echo Google Chrome 140.0.1.2"}, "google-chrome 140.0.1.2"},
		"an old one before a new one": {map[string]string{
			"chromium": "echo Chromium 90.0.1.2 built on Debian", "chromium-browser": "echo Chromium 131.0.1.2",
		}, "chromium-browser 131.0.1.2"},
		"a stub that points to a shop": {map[string]string{
			"chromium-browser": "echo install the snap; exit 1", "google-chrome-stable": "echo Google Chrome 140.0.1.2",
		}, "google-chrome-stable 140.0.1.2"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			for command, script := range c.there {
				m.has(command, script)
			}
			i, err := Provide(within(t), nil)
			if got := filepath.Base(i.Path) + " " + i.Version; err != nil || got != c.want {
				t.Errorf("got %s (%v), expected %s", got, err, c.want)
			}
		})
	}
}

func TestWhatIsMissingIsInstalledOrSaid(t *testing.T) {
	root := os.Geteuid() == 0
	for name, c := range map[string]struct {
		apt  string
		root string // part of the error where this is root; empty: none
		user string
	}{
		"no package manager": {"", "no Chromium 120 or newer (found: none); install Chromium or Chrome", "install Chromium or Chrome"},
		"apt-get that does it": {
			`case "$*" in *install*) printf '#!/bin/sh\necho Chromium 156.0.1.2\n' >"${0%/*}/chromium"; /bin/chmod +x "${0%/*}/chromium";; esac`, "", InstallCommand,
		},
		"apt-get that fails": {"echo 'E: Unable to locate package' >&2; exit 100", "`apt-get update` failed: exit status 100: E: Unable to locate package", InstallCommand},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			if c.apt != "" {
				m.has("apt-get", c.apt)
			}
			said := ""
			i, err := Provide(within(t), func(s string) { said += s })
			want := c.user
			if root {
				want = c.root
			}
			if want == "" {
				if err != nil || i.Version != "156.0.1.2" || !strings.Contains(said, InstallCommand) {
					t.Errorf("got %+v (%v), said %q; expected that it is installed, and said", i, err, said)
				}
				return
			}
			if _, missing := errors.AsType[harness.Missing](err); !missing || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, expected one line of Missing with %q", err, want)
			}
		})
	}
}

func TestWhatIsMissingIsNotSilent(t *testing.T) {
	for name, c := range map[string]struct {
		ci    string
		fails bool
	}{"somebody's machine": {"", false}, "CI": {"true", true}} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t) // nothing is there
			cmd := exec.Command(os.Args[0], "-test.run=^TestNothingIsLeftOfIt$")
			cmd.Env = append(os.Environ(), "PATH="+m.path, "CI="+c.ci)
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails {
				t.Errorf("it ended with %v, expected a failure: %v", err, c.fails)
			}
			if !strings.Contains(string(out), "NOT RUN: the tests of the browser (") || !strings.Contains(string(out), "install with: "+InstallCommand) {
				t.Errorf("no NOT RUN line in:\n%s", out)
			}
		})
	}
}
