package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/api"
	"retry-worker/internal/deadletter"
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
	if r.code != exitDone || !strings.Contains(r.stdout, "2      recovered") {
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
		if format == "json" && strings.Count(r.stdout, "\n") != 2 {
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
		!strings.Contains(r.stdout, "5      planned    left as they were: the run was cancelled before their turn") {
		t.Errorf("exit %d, %s\n%s", r.code, r.stderr, r.stdout)
	}
}

// On a terminal it is one line that is written over again, no longer than the terminal is wide.
func TestProgressOfARun(t *testing.T) {
	testkit.Environment(t, map[string]string{"COLUMNS": "70"})
	at := noon
	var line bytes.Buffer
	bar := &progressBar{w: &line, now: func() time.Time { return at }}
	w := &watcher{c: &cli{errOut: &line}, bar: bar}
	hold, since, who := deadletter.HoldEngine, "2026-03-02T12:30:00Z", "bia"
	run := api.BulkRun{State: journal.BulkRunning, Total: 400, BulkCommand: api.BulkCommand{PerMinute: 60}}
	for _, tt := range []struct {
		change func()
		want   string
	}{
		{func() { run.Counts = map[journal.BulkOutcome]int64{journal.BulkPlanned: 400} }, "[..............................]   0 %  0 of 400, 6m40s left"},
		{func() {
			run.Counts = map[journal.BulkOutcome]int64{journal.BulkPlanned: 300, journal.BulkRecovered: 90, journal.BulkRefused: 10}
		},
			"[#######.......................]  25 %  100 of 400, 90 recovered, 10…"},
		{func() { t.Setenv("COLUMNS", "120") }, "[#######.......................]  25 %  100 of 400, 90 recovered, 10 refused, 5m0s left"},
		{func() { run.Hold, run.HeldAt = &hold, &since },
			"[#######.......................]  25 %  100 of 400, 90 recovered, 10 refused, waits since 2026-03-02 12:30: the engine…"},
		{func() { run.Hold, run.State, run.ChangedBy = nil, journal.BulkPaused, &who }, "[#######.......................]  25 %  100 of 400, 90 recovered, 10 refused, paused by bia"},
	} {
		tt.change()
		line.Reset()
		at = at.Add(time.Second)
		w.show(&run)
		if got, want := line.String(), "\r"+tt.want+"\x1b[K"; got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
