package chaos_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// patience bounds what a test waits for; it is reached only where the test fails.
	patience = 2 * time.Minute
	// jobTimeout is the default of RETRY_WORKER_JOB_TIMEOUT.
	jobTimeout = 10 * time.Second
	// sideBySide is how many tests run at once: they mostly wait.
	sideBySide = "4"
)

func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", sideBySide); err != nil {
		panic(err) // the flag is there
	}
	harness.Main(m)
}

// report adds a test's line.
func report(t *testing.T, what, figures string, args ...any) {
	harness.Report(t, "chaos %-44s %s", what, fmt.Sprintf(figures, args...))
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
