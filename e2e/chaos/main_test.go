package chaos_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"retry-worker/e2e/build"
	"retry-worker/e2e/postgres"
)

const (
	// patience bounds what a test waits for; it is reached only where the test fails.
	patience = 2 * time.Minute
	// jobTimeout is the default of RETRY_WORKER_JOB_TIMEOUT.
	jobTimeout = 10 * time.Second
)

// workerPath is the program under test, in a folder that everybody may enter.
var workerPath string

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("the fault tests on real stores are left out: -short")
		os.Exit(0)
	}
	os.Exit(run(m))
}

// run builds the program as `make build` does, so that their caches are one, and runs the tests.
func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chaos-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "a place for the binary:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if workerPath, err = build.Worker(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := errors.Join(postgres.CloseShared(), closeBroker()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	report.print()
	return code
}

// report is what the tests have to say when all of them have ended.
var report results

type results struct {
	mu    sync.Mutex
	lines []string
}

func (r *results) add(t *testing.T, what, figures string, args ...any) {
	if t.Failed() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprintf("PRINT chaos %-44s %s", what, fmt.Sprintf(figures, args...)))
}

func (r *results) print() {
	slices.Sort(r.lines)
	for _, line := range r.lines {
		fmt.Println(line)
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls until something holds, and fails the test where it never does.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for ctx := within(t); !holds(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not seen: %s", what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
