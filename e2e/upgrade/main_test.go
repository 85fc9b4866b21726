package upgrade

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"retry-worker/e2e/build"
	"retry-worker/e2e/postgres"
	"retry-worker/e2e/serving"
)

const (
	// enough for anything that is expected to happen soon, on a busy machine too.
	enough = serving.Enough
	// lookEvery is how often something is looked at that is waited for.
	lookEvery = 10 * time.Millisecond
)

// after is the program under test and before the one of the version before, provided by TestMain. before is empty where its
// source cannot be had, for the reason in absent.
var (
	after, before string
	absent        error
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("the upgrade from the version before is left out: -short")
		os.Exit(0)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "upgrade-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "a place for the programs:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	if after, err = build.Worker(dir); err == nil {
		before, absent, err = buildPrevious(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := postgres.CloseShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if absent != nil {
		report.lines = append(report.lines, fmt.Sprintf("PRINT upgrade  LEFT OUT: both programs on one journal, because %v. "+
			"Held all the same: its recorded schema and rows. In a whole clone (git fetch --unshallow) all of it runs.", absent))
	}
	slices.Sort(report.lines)
	for _, line := range report.lines {
		fmt.Println(line)
	}
	return code
}

// report is what the tests have to say when all of them have ended.
var report struct {
	mu    sync.Mutex
	lines []string
}

// done adds a test's line.
func done(t *testing.T, what, figures string, args ...any) {
	if !t.Failed() {
		report.mu.Lock()
		defer report.mu.Unlock()
		report.lines = append(report.lines, fmt.Sprintf("PRINT upgrade  %-28s %s", what, fmt.Sprintf(figures, args...)))
	}
}

// both leaves a test out where there is no program of the version before; what is left out is told in the last line.
func both(t *testing.T) {
	t.Helper()
	if absent != nil {
		t.Skip(absent)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls until something holds, and fails the test where it never does.
func eventually(t *testing.T, what func() string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for deadline := time.After(enough); !holds(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited %v for %s", enough, what())
		}
	}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), enough)
	t.Cleanup(cancel)
	return ctx
}
