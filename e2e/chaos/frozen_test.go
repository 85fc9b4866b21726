package chaos_test

import (
	"testing"
	"time"

	"retry-worker/e2e/harness/postgres"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// Of two replicas on one PostgreSQL one stands still with jobs unread in its socket, until the engine gives them to the other,
// which answers. When it goes on they look fresh to it: nothing is recorded for them, and nothing is answered.
func TestFrozenReplica(t *testing.T) {
	t.Parallel()
	const claims, long = 4, 5 * time.Minute // by the engine's clock, which is moved
	url, s := postgres.Database(t), newStub(t, "FROZEN")
	env := []string{"RETRY_WORKER_JOB_TIMEOUT=" + long.String()}
	one := serve(t, settings{name: "one", gateway: s.Addr(), url: url, env: env})
	wait.Until(t, "a poll of the replica", func() bool {
		for _, p := range s.Polls(worker.AnalyzeRetry) {
			if p.Ended.IsZero() {
				return true
			}
		}
		return false
	})
	testkit.Must(t, one.Pause())
	s.claims(claims)
	testkit.Must(t, s.WaitFor(wait.Context(t), func(c gateway.Counts) bool { return c.Held == claims }))
	two := serve(t, settings{name: "two", gateway: s.Addr(), url: url, env: env})
	s.Advance(long)
	testkit.Must(t, s.WaitFor(wait.Context(t), func(c gateway.Counts) bool { return c.Settled == claims }))
	two.stop() // which has marked its answers then
	testkit.Must(t, one.Resume())
	wait.Until(t, "the jobs that lay unread to be left alone", func() bool {
		return one.counted(`retry_worker_jobs_total\{action="superseded"[^}]*\}`) == claims
	})
	one.stop()
	a := look(t, url)
	found := s.holdAgainst(a)
	a.oneAttemptPerCount(false)
	report(t, "a frozen replica, one PostgreSQL", "%d jobs lay unread while another answered; %d attempts", claims, found.attempts)
}
