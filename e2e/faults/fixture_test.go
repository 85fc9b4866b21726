package faults_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/e2e/harness"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

const (
	// patience bounds what a test waits for, by the clock of its bubble where it has one.
	patience = 10 * time.Minute
	// jobTimeout is six times the default: a job that is let down stands out from one that waited for a busy machine.
	jobTimeout = time.Minute
	// soon is when a job is answered that waited for nothing but pauses: 2 s between two polls, 2 s between two
	// connections, half a second between two tries of an answer.
	soon = 4500 * time.Millisecond
)

// fixture is one gateway, and the workers that come and go on it.
type fixture struct {
	*gateway.Gateway
	t       *testing.T
	options gateway.Options
	memory  *testkit.Memory // that its workers share, as replicas do
}

func newFixture(t *testing.T, o gateway.Options) *fixture {
	t.Helper()
	return &fixture{gateway.New(t, o), t, o, testkit.NewMemory()}
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// until waits for something to hold of the gateway.
func (f *fixture) until(what string, met func(gateway.Counts) bool) {
	f.t.Helper()
	if err := f.WaitFor(within(f.t), met); err != nil {
		f.t.Fatalf("not seen: %s: %v", what, err)
	}
}

// settled waits until nobody has anything more to do with n jobs.
func (f *fixture) settled(n int) {
	f.t.Helper()
	f.until(fmt.Sprintf("%d jobs settled", n), func(c gateway.Counts) bool { return c.Settled >= n })
}

// The errors by which a claim's job ends in one way or another.
const (
	passing   = "TIMEOUT - no answer" // completes
	permanent = "INVALID_PATIENT_DATA"
	rejected  = " " // fails with retries 0 (R11)
)

func claim(n int, problem string) gateway.Job {
	return gateway.Job{
		Type:      worker.AnalyzeRetry,
		Variables: fmt.Sprintf(`{"claimId":"CLM-FAULT-%d","submissionError":%q}`, n+1, problem),
	}
}

// claims puts in n jobs of an ordinary day: one of five is permanent, one of fifty no input at all.
func (f *fixture) claims(n int) []int64 {
	jobs := make([]gateway.Job, n)
	for i := range jobs {
		switch {
		case i%50 == 49:
			jobs[i] = claim(i, rejected)
		case i%5 == 4:
			jobs[i] = claim(i, permanent)
		default:
			jobs[i] = claim(i, passing)
		}
	}
	return f.AddJobs(jobs...)
}

// same puts in n jobs that end alike.
func (f *fixture) same(n int, problem string) []int64 { return f.AddJobs(alike(n, problem)...) }

func alike(n int, problem string) []gateway.Job {
	jobs := make([]gateway.Job, n)
	for i := range jobs {
		jobs[i] = claim(i, problem)
	}
	return jobs
}

// isAnswer reports whether a call is one by which a worker answers a job, or prepares that.
func isAnswer(c gateway.Call) bool { return c.Method != gateway.ActivateJobs }

// setup is how a worker in this process is made.
type setup struct {
	worker.Config
	zeebe.Options
}

// local is a worker in this process.
type local struct {
	*events
	*fixture
	stop  context.CancelFunc
	ended chan struct{}
}

// worker starts one; change may alter how it is made.
func (f *fixture) worker(name string, change ...func(*setup)) *local {
	f.t.Helper()
	c := setup{
		Config:  worker.Config{Name: name, JobTimeout: jobTimeout, PollTimeout: 500 * time.Millisecond, MaxJobsActive: 50, Concurrency: 50},
		Options: zeebe.Options{Address: f.Addr(), Plaintext: true, KeepAlive: 45 * time.Second},
	}
	if f.options.REST {
		c.Address, c.RESTAddress = "", f.RESTAddress()
	}
	if f.options.InMemory {
		c.Dialer = f.Dial
	}
	for _, alter := range change {
		alter(&c)
	}
	client, err := zeebe.Dial(c.Options, zap.NewNop())
	testkit.Must(f.t, err)
	w := &local{events: &events{counts: eventCounts{actions: map[worker.Action]int{}}}, fixture: f, ended: make(chan struct{})}
	hooks := w.hooks()
	analyzer := worker.NewAnalyzer(decisiontest.Policies, decision.RNBIL005, testkit.StartJournal(f.t, f.memory, time.Now), time.Now,
		hooks, zap.NewNop())
	loop := worker.New(client, c.Config, []worker.Subscription{{JobType: worker.AnalyzeRetry, Begin: analyzer.Begin}}, hooks, zap.NewNop())
	stop, stopNow := context.WithCancel(context.Background())
	kill, killNow := context.WithCancel(context.Background())
	w.stop = stopNow
	go func() {
		defer close(w.ended)
		loop.Run(stop, kill)
	}()
	f.t.Cleanup(func() { // of a test that fails half-way too
		stopNow()
		killNow()
		<-w.ended
		_ = client.Close()
	})
	return w
}

// leave stops the worker and waits until it is gone.
func (w *local) leave() {
	w.t.Helper()
	w.stop()
	select {
	case <-w.ended:
	case <-within(w.t).Done():
		w.t.Fatal("the worker does not stop")
	}
	if seen := w.seen(); seen.inFlight != 0 {
		w.t.Errorf("%d jobs are in flight after the end, want none", seen.inFlight)
	}
}

// wantActions fails unless exactly these things became of the jobs.
func (w *local) wantActions(want map[worker.Action]int) {
	w.t.Helper()
	if got := w.seen().actions; !maps.Equal(got, want) {
		w.t.Errorf("the jobs became %v, want %v", got, want)
	}
}

// lost is how many jobs the gateway gave away that none of the workers ever got: those alone may wait for their
// time-out.
func (f *fixture) lost(workers ...*local) int {
	n := f.Counts().HandedOut
	for _, w := range workers {
		n -= w.seen().received
	}
	return n
}

// events counts what a worker's hooks are told. Safe for concurrent use.
type events struct {
	harness.Board
	counts eventCounts
}

type eventCounts struct {
	actions            map[worker.Action]int
	inFlight, received int    // jobs in hand, and ever in hand
	ups                []bool // whether the engine answered, at every change
}

// answered is the number of jobs that were reported, whatever became of them.
func (c eventCounts) answered() (n int) {
	for _, k := range c.actions {
		n += k
	}
	return n
}

// down reports whether the engine was last said to be down.
func (c eventCounts) down() bool { return len(c.ups) > 0 && !c.ups[len(c.ups)-1] }

func (e *events) hooks() worker.Hooks {
	h := worker.NoHooks()
	h.Answered = func(_ string, a worker.Action) { e.Change(func() { e.counts.actions[a]++ }) }
	h.InFlight = func(n int) {
		e.Change(func() { e.counts.inFlight += n; e.counts.received += max(n, 0) })
	}
	h.EngineUp = func(up bool) { e.Change(func() { e.counts.ups = append(e.counts.ups, up) }) }
	return h
}

func (e *events) seen() (c eventCounts) {
	e.Look(func() {
		c = e.counts
		c.actions = maps.Clone(c.actions)
	})
	return c
}

// untilTold waits for something to hold of what the hooks were told.
func (w *local) untilTold(what string, met func(eventCounts) bool) {
	w.t.Helper()
	if !w.Until(within(w.t), func() bool { return met(w.counts) }) {
		w.t.Fatalf("not seen: %s; the hooks were told %+v", what, w.seen())
	}
}

// allReported waits until the worker has reported n jobs.
func (w *local) allReported(n int) {
	w.t.Helper()
	w.untilTold("all jobs reported", func(c eventCounts) bool { return c.answered() == n })
}
