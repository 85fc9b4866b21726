package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/engine"
)

// firstDecision notes when the first decision is on the screen.
type firstDecision struct {
	output
	begun time.Time
	took  time.Duration
}

func (f *firstDecision) Write(b []byte) (int, error) {
	n, err := f.output.Write(b)
	if f.took == 0 && bytes.Contains(b, []byte("decided:")) {
		f.took = time.Since(f.begun)
	}
	return n, err
}

// TestRealRun is `make run` with the real worker and a real Zeebe, until the demo has ended.
func TestRealRun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: needs a real broker")
	}
	fetch(t)
	binary, temporary := filepath.Join(t.TempDir(), "retry-worker"), t.TempDir()
	if out, err := exec.Command("go", "build", "-o", binary, "retry-worker/cmd/retry-worker").CombinedOutput(); err != nil {
		t.Fatalf("build the worker: %v\n%s", err, out)
	}
	shown := &firstDecision{begun: time.Now()}
	cmd := exec.Command(os.Args[0], "-once", "-bin", binary)
	cmd.Env = append(os.Environ(), roleName+"=local", "TMPDIR="+temporary)
	cmd.Stdout, cmd.Stderr = shown, shown
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v; it printed:\n%s", err, shown)
	}
	wanted := []string{"retry 1 of 5", "retry 1 of 3", "WAITING", "moves the broker's own clock", "What became of them:", "Nothing is left"}
	for process, samples := range map[string]string{"SUB_06": "30 claims", "WHATSAPP_MESSAGE": "7 messages", "FAILED_JOB": "5 jobs", "JOB_QUEUE": "8 jobs"} {
		wanted = append(wanted, process+" version 1 deployed", "\n"+process+": "+samples)
	}
	if strings.Contains(shown.String(), "has not ended") {
		t.Errorf("samples have not ended:\n%s", shown)
	}
	for _, want := range wanted {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, shown)
		}
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
	if shown.took == 0 || shown.took > time.Minute {
		t.Errorf("the first decision showed after %v", shown.took)
	}
	fmt.Printf("PRINT make run, Zeebe being there: the first decision shows after %.1f s\n", shown.took.Seconds())
}

// fetch has what the run needs there, so that its time is that of a second start.
func fetch(t *testing.T) {
	t.Helper()
	_, err := engine.ProvideJava(t.Context(), nil)
	if err == nil {
		_, err = engine.Fetch(t.Context(), engine.Versions[0], nil)
	}
	if missing, ok := errors.AsType[engine.Missing](err); ok {
		t.Skipf("NOT RUN: `make run` on a real broker: %v", missing)
	}
	if err != nil {
		t.Fatal(err)
	}
}
