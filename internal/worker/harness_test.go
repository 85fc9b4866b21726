package worker_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/decision"
	"retry-worker/internal/worker"
)

const (
	jobType     = "test-job"
	pollTimeout = 2 * time.Second
	// firstPoll bounds a loop's first poll, so that an idle engine is soon known to be there.
	firstPoll  = 200 * time.Millisecond
	jobTimeout = 10 * time.Second
	// margin is what the loop keeps of a job's time-out of 10 s (§4).
	margin = 500 * time.Millisecond
)

// engine is a scripted engine, which keeps what it was asked. Its time is the bubble's, from when it was made.
type engine struct {
	worker.Engine // its other methods are not called

	onPoll   func(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error)
	onAnswer func(ctx context.Context, a answer) error

	began time.Time

	mu      sync.Mutex
	polls   []poll
	answers []answer
	polling map[string]int      // running polls, by type
	crowded bool                // two polls of one type ran at once
	late    []answer            // given when the job's deadline had come, or with a context that ends later
	given   map[int64]int       // how often a job was handed out
	due     map[int64]time.Time // the end of a job's lock if that began when it was asked for
	tries   map[int64]int       // answers to a job
}

// poll is a request for jobs.
type poll struct {
	at time.Duration
	worker.ActivateRequest
}

// answer is a try to answer a job.
type answer struct {
	at       time.Duration
	verb     string // complete, throw, fail
	job      worker.Job
	try      int // its number, from 1
	complete string
	throw    worker.BPMNError
	fail     worker.Failure
}

func newEngine() *engine {
	return &engine{
		onPoll:   idle,
		onAnswer: func(context.Context, answer) error { return nil },
		began:    time.Now(), polling: map[string]int{}, given: map[int64]int{}, due: map[int64]time.Time{}, tries: map[int64]int{},
	}
}

// idle has no jobs: the poll takes its whole time.
func idle(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
	return nil, sleep(ctx, r.PollTimeout)
}

// sleep waits as a gateway's call does: the end of its context ends it.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return refusal(worker.Ambiguous)
	}
}

// refusal returns an engine's error of a kind.
func refusal(k worker.ErrorKind) error {
	return &worker.EngineError{Kind: k, Err: errors.New("the engine says no")}
}

func (e *engine) Activate(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
	e.mu.Lock()
	asked := time.Now()
	e.polls = append(e.polls, poll{asked.Sub(e.began), r})
	e.polling[r.JobType]++
	e.crowded = e.crowded || e.polling[r.JobType] > 1
	e.mu.Unlock()
	jobs, err := e.onPoll(ctx, r)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.polling[r.JobType]--
	for _, j := range jobs {
		e.given[j.Key]++
		e.due[j.Key] = asked.Add(r.JobTimeout)
	}
	return jobs, err
}

func (e *engine) answer(ctx context.Context, j *worker.Job, a answer) error {
	e.mu.Lock()
	e.tries[j.Key]++
	a.at, a.job, a.try = time.Since(e.began), *j, e.tries[j.Key]
	e.answers = append(e.answers, a)
	if ends, bounded := ctx.Deadline(); !time.Now().Before(j.Deadline) || !bounded || ends.After(j.Deadline) || !ends.Before(e.due[j.Key]) {
		e.late = append(e.late, a)
	}
	e.mu.Unlock()
	return e.onAnswer(ctx, a)
}

func (e *engine) Complete(ctx context.Context, j *worker.Job, variables string) error {
	return e.answer(ctx, j, answer{verb: "complete", complete: variables})
}

func (e *engine) Throw(ctx context.Context, j *worker.Job, b worker.BPMNError) error {
	return e.answer(ctx, j, answer{verb: "throw", throw: b})
}

func (e *engine) Fail(ctx context.Context, j *worker.Job, f worker.Failure) error {
	return e.answer(ctx, j, answer{verb: "fail", fail: f})
}

// asked returns the polls so far.
func (e *engine) asked() []poll {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.polls)
}

// told returns the answers so far.
func (e *engine) told() []answer {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.answers)
}

// activated returns how many jobs were handed out so far.
func (e *engine) activated() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, times := range e.given {
		n += times
	}
	return n
}

// offers gives each of the first polls a batch of jobs, as far as it asks for so many; then the engine is idle.
func (e *engine) offers(batches ...[]worker.Job) {
	e.onPoll = func(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
		e.mu.Lock()
		if len(batches) > 0 && len(batches[0]) <= r.MaxJobs {
			batch := batches[0]
			batches = batches[1:]
			e.mu.Unlock()
			return batch, nil
		}
		e.mu.Unlock()
		return idle(ctx, r)
	}
}

// endless gives every poll as many jobs as it asks for.
func (e *engine) endless() {
	next := int64(0)
	e.onPoll = func(_ context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		batch := jobs(r.JobType, next+1, r.MaxJobs)
		next += int64(r.MaxJobs)
		return batch, nil
	}
}

// jobs returns n jobs with keys from first on and 3 retries left.
func jobs(jobType string, first int64, n int) []worker.Job {
	batch := make([]worker.Job, n)
	for i := range batch {
		batch[i] = worker.Job{Key: first + int64(i), Type: jobType, Retries: 3, Headers: "{}", Variables: "{}"}
	}
	return batch
}

// tally counts the calls of the hooks.
type tally struct {
	mu        sync.Mutex
	decided   []decision.Decision
	took      time.Duration // of the last decision
	replayed  int
	ended     []string // by policy
	rejected  []decision.RejectionCode
	answered  map[worker.Action]int
	inFlight  int
	highest   int // of inFlight
	ups       []bool
	panicked  int
	oversized int
	timedOut  []string // by job type

	onAnswered func(jobType string) // called too, unless nil
}

