package main

import (
	"os"
	"strings"
	"testing"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// A journal that cannot be read for a while ends no watching.
func TestWatchingSurvives(t *testing.T) {
	w := openCauses(t)
	gone := func(string) error { return &journal.StoreError{Kind: journal.Unavailable, Err: os.ErrDeadlineExceeded} }
	w.steps = append([]func(string) error{gone, gone, gone}, w.steps...)
	r := retryWorker("dead-letters", "retry", "--filter", "team=ti", "--reason", "x", "--yes")
	if r.code != exitDone || !strings.Contains(r.stdout, "counts recovered   2\n") {
		t.Errorf("exit %d, %s\n%s", r.code, r.stderr, r.stdout)
	}
}

// Ctrl-C ends the watching, not the run; it says how to end that.
func TestWatchingInterrupted(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		w := openCauses(t)
		looked := make(chan struct{})
		w.steps = []func(string) error{func(string) error { close(looked); return nil }}
		done := make(chan result, 1)
		go func() {
			done <- retryWorker("dead-letters", "retry", "--filter", "team=ti", "--reason", "x", "--yes", "-o", format)
		}()
		select {
		case <-looked:
		case <-wait.Context(t).Done():
			t.Fatal("the run is not watched")
		}
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Signal(os.Interrupt)
		}
		testkit.Must(t, err)
		r, run := <-done, w.runs()[0]
		says := "retry-worker: no longer watched, the run goes on; `retry-worker dead-letters runs cancel " + run.ID + "` ends it, `retry-worker dead-letters runs watch " + run.ID + "` watches it again\n"
		if r.code != exitDone || !strings.HasSuffix(r.stderr, says) || run.State != journal.BulkRunning {
			t.Errorf("%s: exit %d, %s", format, r.code, r.stderr)
		}
		if format == "json" && strings.Count(r.stdout, "\n") != 1 { // the plan
			t.Errorf("it prints\n%s", r.stdout)
		}
	}
}

// Somebody else's cancelling is a failure of what was asked for.
func TestWatchedRunIsCancelled(t *testing.T) {
	w := openCauses(t)
	w.steps = append(w.steps[:2:2], func(run string) error {
		_, err := w.DeadLetters.Steer(t.Context(), run, journal.BulkCancel, "bia")
		return err
	})
	r := retryWorker("dead-letters", "retry", "--filter", "team=ti", "--reason", "x", "--yes")
	if r.code != exitFailed || !strings.HasSuffix(r.stderr, "retry-worker: the run was cancelled by bia: 5 of 10 dead letters were not decided\n") ||
		!strings.Contains(r.stdout, "counts planned    5\n") {
		t.Errorf("exit %d, %s\n%s", r.code, r.stderr, r.stdout)
	}
}
