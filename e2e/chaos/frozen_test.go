package chaos_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

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
	s.polled()
	testkit.Must(t, one.Pause())
	s.claims(claims)
	testkit.Must(t, s.WaitFor(wait.Context(t), func(c gateway.Counts) bool { return c.Held == claims }))
	wait.Until(t, "the end of every poll of the replica, which would be given the jobs again", func() bool {
		return !slices.ContainsFunc(s.Polls(worker.AnalyzeRetry), func(p gateway.Poll) bool { return p.Ended.IsZero() })
	})
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
	report(t, "a frozen replica, one PostgreSQL", "%d jobs lay unread while another answered; %d attempts", claims, found)
}

// polled waits until a replica waits for jobs.
func (s *stub) polled() {
	s.t.Helper()
	wait.Until(s.t, "a poll of the replica", func() bool {
		for _, p := range s.Polls(worker.AnalyzeRetry) {
			if p.Ended.IsZero() {
				return true
			}
		}
		return false
	})
}

// Of two replicas on one PostgreSQL one lives, and neither it nor its database hears the other any more, until the engine gave
// its jobs to the other, which answers. When the way is open again, what was under way is counted once and answered once,
// whether the replica takes the jobs for its own still or knows that their time is over.
func TestStalledReplica(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"", "aborted", "committed"} { // what becomes of the transaction that is at its commit
		for whose, timeOut := range map[string]time.Duration{"its own, it thinks": 5 * time.Minute, "no longer its own": 2 * time.Second} {
			t.Run(fmt.Sprintf("at its commit %q, jobs %s", at, whose), func(t *testing.T) {
				t.Parallel()
				playStalled(t, timeOut, at)
			})
		}
	}
}

// writing finds the transaction that has written records and is not committed yet.
const writing = `SELECT backend_xid::text FROM pg_locks JOIN pg_stat_activity USING (pid)
	WHERE datname = current_database() AND relation = 'records'::regclass AND mode = 'RowExclusiveLock'`

func playStalled(t *testing.T, timeOut time.Duration, atCommit string) {
	const claims = 4
	url, s := postgres.Database(t), newStub(t, "STALLED")
	way, through := postgres.NewProxy(t, url)
	env := []string{"RETRY_WORKER_JOB_TIMEOUT=" + timeOut.String()}
	one := serve(t, settings{name: "one", gateway: s.Addr(), url: through, env: env})
	s.polled()
	var turn atomic.Bool // the other's: it is given jobs, and one no more
	nothing := s.Inject(gateway.Fault{Method: gateway.ActivateJobs, Code: codes.Unavailable,
		Match: func(c gateway.Call) bool {
			return c.Worker == "one" && s.Counts().HandedOut > 0 || c.Worker != "one" && !turn.Load()
		}})
	two := serve(t, settings{name: "two", gateway: s.Addr(), url: url, env: env})
	db := database(t, url)
	var written atomic.Value // the transaction that has written its attempts and waits for its commit
	if atCommit != "" {
		way.OnCommit(func() bool {
			var transaction string
			if db.QueryRow(writing).Scan(&transaction) != nil {
				return false
			}
			way.Stall() // it has the ledger for itself, until the server commits or takes that away
			written.CompareAndSwap(nil, transaction)
			return atCommit == "committed"
		})
	} else {
		way.Stall()
	}
	s.claims(claims)
	testkit.Must(t, s.WaitFor(wait.Context(t), func(c gateway.Counts) bool { return c.Held == claims }))
	wait.Until(t, "a commit that is held back", func() bool { return atCommit == "" || written.Load() != nil })
	began := time.Now()
	s.Advance(timeOut)
	turn.Store(true)
	wait.Until(t, "the other's answers and their marks", func() bool {
		var marked int
		testkit.Must(t, db.QueryRow("SELECT coalesce(sum(last - first + 1), 0) FROM answered").Scan(&marked))
		return s.Counts().Settled == claims && marked == claims
	})
	done, status := one.counted("retry_worker_jobs_total"), ""
	if atCommit != "" {
		testkit.Must(t, db.QueryRow("SELECT pg_xact_status($1::text::xid8)", written.Load()).Scan(&status))
	}
	if done > 0 || status != atCommit {
		t.Errorf("the replica without its database is done with %d jobs, its transaction is %q, want %q", done, status, atCommit)
	}
	stalled := time.Since(began)
	nothing.Remove()
	way.OnCommit(nil)
	way.GoOn()
	two.stop()
	s.claims(claims) // one is as good as before
	s.settle()
	late := one.counted(`retry_worker_jobs_total\{action="superseded"[^}]*\}`)
	one.stop()
	a := look(t, url)
	found := s.holdAgainst(a)
	a.oneAttemptPerCount(false)
	report(t, "a stalled replica, one PostgreSQL", "%s: %.1f s without its database; %d attempts, one answer each; %d of its answers came too late",
		t.Name(), stalled.Seconds(), found, late)
}
