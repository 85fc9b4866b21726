package console_test

import (
	"flag"
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

// patience bounds what a test waits for; it is reached only where the test fails.
const patience = 2 * time.Minute

var update = flag.Bool("update", false, "draw the README's pictures anew")

// version of the broker.
const version = "8.6.0"

func TestMain(m *testing.M) { harness.Main(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls until something holds, and fails the test where it never does; seen is what there was instead.
func eventually(t *testing.T, what string, holds func() (ok bool, seen any)) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for {
		ok, seen := holds()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not seen: %s; there was: %v", what, seen)
		}
	}
}
