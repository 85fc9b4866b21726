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
	runs := func(what string, want bool) {
		t.Helper()
		if runs, err := c.Runs(wait.Context(t), j.ProcessInstanceKey); err != nil || runs != want {
			t.Errorf("%s: said to run: %t, %v", what, runs, err)
		}
	}
	runs("it waits at a job", true)
	testkit.Must(t, c.Complete(wait.Context(t), j, "{}"))
	runs("its job is done", true)
	if r := record(t, g, j.Key); r.Output != "{}" || len(r.Answers) != 1 {
		t.Errorf("asking has changed its variables: %+v", r)
	}
	g.Cancel(j.ProcessInstanceKey)
	runs("it is cancelled", false)
	g.Down()
	_, err := c.Runs(wait.Context(t), j.ProcessInstanceKey)
	wantKind(t, "no gateway", err, worker.Ambiguous)
}
