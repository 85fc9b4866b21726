package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// output collects what a program prints, and tells when it prints more.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// local is a run of the program among fakes, in folders of its own.
type local struct {
	t                    *testing.T
	cmd                  *exec.Cmd
	out                  output
	pids, temporary, dir string
	zeebe                string // its folder in the cache
}

// command of this test binary in a role.
func (l *local) script(role string, path ...string) {
	l.t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		l.t.Fatal(err)
	}
	text := fmt.Sprintf("#!/bin/sh\n%s=%s exec '%s' \"$@\"\n", roleName, role, os.Args[0])
	if role == "java" {
		text = "#!/bin/sh\necho 'openjdk version \"21.0.2\"' >&2\n"
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		l.t.Fatal(err)
	}
}

// prepare makes a machine with all that a run needs.
func prepare(t *testing.T, trouble string, args ...string) *local {
	t.Helper()
	dir := t.TempDir()
	l := &local{t: t, dir: dir, pids: filepath.Join(dir, "pids"), temporary: filepath.Join(dir, "tmp"),
		zeebe: filepath.Join(dir, "cache", "retry-worker", "zeebe-8.5.8")}
	for _, d := range []string{l.pids, l.temporary} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	l.script("java", dir, "path", "java")
	l.script("maven", dir, "path", "mvn")
	l.script("broker", l.zeebe, "bin", "broker")
	l.script("retry-worker", dir, "bin", "retry-worker")
	l.cmd = exec.Command(os.Args[0], append([]string{"-bin", filepath.Join(dir, "bin", "retry-worker")}, args...)...)
	l.cmd.Env = []string{
		roleName + "=local", pidsName + "=" + l.pids, troubleName + "=" + trouble,
		"PATH=" + filepath.Join(dir, "path"), "HOME=" + dir, "XDG_CACHE_HOME=" + filepath.Join(dir, "cache"), "TMPDIR=" + l.temporary,
		"ZEEBE_ADDRESS=zeebe.example:443", "ZEEBE_HOST=zeebe.example", "RETRY_WORKER_DATABASE_URL=postgres://hospital",
	}
	l.cmd.Stdout, l.cmd.Stderr = &l.out, &l.out
	return l
}

func (l *local) start() {
	l.t.Helper()
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		_ = l.cmd.Process.Kill() // ended long ago, unless the test failed
		_ = l.cmd.Wait()
	})
}

func (l *local) signal(s os.Signal) {
	l.t.Helper()
	if err := l.cmd.Process.Signal(s); err != nil {
		l.t.Fatal(err)
	}
}

// until polls for something to happen.
func (l *local) until(what string, met func() bool) {
	l.t.Helper()
	for deadline := time.Now().Add(enough); !met(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatalf("after %v still not %s; it printed:\n%s", enough, what, &l.out)
		}
	}
}

func (l *local) runs(role string) bool { return exists(filepath.Join(l.pids, role)) }

func (l *local) printed(text string) func() bool {
	return func() bool { return strings.Contains(l.out.String(), text) }
}

// exit waits for the end and returns the exit code and how long it took.
func (l *local) exit() (int, time.Duration) {
	l.t.Helper()
	begun, ended := time.Now(), make(chan struct{})
	go func() {
		_ = l.cmd.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(enough):
		l.t.Fatalf("it did not end within %v; it printed:\n%s", enough, &l.out)
	}
	return l.cmd.ProcessState.ExitCode(), time.Since(begun)
}

// nothingRuns fails where a program that was started lives.
func (l *local) nothingRuns() {
	l.t.Helper()
	files, err := os.ReadDir(l.pids)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, f := range files {
		var pid int
		text, err := os.ReadFile(filepath.Join(l.pids, f.Name()))
		if err != nil {
			l.t.Fatal(err)
		}
		if _, err := fmt.Sscan(string(text), &pid); err != nil {
			continue // no file of a pid
		}
		if err := syscall.Kill(pid, 0); err == nil {
			l.t.Errorf("%s (process %d) lives", f.Name(), pid)
		}
	}
}

// nothingLeft fails where files lie about.
func (l *local) nothingLeft() {
	l.t.Helper()
	for _, pattern := range []string{l.temporary + "/*", filepath.Dir(l.zeebe) + "/*.partial"} {
		if left, _ := filepath.Glob(pattern); len(left) > 0 {
			l.t.Errorf("left: %v", left)
		}
	}
}

func (l *local) alive(role string) bool {
	var pid int
	text, err := os.ReadFile(filepath.Join(l.pids, role))
	if _, scan := fmt.Sscan(string(text), &pid); err != nil || scan != nil {
		l.t.Fatalf("the pid of %s is %q (%v)", role, text, err)
	}
	return syscall.Kill(pid, 0) == nil
}

func (l *local) remove(path ...string) {
	if err := os.RemoveAll(filepath.Join(append([]string{l.dir}, path...)...)); err != nil {
		l.t.Fatal(err)
	}
}
