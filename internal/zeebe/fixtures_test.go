package zeebe_test

import (
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

// patience bounds a wait; only a failing test reaches it.
const patience = 30 * time.Second

// plain returns options for a gateway without TLS.
func plain(g *gateway.Gateway) zeebe.Options {
	return zeebe.Options{Address: g.Addr(), Plaintext: true, KeepAlive: 45 * time.Second, Version: "test"}
}

func dial(t *testing.T, o zeebe.Options) *zeebe.Client {
	t.Helper()
	c, err := zeebe.Dial(o, zap.NewNop())
	testkit.Must(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// connected returns a gateway and a client of it.
func connected(t *testing.T, o gateway.Options) (*gateway.Gateway, *zeebe.Client) {
	t.Helper()
	g := gateway.New(t, o)
	return g, dial(t, plain(g))
}

// poll returns a request for up to n jobs of type "work" that waits that long.
func poll(n int, wait time.Duration) worker.ActivateRequest {
	return worker.ActivateRequest{
		JobType: "work", Worker: "tester", MaxJobs: n, JobTimeout: time.Minute, PollTimeout: wait, Variables: []string{"claimId"},
	}
}

// take activates exactly one job, or fails the test.
func take(t *testing.T, c *zeebe.Client) *worker.Job {
	t.Helper()
	jobs, err := c.Activate(wait.Context(t), poll(1, time.Second))
	if err != nil || len(jobs) != 1 {
		t.Fatalf("activated %d jobs with %v, want one", len(jobs), err)
	}
	return &jobs[0]
}

func work() gateway.Job {
	return gateway.Job{Type: "work", Variables: `{"claimId":"CLM-T-1","other":1}`}
}

var wantKind = zeebe.WantKind

func record(t *testing.T, g *gateway.Gateway, key int64) gateway.Record {
	t.Helper()
	j, ok := g.Job(key)
	if !ok {
		t.Fatalf("no job %d", key)
	}
	return j
}
