package prometheus_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/prometheus"
)

// machine is a PATH with commands of a test's own, and a cache with nothing in it.
type machine struct {
	t    *testing.T
	path string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	m := machine{t, t.TempDir()}
	t.Setenv("PATH", m.path)
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	return m
}

func (m machine) has(name, script string) {
	m.t.Helper()
	must(m.t, os.WriteFile(filepath.Join(m.path, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
}

func (m machine) hasPrometheus(version string) {
	for _, name := range []string{"prometheus", "promtool"} {
		m.has(name, "echo '"+name+", version "+version+" (branch: x)'")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestProvideTakesWhatIsInstalledAndNewEnough(t *testing.T) {
	for version, good := range map[string]bool{"2.42.0+ds": true, "2.55.1": true, "3.5.0": true, "2.41.0": false, "1.99.0": false, "none": false} {
		t.Run(version, func(t *testing.T) {
			m := newMachine(t)
			m.hasPrometheus(version)
			i, err := prometheus.Provide(within(t), nil)
			if good && (err != nil || i.Version != version || i.Server != filepath.Join(m.path, "prometheus") || i.Promtool != filepath.Join(m.path, "promtool")) {
				t.Errorf("got %+v (%v)", i, err)
			}
			if _, missing := errors.AsType[harness.Missing](err); !good && !missing {
				t.Errorf("got %+v (%v), expected that it is missing", i, err)
			}
		})
	}
}

// unpacks plays apt-get and dpkg-deb: the package holds both programs.
func (m machine) unpacks() {
	m.has("apt-get", `[ "$1" = download ] && : >prometheus_2.53.0_amd64.deb`)
	m.has("dpkg-deb", `[ -e "$2" ] && /bin/mkdir -p "$3/usr/bin" && for p in prometheus promtool; do
  printf '#!/bin/sh\necho "%s, version 2.53.0"\n' $p >"$3/usr/bin/$p"; /bin/chmod +x "$3/usr/bin/$p"; done`)
}

// TestWhatIsMissingIsFetched: into the cache, said once, kept for the next time, and nothing is installed.
func TestWhatIsMissingIsFetched(t *testing.T) {
	m := newMachine(t)
	m.unpacks()
	said := 0
	for range 2 {
		i, err := prometheus.Provide(within(t), func(string) { said++ })
		if err != nil || i.Version != "2.53.0" || !strings.HasPrefix(i.Server, os.Getenv("XDG_CACHE_HOME")) {
			t.Errorf("got %+v (%v), expected one in the cache", i, err)
		}
	}
	if left, _ := filepath.Glob(os.Getenv("XDG_CACHE_HOME") + "/retry-worker/prometheus/*.deb"); len(left) > 0 || said != 1 {
		t.Errorf("left %v, and said %d times", left, said)
	}
}

func TestWhatCannotBeFetchedIsSaid(t *testing.T) {
	for name, c := range map[string]struct{ apt, want string }{
		"no package manager":        {"", "put prometheus and promtool on the PATH"},
		"apt-get that fails":        {"echo 'E: Unable to locate package prometheus' >&2; exit 100", "Unable to locate package prometheus"},
		"apt-get that does nothing": {"exit 0", "left 0 packages"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			if c.apt != "" {
				m.has("apt-get", c.apt)
			}
			_, err := prometheus.Provide(within(t), nil)
			if _, missing := errors.AsType[harness.Missing](err); !missing || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, expected one line of Missing with %q", err, c.want)
			}
		})
	}
}
