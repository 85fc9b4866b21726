package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/zeebe"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// asLocal makes the test binary the program.
const asLocal = "LOCAL_TEST_IS_LOCAL"

func TestMain(m *testing.M) {
	harness.Main(m, harness.Child(asLocal, func(string) error { main(); return nil }))
}

// Programs that play Maven and Zeebe.
const (
	hangs = "echo $$ >\"$TMPDIR/hangs\"; exec sleep 600"
	fails = "echo '10:00 INFO all is well'; echo \"10:01 ERROR ${0##*/} - out of luck\" >&2; exit 3"
)

// begin starts the program on a machine with Java, and with Maven and Zeebe as those scripts play them; empty: there is none.
func begin(t *testing.T, maven, broker string) *local {
	t.Helper()
	dir, temporary := t.TempDir(), t.TempDir()
	cache := filepath.Join(dir, "cache", "retry-worker", "zeebe-"+zeebe.Versions[0], "bin", "broker")
	for path, script := range map[string]string{
		filepath.Join(dir, "bin", "java"): `echo 'openjdk version "21.0.2"' >&2`, filepath.Join(dir, "bin", "mvn"): maven, cache: broker,
	} {
		if script == "" {
			continue
		}
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Must(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	}
	path := dir + "/bin"
	if maven != "" {
		path += ":/bin:/usr/bin"
	}
	folder := filepath.Join(temporary, "run")
	testkit.Must(t, os.Mkdir(folder, 0o700))
	cmd := exec.Command(os.Args[0], "-folder", folder)
	cmd.Env = []string{asLocal + "=1", "PATH=" + path, "JAVA_HOME=" + dir, "HOME=" + dir, "XDG_CACHE_HOME=" + filepath.Join(dir, "cache")}
	return start(t, cmd, temporary)
}

// TestItEndsWithAllThatItStarted whatever ends it.
func TestItEndsWithAllThatItStarted(t *testing.T) {
	for name, c := range map[string]struct {
		maven, zeebe string
		signal       syscall.Signal
		code         int
	}{
		"Ctrl-C while Zeebe is fetched":        {maven: hangs, signal: syscall.SIGINT},
		"Ctrl-C while Zeebe starts":            {zeebe: "PATH=/bin:/usr/bin; " + hangs, signal: syscall.SIGINT},
		"terminal closed while Zeebe starts":   {zeebe: "PATH=/bin:/usr/bin; " + hangs, signal: syscall.SIGHUP},
		"asked to terminate while it starts":   {zeebe: "PATH=/bin:/usr/bin; " + hangs, signal: syscall.SIGTERM},
		"killed, or panicked, while it starts": {zeebe: "PATH=/bin:/usr/bin; " + hangs, signal: syscall.SIGKILL, code: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, c.maven, c.zeebe)
			wait.Until(t, "a start", func() bool { _, err := os.Stat(filepath.Join(l.temporary, "hangs")); return err == nil })
			l.signal(c.signal)
			if code := l.exit(); code != c.code {
				t.Errorf("exit code %d, expected %d; it printed:\n%s", code, c.code, l.out.Text())
			}
			wait.Until(t, "an end of all it started", func() bool { return len(l.processes()) == 0 })
			if _, err := os.Stat(filepath.Join(l.temporary, "run")); c.code == 0 && err == nil {
				t.Error("its folder is left")
			}
		})
	}
}

func TestWhatFailsIsSaidOnOneLine(t *testing.T) {
	for name, c := range map[string]struct {
		maven, zeebe string
		want         []string
	}{
		"no Maven":             {want: []string{"mvn is not on the PATH; install Maven"}},
		"Maven fails":          {maven: fails, want: []string{"fetch Zeebe 8.5.8", "mvn - out of luck", "check the network"}},
		"Zeebe does not start": {zeebe: fails, want: []string{"start Zeebe 8.5.8", "exit status 3", "broker - out of luck", "zeebe.log"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, c.maven, c.zeebe)
			if code := l.exit(); code != exitFailed {
				t.Errorf("exit code %d, expected %d", code, exitFailed)
			}
			lines := strings.Split(strings.TrimSpace(l.out.Text()), "\n")
			for _, want := range c.want {
				if last := lines[len(lines)-1]; !strings.Contains(last, want) {
					t.Errorf("the last line has no %q; it printed:\n%s", want, l.out.Text())
				}
			}
			if _, err := os.Stat(filepath.Join(l.temporary, "run", "zeebe.log")); err != nil {
				t.Errorf("the log is not there: %v", err)
			}
			if _, err := os.Stat(filepath.Join(l.temporary, "run", "zeebe")); err == nil {
				t.Error("Zeebe's data are left")
			}
		})
	}
}
