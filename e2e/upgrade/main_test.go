package upgrade

import (
	"context"
	"fmt"
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

const (
	// enough for anything that is expected to happen soon, on a busy machine too.
	enough = harness.Enough
	// lookEvery is how often something is looked at that is waited for.
	lookEvery = 10 * time.Millisecond
)

func TestMain(m *testing.M) { harness.Main(m) }

// done adds a test's line.
func done(t *testing.T, what, figures string, args ...any) {
	harness.Report(t, "upgrade  %-28s %s", what, fmt.Sprintf(figures, args...))
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
