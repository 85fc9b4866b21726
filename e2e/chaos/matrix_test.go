package chaos_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/postgres"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

const (
	// matrixClaims are analysed in each row where PROOF_FAULTS does not say otherwise.
	matrixClaims = 100
	// matrixTimeout is how long the engine waits for an answer, and outlasting is more.
	matrixTimeout, outlasting = time.Second, 2500 * time.Millisecond
	// pace is the time between two claims, and killClaims come at once before each kill.
	pace, killClaims = 5 * time.Millisecond, 33
	// shortKills of each store where CHAOS_KILLS does not say otherwise.
	shortKills = 12
	// shortSeed is the default of CHAOS_SEED.
	shortSeed = 1
)

// row is a fault's turn: a worker between the engine and a journal of its own, and claims that come meanwhile.
type row struct {
	*devEngine
	*program
	t      *testing.T
	random *rand.Rand
	kills  int
	proxy  *toxiproxy.Proxy // what stands between the two
	server *postgres.Server // of the journal; nil: it is SQLite
	url    string
	lives  int
	// taker is the type of the job that a claim has after its analysis; started claims there are.
	taker   string
	started atomic.Int64
}

// TestFaultMatrix plays each fault on the engine while claims are analysed: each process ends once, with the very answer that the
// journal holds, and the time until the last one did, once all is well again, stands in the table.
func TestFaultMatrix(t *testing.T) {
	t.Parallel()
	seed := harness.Setting(t, "CHAOS_SEED", shortSeed)
	for _, fault := range []struct {
		name   string
		store  string // empty: SQLite
		jumps  bool   // the clock does: decisions that come again are re-based
		queued bool   // all claims are there before the worker: nobody can start any while it happens
		happen func(*row)
	}{
		{name: "nothing", happen: func(*row) {}},
		{name: "killed", happen: (*row).kill},
		{name: "killed on PostgreSQL", store: "PostgreSQL", happen: (*row).kill},
		{name: "killed after the record, before the answer", happen: func(r *row) { r.toxic(noneToEngine); r.pass(matrixTimeout / 2); r.again(); r.mend() }},
		{name: "killed after the answer, before its acknowledgement", happen: func(r *row) { r.toxic(noneFromEngine); r.pass(matrixTimeout / 2); r.again(); r.mend() }},
		{name: "stopped in order with a full queue", happen: func(r *row) { r.stop(); r.start() }},
		{name: "frozen past the time-out", happen: func(r *row) {
			testkit.Must(r.t, r.program.Pause())
			r.pass(outlasting)
			testkit.Must(r.t, r.program.Resume())
		}},
		{name: "gateway and engine killed", queued: true, happen: func(r *row) {
			r.devEngine.Kill()
			testkit.Must(r.t, r.clock.Restart(context.Background()))
		}},
		{name: "engine frozen past the time-out", happen: func(r *row) {
			testkit.Must(r.t, r.devEngine.Pause())
			r.pass(outlasting)
			testkit.Must(r.t, r.devEngine.Resume())
		}},
		{name: "acknowledgements dropped", happen: disturbed(noneFromEngine)},
		{name: "answers swallowed", happen: disturbed(noneToEngine)},
		{name: "connections reset", happen: disturbed(`{"type":"reset_peer","attributes":{"timeout":50}}`)},
		{name: "half a second of delay", happen: disturbed(`{"type":"latency","attributes":{"latency":500,"jitter":400}}`)},
		{name: "SQLite's disk full", happen: (*row).fullDisk},
		{name: "SQLite locked by another process", happen: (*row).lock},
		{name: "PostgreSQL killed", store: "PostgreSQL", happen: func(r *row) {
			r.server.Kill()
			r.pass(outlasting)
			testkit.Must(r.t, r.server.Restart(context.Background()))
		}},
		{name: "PostgreSQL read-only", store: "PostgreSQL", happen: func(r *row) { r.readOnly("on"); r.pass(outlasting); r.readOnly("off") }},
		{name: "the clock jumps an hour", jumps: true, happen: (*row).jump},
	} {
		t.Run(fault.name, func(t *testing.T) {
			r := &row{
				devEngine: openEngine(t), t: t, taker: strings.ReplaceAll(fault.name, " ", "-"), random: rand.New(rand.NewPCG(uint64(seed), 6)),
				kills: harness.Setting(t, "CHAOS_KILLS", shortKills),
			}
			r.open(fault.store)
			before, err := r.Counters(t.Context())
			testkit.Must(t, err)
			n := harness.Setting(t, "PROOF_FAULTS", matrixClaims)
			first := n / 10
			if fault.queued {
				first = n
			}
			r.load(first, 0)
			r.start()
			taken, some := r.take()
			<-some
			var rest sync.WaitGroup
			rest.Go(func() { r.load(n-first, pace) })
			fault.happen(r)
			over := time.Now()
			rest.Wait()
			all := taken()
			took := time.Since(over)
			r.stop()
			attempts, thrown := r.compare(all, fault.jumps)
			timedOut := "a new engine counts anew"
			if !fault.queued {
				r.expectCounters(t, before, map[string]int{
					"created": len(all), "completed": len(all) - thrown, "error thrown": thrown,
					"processes completed": len(all), "incidents pending": 0,
				})
				now, err := r.Counters(t.Context())
				testkit.Must(t, err)
				timedOut = fmt.Sprintf("%d jobs came again", counted(now, "timed out")-counted(before, "timed out"))
			}
			report(t, "fault on the engine: "+fault.name, "%d claims, each analysed once as one of %d attempts says; %s; the last %.1f s after all was well",
				len(all), attempts, timedOut, took.Seconds())
		})
	}
}

