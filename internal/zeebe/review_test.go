package zeebe_test

import (
	"testing"
	"time"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// TestHold: the gateway keeps a job for as long as it is told, and says what it does not know.
func TestHold(t *testing.T) {
	g, c := connected(t, gateway.Options{})
	key := g.AddJob(work())
	j := take(t, c)
	testkit.Must(t, c.Hold(wait.Context(t), j, 24*time.Hour))
	r := record(t, g, key)
	if left := time.Until(r.Activations[0].Deadline); left < 23*time.Hour || left > 24*time.Hour {
		t.Errorf("it is locked for another %v, want a day", left)
	}
	wantKind(t, "no such job", c.Hold(wait.Context(t), &worker.Job{Key: 1}, time.Hour), worker.Gone)
	g.Down()
	wantKind(t, "no gateway", c.Hold(wait.Context(t), j, time.Hour), worker.Ambiguous)
}

// TestRuns: a process instance runs until it has ended, whatever became of its jobs, and asking changes nothing.
func TestRuns(t *testing.T) {
	g, c := connected(t, gateway.Options{})
	g.AddJob(work())
	j := take(t, c)
	runs := func() bool {
		t.Helper()
		runs, err := c.Runs(wait.Context(t), j.ProcessInstanceKey)
		testkit.Must(t, err)
		return runs
	}
	if !runs() {
		t.Error("it waits at a job, and is said to have ended")
	}
	testkit.Must(t, c.Complete(wait.Context(t), j, "{}"))
	if !runs() {
		t.Error("its job is done, and it is said to have ended")
	}
	if r := record(t, g, j.Key); r.Output != "{}" || len(r.Answers) != 1 {
		t.Errorf("asking has changed its variables: %+v", r)
	}
	g.Cancel(j.ProcessInstanceKey)
	if runs() {
		t.Error("it is cancelled, and said to run")
	}
	g.Down()
	_, err := c.Runs(wait.Context(t), j.ProcessInstanceKey)
	wantKind(t, "no gateway", err, worker.Ambiguous)
}
