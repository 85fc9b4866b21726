package mail

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
)

// machine is a folder of commands of a test's own, which are all that there are.
func machine(t *testing.T, scripts map[string]string) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "exim-test-") // where nobody can get to
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	for name, script := range scripts {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	t.Setenv("PATH", dir)
	keepCommands, keepOthers := commands, others
	t.Cleanup(func() { commands, others = keepCommands, keepOthers })
	commands, others = []string{"exim4", "exim"}, nil
	return dir
}

const described = "echo 'Exim version 4.99.1 #2 built 1-Jan-2026'; echo 'Support for: crypteq IPv6 GnuTLS DANE'"

func TestTheFirstThatServesIsTaken(t *testing.T) {
	for name, c := range map[string]struct {
		scripts map[string]string
		want    string
	}{
		"the first choice":          {map[string]string{"exim4": described, "exim": described}, "exim4 4.99.1"},
		"one that does not run":     {map[string]string{"exim4": "exit 1", "exim": described}, "exim 4.99.1"},
		"one without TLS":           {map[string]string{"exim4": "echo 'Exim version 4.90'; echo 'Support for: crypteq IPv6'", "exim": described}, "exim 4.99.1"},
		"one that is another thing": {map[string]string{"exim4": "echo postfix", "exim": described}, "exim 4.99.1"},
	} {
		t.Run(name, func(t *testing.T) {
			machine(t, c.scripts)
			i, err := Provide(within(t), nil)
			if got := filepath.Base(i.Path) + " " + i.Version; err != nil || got != c.want {
				t.Errorf("got %s (%v), expected %s", got, err, c.want)
			}
		})
	}
}

func TestWhatIsMissingIsInstalledOrSaid(t *testing.T) {
	const does = `case "$*" in *install*) printf '#!/bin/sh\n%s\n' "` + described + `" >"${0%/*}/exim4"; /bin/chmod +x "${0%/*}/exim4";; esac`
	for name, c := range map[string]struct {
		apt   string
		other bool   // there is a mail server of another kind
		want  string // part of the error; empty: none
	}{
		"no package manager":   {"", false, "no Exim with TLS; install Exim"},
		"apt-get that does it": {does, false, ""},
		"apt-get that fails":   {"echo 'E: Unable to locate package' >&2; exit 100", false, "`apt-get update` failed: exit status 100: E: Unable to locate package"},
		"another mail server":  {does, true, "no Exim with TLS; it is not installed by itself where "},
	} {
		t.Run(name, func(t *testing.T) {
			scripts := map[string]string{}
			if c.apt != "" {
				scripts["apt-get"] = c.apt
			}
			dir := machine(t, scripts)
			if c.other {
				others = []string{filepath.Join(dir, "apt-get")}
			}
			said, want := "", c.want
			i, err := Provide(within(t), func(s string) { said += s })
			if c.apt != "" && !c.other && os.Geteuid() != 0 {
				want = "only root may install it: " + InstallCommand
			}
			if want == "" {
				if err != nil || i.Version != "4.99.1" || !strings.Contains(said, InstallCommand) {
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