// open makes the journal's place, and what stands before the engine.
func (r *row) open(store string) {
	r.t.Helper()
	if store == "PostgreSQL" {
		r.server = postgres.New(r.t, postgres.Options{})
		var err error
		r.url, err = r.server.CreateDatabase(r.t.Context())
		testkit.Must(r.t, err)
	} else {
		r.url = newURL["SQLite"](r.t)
	}
	r.proxy = toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop()), "engine",
		testkit.Loopback(0), r.GatewayAddress())
	testkit.Must(r.t, r.proxy.Start())
	r.t.Cleanup(r.proxy.Stop)
}

// start starts a worker's life.
func (r *row) start() {
	r.lives++
	env := []string{"RETRY_WORKER_JOB_TIMEOUT=" + matrixTimeout.String()}
	r.program = serve(r.t, settings{name: fmt.Sprintf("life-%d", r.lives), gateway: r.proxy.Listen, url: r.url, clock: r.clock.SharedClock, env: env})
}

// again kills the worker and starts the next.
func (r *row) again() {
	r.program.Kill()
	r.start()
}

func (r *row) pass(d time.Duration) { pass(r.t, d) }

// kill kills the worker at random moments of a burst of claims.
func (r *row) kill() {
	var burst sync.WaitGroup
	for range r.kills {
		for range killClaims {
			burst.Go(func() { r.load(1, 0) })
		}
		r.pass(time.Duration(r.random.IntN(200)) * time.Millisecond)
		r.again()
	}
	burst.Wait()
}

// Toxics by which nothing passes any more in a direction.
const (
	noneToEngine   = `{"type":"timeout","attributes":{"timeout":0},"stream":"upstream"}`
	noneFromEngine = `{"type":"timeout","attributes":{"timeout":0},"stream":"downstream"}`
)

// disturbed is a time with a toxic between worker and engine.
func disturbed(toxic string) func(*row) {
	return func(r *row) {
		r.toxic(toxic)
		r.pass(outlasting)
		r.mend()
	}
}

func (r *row) toxic(what string) {
	_, err := r.proxy.Toxics.AddToxicJson(strings.NewReader(what))
	testkit.Must(r.t, err)
}

// mend takes every toxic away; connections that one has held are closed.
func (r *row) mend() { r.proxy.Toxics.ResetToxics(context.Background()) }

// lock has another process write to the journal's file, which comes to no end.
func (r *row) lock() {
	db, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(r.url, "sqlite:")+fmt.Sprintf("?_pragma=busy_timeout(%d)", wait.Limit.Milliseconds()))
	testkit.Must(r.t, err)
	defer db.Close()
	other, err := db.BeginTx(wait.Context(r.t), nil)
	testkit.Must(r.t, err)
	_, err = other.ExecContext(wait.Context(r.t), "DELETE FROM leases")
	testkit.Must(r.t, err)
	r.load(killClaims, 0)
	r.pass(outlasting)
	testkit.Must(r.t, other.Rollback())
}

// jump moves the clock when decisions are recorded of which the engine has not heard, and their answers are not sent any more:
// it would take them, though it gives their jobs out again.
func (r *row) jump() {
	r.toxic(noneToEngine)
	r.toxic(noneFromEngine)
	r.pass(outlasting)
	testkit.Must(r.t, r.clock.MoveTo(wait.Context(r.t), r.clock.Now().Add(time.Hour)))
	r.mend()
}

