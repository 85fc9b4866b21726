package harness

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

func TestMain(m *testing.M) { Main(m) }

// family is a program that hears no SIGTERM and starts another.
func family(t *testing.T) (*Folder, *Process) {
	t.Helper()
	f, err := NewFolder("test")
	testkit.Must(t, err)
	p, err := Start(Command{Path: "/bin/sh", Args: []string{"-c", "trap '' TERM; sleep 600 & sleep 600"}, Dir: f.Path})
	testkit.Must(t, err)
	wait.Until(t, "two programs that sleep", func() bool { return len(RunningIn(f.Path)) == 3 })
	return f, p
}

func TestStopKillsAProgramWithAllItStarted(t *testing.T) {
	f, p := family(t)
	testkit.Must(t, p.Pause())
	if err := p.Stop(t.Context(), 100*time.Millisecond); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("stop says %v", err)
	}
	wait.Until(t, "all of them to end", func() bool { return len(RunningIn(f.Path)) == 0 })
	testkit.Must(t, f.Remove())
}

// TestNothingOutlivesAKilledProcess: the programs that it started end at once.
func TestNothingOutlivesAKilledProcess(t *testing.T) {
	const victim = "RETRY_WORKER_TEST_VICTIM"
	if os.Getenv(victim) != "" {
		f, p := family(t)
		fmt.Println("folder", f.Path)
		<-p.Done()
	}
	p, err := Start(Command{Path: os.Args[0], Args: []string{"-test.run=^" + t.Name() + "$"}, Env: append(os.Environ(), victim+"=1")})
	testkit.Must(t, err)
	var folder string
	wait.Until(t, "the victim's folder", func() (found bool) {
		_, folder, found = strings.Cut(strings.Join(p.Lines(), "\n"), "folder ")
		return found
	}, p.LastLine)
	p.Kill()
	wait.Until(t, "its programs to end", func() bool { return len(RunningIn(folder)) == 0 })
	testkit.Must(t, os.RemoveAll(folder))
}
