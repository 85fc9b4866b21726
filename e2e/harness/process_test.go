package harness

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const enough = 20 * time.Second

// lines hands out what a program prints, a line at a time.
type lines struct {
	mu      sync.Mutex
	pending []byte
	ready   chan string
}

func newLines() *lines { return &lines{ready: make(chan string, 100)} }

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending = append(l.pending, b...)
	for {
		line, rest, found := bytes.Cut(l.pending, []byte("\n"))
		if !found {
			return len(b), nil
		}
		l.ready <- string(line)
		l.pending = rest
	}
}

func (l *lines) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l.ready:
		return line
	case <-time.After(enough):
		t.Fatal("the program printed nothing")
		return ""
	}
}

// sh runs a script until the test ends, and hands out what it prints.
func sh(t *testing.T, script string) (*Process, *lines) {
	t.Helper()
	out := newLines()
	p, err := Start(Command{Path: "/bin/sh", Args: []string{"-c", script}, Output: out})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p, out
}

func gone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(enough); running(pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d lives", pid)
		}
	}
}

// running tells whether a process lives; one that waits for a parent to take note of its death does not.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	state, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	if _, unknown := errors.AsType[*exec.ExitError](err); unknown {
		return false
	}
	return err != nil || !strings.HasPrefix(strings.TrimSpace(string(state)), "Z")
}

func number(t *testing.T, line string) int {
	t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatalf("%q, expected a process id", line)
	}
	return n
}

func TestStopLetsAProgramEndInOrder(t *testing.T) {
	p, out := sh(t, `trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done`)
	out.next(t)
	if err := p.Stop(t.Context(), enough); err != nil {
		t.Fatal(err)
	}
	if got := p.LastLine(); got != "bye" || p.Err() != nil {
		t.Errorf("it said %q and ended with %v, expected bye and nothing wrong", got, p.Err())
	}
	if err := p.Stop(t.Context(), enough); err != nil {
		t.Errorf("the second stop: %v", err)
	}
}

func TestStopEndsAPausedProgram(t *testing.T) {
	p, out := sh(t, `trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done`)
	out.next(t)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(t.Context(), enough); err != nil {
		t.Fatal(err)
	}
}

func TestStopKillsAProgramThatDoesNotListenWithAllItStarted(t *testing.T) {
	p, out := sh(t, `trap '' TERM; sh -c "trap '' TERM; while :; do sleep 0.01; done" & echo $!; wait`)
	grandchild := number(t, out.next(t))
	if err := p.Stop(t.Context(), 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("got %v, expected that it was killed", err)
	}
	gone(t, grandchild)
	if err := p.Signal(syscall.SIGTERM); err == nil {
		t.Error("a signal to a dead process was sent")
	}
}

func TestLeftoversOfAnEndedProgramAreKilled(t *testing.T) {
	p, out := sh(t, `sleep 600 >/dev/null 2>&1 & echo $!`)
	grandchild := number(t, out.next(t))
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	gone(t, grandchild)
}

func TestAProgramThatIsNotThereIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "nothing")
	if _, err := Start(Command{Path: path}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, expected that %s does not exist", err, path)
	}
}

func TestScreenTakesTheStandardOutputOnly(t *testing.T) {
	var screen, output bytes.Buffer
	p, err := Start(Command{
		Path: "/bin/sh", Args: []string{"-c", "echo shown; echo logged >&2"}, Output: &output, Screen: &screen,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Err(); err != nil {
		t.Fatal(err)
	}
	if screen.String() != "shown\n" || output.String() != "logged\n" {
		t.Errorf("screen %q, output %q", screen.String(), output.String())
	}
}

func TestLastLineTellsWhy(t *testing.T) {
	for name, c := range map[string]struct{ output, want string }{
		"nothing":       {"", ""},
		"no error":      {"one\ntwo\n\n", "two"},
		"unfinished":    {"one\ntwo", "two"},
		"error":         {"10:00 ERROR Broker - no disk\n10:01 INFO Broker - stopped\n", "10:00 ERROR Broker - no disk"},
		"cause":         {"Exception in thread main\n\tat a.b.C\nCaused by: no memory\n\t... 5 more\n10:01 ERROR x\n", "Caused by: no memory"},
		"frames":        {"it broke\n\tat a.b.C\n\tat d.e.F\n", "it broke"},
		"Java's option": {"Invalid heap size\nError: Could not create the Java Virtual Machine.\n", "Invalid heap size"},
		"JSON log":      {`{"level":"error","msg":"no port"}` + "\n" + `{"level":"info","msg":"bye"}` + "\n", `{"level":"error","msg":"no port"}`},
	} {
		t.Run(name, func(t *testing.T) {
			tail := NewTail(nil)
			fmt.Fprint(tail, c.output)
			if got := tail.LastLine(); got != c.want {
				t.Errorf("got %q, expected %q", got, c.want)
			}
		})
	}
}

func TestTailKeepsTheLastLinesOfAnyOutput(t *testing.T) {
	var all bytes.Buffer
	tail := NewTail(&all)
	for i := range 10_000 {
		fmt.Fprintf(tail, "line %d\n", i)
	}
	fmt.Fprint(tail, strings.Repeat("x", 1_000_000))
	kept := tail.Lines()
	if len(kept) > 500 || kept[len(kept)-2] != "line 9999" {
		t.Errorf("%d lines kept, the last but one %q, expected few with line 9999", len(kept), kept[len(kept)-2])
	}
	if n := len(kept[len(kept)-1]); n > 10_000 {
		t.Errorf("a line of %d bytes was kept", n)
	}
	passed := 0
	for s := bufio.NewScanner(&all); s.Scan() && strings.HasPrefix(s.Text(), "line"); passed++ {
	}
	if passed != 10_000 {
		t.Errorf("%d lines passed on, expected all of 10000", passed)
	}
}

func TestStopAsksInTheWayTheProgramWants(t *testing.T) {
	out := newLines()
	p, err := Start(Command{
		Path: "/bin/sh", Args: []string{"-c", `trap 'echo terminated' TERM; trap 'echo interrupted; exit 0' INT; echo ready; while :; do sleep 0.01; done`},
		StopSignal: syscall.SIGINT, Output: out,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	out.next(t)
	if err := p.Stop(t.Context(), enough); err != nil {
		t.Fatal(err)
	}
	if got := out.next(t); got != "interrupted" {
		t.Errorf("it said %q, expected interrupted", got)
	}
}

func TestRootRunsAProgramAsSomebodyElse(t *testing.T) {
	if syscall.Geteuid() != 0 {
		t.Skip("only root may")
	}
	out := newLines()
	p, err := Start(Command{
		Path: "/bin/sh", Args: []string{"-c", "id -u; exec sleep 600"}, Dir: "/", Output: out,
		User: &syscall.Credential{Uid: 65534, Gid: 65534},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	if got := number(t, out.next(t)); got != 65534 {
		t.Errorf("it runs as %d, expected 65534", got)
	}
	p.Kill()
	gone(t, p.PID())
}