// readOnly switches every new transaction of the journal's server to that.
func (r *row) readOnly(to string) {
	db := database(r.t, r.url)
	for _, statement := range []string{"SET default_transaction_read_only = off", "ALTER SYSTEM SET default_transaction_read_only = " + to, "SELECT pg_reload_conf()"} {
		_, err := db.ExecContext(wait.Context(r.t), statement)
		testkit.Must(r.t, err)
	}
}

// end is what came of a claim, which the engine told by the job that the test takes.
type end struct {
	key, instance int64
	problem       string
	variables     variables
}

// load starts n processes.
func (r *row) load(n int, pace time.Duration) {
	for range n {
		i := r.started.Add(1)
		given := map[string]any{"taker": r.taker, "claimId": fmt.Sprintf("CLM-%s-%d", r.taker, i), "submissionError": []string{passing, permanent}[i%2]}
		r.devEngine.start(r.t, &pb.CreateProcessInstanceRequest{BpmnProcessId: "TAKEN", Version: -1, Variables: jsonOf(given)})
		r.pass(pace)
	}
}

// take takes the job that each claim has after its analysis. It returns how to wait for all that were started, and what is closed when
// the first came.
func (r *row) take() (all func() map[string]end, first chan struct{}) {
	var taking sync.WaitGroup
	ends, first, last := map[string]end{}, make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	limit := time.AfterFunc(wait.Limit, cancel)
	came := sync.OnceFunc(func() {
		limit.Stop() // a fault takes its time
		close(first)
	})
	taking.Go(func() {
		defer came()
		for ctx.Err() == nil {
			if r.takeSome(ctx, ends); len(ends) > 0 {
				came()
			}
			select {
			case <-last:
				if len(ends) == int(r.started.Load()) {
					return
				}
			default:
			}
		}
	})
	return func() map[string]end {
		r.t.Helper()
		limit.Reset(wait.Limit) // of what is left
		close(last)
		taking.Wait()
		cancel()
		if started := r.started.Load(); len(ends) != int(started) {
			r.t.Fatalf("%d of %d claims were analysed", len(ends), started)
		}
		return ends
	}, first
}

// takeSome takes the jobs that there are. An engine that is down has none.
func (r *row) takeSome(ctx context.Context, all map[string]end) {
	given, _ := r.jobs(ctx, r.taker, 20, time.Minute, 500*time.Millisecond)
	for _, j := range given {
		var got variables
		testkit.Must(r.t, json.Unmarshal([]byte(j.Variables), &got))
		claim := got.text("claimId")
		if before, twice := all[claim]; twice && before.key != j.Key {
			r.t.Errorf("%s comes again, by another job", claim)
		}
		all[claim] = end{j.Key, j.ProcessInstanceKey, got.text("submissionError"), got}
		_, _ = r.CompleteJob(ctx, &pb.CompleteJobRequest{JobKey: j.Key}) // else it comes again
	}
}

// compare holds the journal against what the engine told, and returns the number of attempts, and of those that threw an error.
func (r *row) compare(all map[string]end, jumps bool) (attempts, thrown int) {
	r.t.Helper()
	a := look(r.t, r.url)
	if attempts = a.oneAttemptPerCount(jumps); attempts != len(all) {
		r.t.Errorf("%d attempts of %d claims that fail once", attempts, len(all))
	}
	for i := range a.stories {
		story := &a.stories[i]
		at, got := &story.Attempts[len(story.Attempts)-1], all[story.Subject.ID]
		next := ""
		if at.Decision.ShouldRetry() {
			next = instant(at)
		} else {
			thrown++
		}
		if got.instance != at.ProcessInstanceKey || got.variables.text("nextRetryTime") != next || got.variables.text("deadLetterId") != at.DeadLetter ||
			string(got.variables["retryCount"]) != fmt.Sprint(at.Decision.RetryCount) || got.variables.text("retryReason") != at.Decision.RetryReason {
			r.t.Errorf("%s: the process %d goes on with %s, the journal holds %+v", story.Subject.ID, got.instance, got.variables, at)
		}
		if (at.Decision.Outcome == decision.PermanentError) != (got.problem == permanent) {
			r.t.Errorf("%s: %q was decided as %s", story.Subject.ID, got.problem, at.Decision.Outcome)
		}
	}
	return attempts, thrown
}
