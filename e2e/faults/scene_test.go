package faults_test

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/gatewaytest"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

const (
	// patience bounds what a test waits for; it is reached only where the test fails.
	patience = 2 * time.Minute
	// jobTimeout is six times the default, so that a job that is let down stands out from one that had
	// to wait for a busy machine. Where it has to pass, the engine's clock is moved.
	jobTimeout = time.Minute
	// penaltyBackoff is the worker's own.
	penaltyBackoff = 10 * time.Second
)

// scene is one gateway and the workers that come and go on it.
type scene struct {
	*gatewaytest.Gateway
	t      *testing.T
	memory *testkit.Memory // that its workers share, as replicas do
}

func newScene(t *testing.T, o gatewaytest.Options) *scene {
	t.Helper()
	s := &scene{gatewaytest.Start(o), t, testkit.NewMemory()}
	t.Cleanup(s.Close)
	return s
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// until waits for something to hold of the gateway, and fails the test where it never does.
func (s *scene) until(what string, met func(gatewaytest.View) bool) {
	s.t.Helper()
	if err := s.WaitFor(within(s.t), met); err != nil {
		s.t.Fatalf("not seen: %s: %v", what, err)
	}
}

// settled waits until nobody has anything more to do with n jobs.
func (s *scene) settled(n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("%d jobs settled", n), func(v gatewaytest.View) bool { return v.Settled() >= n })
}

// fired waits until a fault has happened n times.
func (s *scene) fired(r *gatewaytest.Rule, n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("the fault %d times", n), func(gatewaytest.View) bool { return r.Fired() >= n })
}

// claims puts in n jobs of an ordinary day.
func (s *scene) claims(n int) []int64 {
	jobs := make([]gatewaytest.Job, n)
	mix := gatewaytest.DefaultMix()
	for i := range jobs {
		jobs[i] = mix.Job(int64(i))
		jobs[i].Type = worker.AnalyzeRetry
	}
	return s.AddJobs(jobs...)
}

// The errors by which a claim's job ends in one way or another.
const (
	passing   = "TIMEOUT - no answer" // completes
	permanent = "INVALID_PATIENT_DATA"
	rejected  = " " // fails with retries 0 (R11)
)

// same puts in n jobs that end alike.
func (s *scene) same(n int, problem string) []int64 {
	jobs := make([]gatewaytest.Job, n)
	for i := range jobs {
		jobs[i] = claim(i, problem)
	}
	return s.AddJobs(jobs...)
}

func claim(n int, problem string) gatewaytest.Job {
	return gatewaytest.Job{
		Type:      worker.AnalyzeRetry,
		Variables: fmt.Sprintf(`{"claimId":"CLM-FAULT-%d","submissionError":%q,"retryCount":0}`, n+1, problem),
	}
}

// setup is how a worker in this process is made.
type setup struct {
	worker.Config
	zeebe.Options
	handler worker.Handler // nil: the real one
	types   []string       // of jobs
}

// inside is a worker in this process.
type inside struct {
	*tally
	name   string
	scene  *scene
	client *zeebe.Client
	sent   *sent
	logs   *observer.ObservedLogs
	stop   context.CancelFunc
	ended  chan struct{}
}

// worker starts one; change may alter how it is made.
func (s *scene) worker(name string, change ...func(*setup)) *inside {
	s.t.Helper()
	c := setup{
		Config: worker.Config{
			Name: name, JobTimeout: jobTimeout, PollTimeout: 500 * time.Millisecond, MaxJobsActive: 50, Concurrency: 50,
		},
		Options: zeebe.Options{Address: s.Addr(), Plaintext: true, KeepAlive: 45 * time.Second},
		types:   []string{worker.AnalyzeRetry},
	}
	for _, f := range change {
		f(&c)
	}
	core, logs := observer.New(zapcore.InfoLevel)
	log := zap.New(core)
	client, err := zeebe.Dial(c.Options, log)
	if err != nil {
		s.t.Fatal(err)
	}
	w := &inside{tally: newTally(), name: name, scene: s, client: client, logs: logs, ended: make(chan struct{})}
	w.run(c, log)
	return w
}