func (c *tally) hooks() worker.Hooks {
	note := func(f func()) { c.mu.Lock(); defer c.mu.Unlock(); f() }
	hooks := worker.NoHooks()
	hooks.Decided = func(d *decision.Decision, took time.Duration) {
		note(func() { c.decided, c.took = append(c.decided, *d), took })
	}
	hooks.Ended = func(policy string) { note(func() { c.ended = append(c.ended, policy) }) }
	hooks.EngineUp = func(up bool) { note(func() { c.ups = append(c.ups, up) }) }
	hooks.Add = func(metric string, n float64, values ...string) {
		note(func() { c.add(metric, int(n), values) })
		if metric == worker.Answered && c.onAnswered != nil {
			c.onAnswered(values[0])
		}
	}
	return hooks
}

func (c *tally) add(metric string, n int, values []string) {
	switch strings.TrimPrefix(metric, "retry_worker_") {
	case "decisions_replayed_total":
		c.replayed += n
	case "rejected_inputs_total":
		c.rejected = append(c.rejected, decision.RejectionCode(values[1]))
	case "jobs_total":
		c.answered[worker.Action(values[1])] += n
	case "jobs_in_flight":
		c.inFlight += n
		c.highest = max(c.highest, c.inFlight)
	case "panics_total":
		c.panicked += n
	case "analysis_timeouts_total":
		c.timedOut = append(c.timedOut, values[0])
	case "oversized_total":
		c.oversized += n
	}
}

func newTally() *tally { return &tally{answered: map[worker.Action]int{}} }

// actions returns what became of the jobs so far.
func (c *tally) actions() map[worker.Action]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.answered)
}

// upDown returns what was reported of the engine so far.
func (c *tally) upDown() []bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.ups)
}

// running is a worker in a bubble.
type running struct {
	*engine
	*tally
	logs       *observer.ObservedLogs
	stop, kill context.CancelFunc
	ended      chan struct{}
}

// config returns the usual configuration.
func config() worker.Config {
	return worker.Config{
		Name: "tester", JobTimeout: jobTimeout, PollTimeout: pollTimeout, MaxJobsActive: 50, Concurrency: 8,
		Await: func(context.Context) bool { return true },
	}
}

// completing completes each job at once.
func completing(context.Context, *worker.Job) worker.Reply {
	return worker.Reply{Action: worker.Completed, Variables: "{}"}
}

// one returns a subscription to jobType alone.
func one(h worker.Handler) []worker.Subscription {
	return []worker.Subscription{{JobType: jobType, Begin: worker.Always(h, "a")}}
}

// start runs a worker on e until the test stops it.
func start(t *testing.T, e *engine, cfg worker.Config, subs []worker.Subscription) *running {
	return startTelling(t, newTally(), e, cfg, subs)
}

// startTelling is start with the test's own tally.
func startTelling(t *testing.T, told *tally, e *engine, cfg worker.Config, subs []worker.Subscription) *running {
	core, logs := observer.New(zapcore.DebugLevel)
	r := &running{engine: e, tally: told, logs: logs, ended: make(chan struct{})}
	stop, cancelStop := context.WithCancel(context.Background())
	kill, cancelKill := context.WithCancel(context.Background())
	r.stop, r.kill = cancelStop, cancelKill
	w := worker.New(e, cfg, subs, r.hooks(), zap.New(core))
	go func() {
		defer close(r.ended)
		w.Run(stop, kill)
	}()
	t.Cleanup(func() { // for a test that fails half-way
		r.stop()
		r.kill()
		<-r.ended
	})
	return r
}

// finish stops the worker and checks what is true of every run: its places are empty, each activated job was reported
// once, no two polls of one type ran at once, and no answer was given after its job's deadline.
func (r *running) finish(t *testing.T) {
	t.Helper()
	r.stop()
	<-r.ended
	r.kill()
	r.sound(t)
}

func (r *running) sound(t reporter) {
	t.Helper()
	if r.crowded {
		t.Errorf("two polls of one job type ran at once")
	}
	if len(r.late) > 0 {
		t.Errorf("%d answers past their job's deadline, the first %+v", len(r.late), r.late[0])
	}
	r.tally.mu.Lock()
	defer r.tally.mu.Unlock()
	if r.inFlight != 0 {
		t.Errorf("%d jobs are in flight after the end, want none", r.inFlight)
	}
	total := 0
	for _, n := range r.answered {
		total += n
	}
	if n := r.activated(); total != n {
		t.Errorf("%d jobs were activated and %d reported: %v", n, total, r.answered)
	}
}

// reporter is a test or a property's check.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
}

// wantActions fails unless exactly this became of the jobs.
func (c *tally) wantActions(t reporter, want map[worker.Action]int) {
	t.Helper()
	if got := c.actions(); !maps.Equal(got, want) {
		t.Errorf("the jobs became %v, want %v", got, want)
	}
}

// bubble runs f in fake time, and fails if it leaves a goroutine behind.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// onEngine runs f in fake time with an engine of its own.
func onEngine(t *testing.T, f func(t *testing.T, e *engine)) {
	t.Helper()
	bubble(t, func(t *testing.T) { f(t, newEngine()) })
}

// each is onEngine as a subtest.
func each(t *testing.T, name string, f func(t *testing.T, e *engine)) {
	t.Run(name, func(t *testing.T) { onEngine(t, f) })
}