func (w *inside) run(c setup, log *zap.Logger) {
	hooks := w.hooks()
	if c.handler == nil {
		c.handler = worker.NewAnalyzer(decisiontest.Policies, decision.RNBIL005, testkit.StartJournal(w.scene.t, w.scene.memory, time.Now), time.Now, hooks, log).Begin().Handler
	}
	var subs []worker.Subscription
	for _, name := range c.types {
		subs = append(subs, worker.Subscription{JobType: name, Begin: worker.Always(c.handler, decisiontest.Policies().Variables()...)})
	}
	stop, stopNow := context.WithCancel(context.Background())
	kill, killNow := context.WithCancel(context.Background())
	w.stop = stopNow
	w.sent = &sent{Engine: w.client, last: map[int64]time.Time{}}
	loop := worker.New(w.sent, c.Config, subs, hooks, log)
	go func() {
		defer close(w.ended)
		loop.Run(stop, kill)
	}()
	w.scene.t.Cleanup(func() { // of a test that fails half-way too
		stopNow()
		killNow()
		<-w.ended
		_ = w.client.Close()
	})
}

// leave stops the worker and waits until it is gone.
func (w *inside) leave() {
	w.scene.t.Helper()
	w.stop()
	select {
	case <-w.ended:
	case <-within(w.scene.t).Done():
		w.scene.t.Fatal("the worker does not stop")
	}
	if f := w.figures(); f.inFlight != 0 {
		w.scene.t.Errorf("%d jobs are in flight after the end, want none", f.inFlight)
	}
}

// until waits for something to hold of what the hooks were told.
func (w *inside) until(what string, met func(figures) bool) {
	w.scene.t.Helper()
	if err := w.waitFor(within(w.scene.t), met); err != nil {
		w.scene.t.Fatalf("not seen: %s: %v", what, err)
	}
}

// settledAfterLoss waits until n jobs are settled; those that the engine gave away and nobody got come back
// by its clock, which is moved whenever the workers have nothing else in hand.
func (s *scene) settledAfterLoss(n int, workers ...*inside) {
	s.t.Helper()
	idle := func(v gatewaytest.View) bool {
		for _, w := range workers {
			if w.figures().inFlight > 0 {
				return false
			}
		}
		return v.Held > 0 && v.Waiting() == len(workers) // a worker that polls has taken what the last poll brought
	}
	for s.Counts().Settled() < n {
		s.until("nothing but lost jobs", func(v gatewaytest.View) bool { return v.Settled() >= n || idle(v) })
		if s.Counts().Settled() < n {
			s.Advance(jobTimeout)
		}
	}
}

// lost is how many jobs the engine gave away that none of the workers ever got: those alone may wait for
// their time-out.
func (s *scene) lost(workers ...*inside) int {
	n := s.Counts().HandedOut
	for _, w := range workers {
		n -= w.figures().received
	}
	return n
}

// wantActions fails unless exactly these things became of the jobs.
func (w *inside) wantActions(want map[worker.Action]int) {
	w.scene.t.Helper()
	if got := w.figures().actions; !maps.Equal(got, want) {
		w.scene.t.Errorf("the jobs became %v, want %v", got, want)
	}
}

// rival answers jobs by their keys, as a worker elsewhere does.
type rival struct{ *scene }

const rivalName = "rival"

func (s *scene) rival() rival {
	_, err := s.Activate(context.Background(), gatewaytest.ActivateRequest{ // so that the journal tells it from ours
		Type: "of the rival", Worker: rivalName, Caller: rivalName, Timeout: time.Second, MaxJobs: 1, RequestTimeout: -1,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return rival{s}
}

func (r rival) completes(key int64) {
	if err := r.Complete(context.Background(), gatewaytest.CompleteRequest{JobKey: key, Variables: "{}", Caller: rivalName}); err != nil {
		r.t.Errorf("the rival's answer: %v", err)
	}
}

func (r rival) fails(key int64) {
	err := r.Fail(context.Background(), gatewaytest.FailRequest{JobKey: key, Retries: 3, BackOff: penaltyBackoff, Caller: rivalName})
	if err != nil {
		r.t.Errorf("the rival's answer: %v", err)
	}
}

// the16 are the codes an error can have.
func the16() []codes.Code {
	var all []codes.Code
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		all = append(all, c)
	}
	return all
}
