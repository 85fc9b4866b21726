package worker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// reviewJob is one in the engine.
type reviewJob struct {
	worker.Job
	lockedUntil time.Time
	// taken are the variables it was completed with; gone tells that it is over, however.
	taken    string
	gone     bool
	incident string
	given    []time.Time // when it was handed out
}

// reviewEngine is an engine with review jobs alone.
type reviewEngine struct {
	mu     sync.Mutex
	jobs   []*reviewJob
	ended  map[int64]bool // process instances
	down   bool           // nothing arrives
	deaf   int            // so many completions arrive, and their answers do not
	refuse bool           // completions
	noHold bool
	busy   int // so many holds are not taken
	asked  int // ReviewEngine's calls that arrived: completions, holds, runs
	polls  []worker.ActivateRequest
	most   int // jobs handed out at once
}

func (e *reviewEngine) Activate(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
	e.mu.Lock()
	e.polls = append(e.polls, r)
	e.mu.Unlock()
	ends := time.Now().Add(r.PollTimeout)
	for {
		if jobs, err := e.offer(r); err != nil || len(jobs) > 0 {
			return jobs, err
		}
		if time.Until(ends) <= 0 {
			return nil, nil
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func (e *reviewEngine) offer(r worker.ActivateRequest) ([]worker.Job, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down {
		return nil, refusal(worker.Ambiguous)
	}
	var given []worker.Job
	for _, j := range e.jobs {
		if len(given) == r.MaxJobs {
			break
		}
		if j.gone || j.incident != "" || time.Now().Before(j.lockedUntil) {
			continue
		}
		j.lockedUntil = time.Now().Add(r.JobTimeout)
		j.given = append(j.given, time.Now())
		given = append(given, j.Job)
	}
	e.most = max(e.most, len(given))
	return given, nil
}

// command does something to a job, unless that cannot arrive.
func (e *reviewEngine) command(key int64, do func(j *reviewJob) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down {
		return refusal(worker.Ambiguous)
	}
	e.asked++
	for _, j := range e.jobs {
		if j.Key == key && !j.gone {
			return do(j)
		}
	}
	return refusal(worker.Gone)
}

func (e *reviewEngine) Complete(_ context.Context, j *worker.Job, variables string) error {
	return e.command(j.Key, func(j *reviewJob) error {
		if e.refuse {
			return refusal(worker.Refused)
		}
		j.taken, j.gone = variables, true
		if e.deaf > 0 {
			e.deaf--
			return refusal(worker.Ambiguous)
		}
		return nil
	})
}

func (e *reviewEngine) Throw(context.Context, *worker.Job, worker.BPMNError) error {
	return errors.New("a review job is never answered with an error")
}

func (e *reviewEngine) Fail(ctx context.Context, j *worker.Job, f worker.Failure) error {
	if err := sleep(ctx, time.Millisecond); err != nil { // else a job that goes round would do so in no time at all
		return err
	}
	return e.command(j.Key, func(j *reviewJob) error {
		j.lockedUntil = time.Now().Add(f.Backoff)
		if j.Retries = f.Retries; f.Retries == 0 {
			j.incident = f.Message
		}
		return nil
	})
}

func (e *reviewEngine) Hold(_ context.Context, j *worker.Job, long time.Duration) error {
	return e.command(j.Key, func(j *reviewJob) error {
		if e.noHold {
			return refusal(worker.Refused)
		}
		if e.busy > 0 {
			e.busy--
			return refusal(worker.NotTaken)
		}
		j.lockedUntil = time.Now().Add(long)
		return nil
	})
}

func (e *reviewEngine) Runs(_ context.Context, instance int64) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.down {
		return false, refusal(worker.Ambiguous)
	}
	e.asked++
	return !e.ended[instance], nil
}

// set changes what the engine does.
func (e *reviewEngine) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

// waits makes a process come to its review task.
func (e *reviewEngine) waits(instance int64, variables string) *reviewJob {
	e.mu.Lock()
	defer e.mu.Unlock()
	key := int64(9000 + len(e.jobs))
	j := &reviewJob{Job: worker.Job{Key: key, ProcessInstanceKey: instance, ElementInstanceKey: key, Type: worker.RetryReview,
		TenantID: journal.DefaultTenant, Retries: 3, Headers: "{}", Variables: variables}}
	e.jobs = append(e.jobs, j)
	return j
}

// cancel ends a process instance; its job is gone.
func (e *reviewEngine) cancel(j *reviewJob) {
	e.set(func() { j.gone, e.ended[j.ProcessInstanceKey] = true, true })
}

// of is how a job stands.
func (e *reviewEngine) of(j *reviewJob) reviewJob {
	e.mu.Lock()
	defer e.mu.Unlock()
	return *j
}

// calls is how many completions, holds and questions have arrived.
func (e *reviewEngine) calls() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

// all are the jobs as they stand, and the most that were handed out at once.
func (e *reviewEngine) all() (jobs []reviewJob, most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range e.jobs {
		jobs = append(jobs, *j)
	}
	return jobs, e.most
}

// reviewFixture is a journal with dead letters, an engine, and whoever decides, in a bubble.
type reviewFixture struct {
	*testkit.Fixture
	*reviewEngine
	*tally
	t      *testing.T
	logs   *observer.ObservedLogs
	log    *zap.Logger
	behind time.Duration // is the clock of replicas that begin
}

func withReviews(t *testing.T, test func(f *reviewFixture)) {
	t.Helper()
	testkit.Bubble(t, func(t *testing.T, f *testkit.Fixture) {
		core, logs := observer.New(zapcore.DebugLevel)
		test(&reviewFixture{f, &reviewEngine{ended: map[int64]bool{}}, newTally(), t, logs, zap.New(core), 0})
	}, testkit.By(policies()))
}

// replica is one process: it takes review jobs and delivers answers.
type replica struct {
	halt, kill context.CancelFunc
	ended      chan struct{}
}

// stop ends it softly.
func (r *replica) stop() { r.halt(); <-r.ended; r.kill() }

// die ends it as SIGKILL does, as far as that can be played.
func (r *replica) die() { r.kill(); r.halt(); <-r.ended }

// begin starts a replica.
func (f *reviewFixture) begin(name string) *replica {
	stop, halt := context.WithCancel(context.Background())
	kill, killNow := context.WithCancel(context.Background())
	r := &replica{halt, killNow, make(chan struct{})}
	var relay *outbox.Relay
	hooks := journal.NoHooks()
	hooks.Committed = func(int, time.Duration) { relay.Wake() }
	memory := journal.New(f.Memory, time.Now, nil, hooks)
	now := func() time.Time { return time.Now().Add(-f.behind) }
	sink := worker.NewReviewSink(f.reviewEngine, f.Memory, memory, now, f.hooks(), f.log)
	relays := outbox.NoHooks()
	relays.Leading = sink.Leading
	relay = outbox.New(journal.ReviewQueue, name, f.Memory, func(context.Context, []int64) error { return nil }, sink, relays, f.log)
	reviews := worker.NewReviews(f.reviewEngine, policies, f.Memory, memory, relay.Wake, f.hooks(), f.log)
	taking := reviews.Worker(worker.Config{Name: name, PollTimeout: pollTimeout, Await: memory.Await})
	ends, end := context.WithCancel(context.Background())
	var writing, working sync.WaitGroup
	writing.Go(func() { memory.Run(ends, kill) })
	working.Go(func() { relay.Run(stop, kill) })
	working.Go(func() { taking.Run(stop, kill) })
	go func() {
		defer close(r.ended)
		working.Wait()
		end()
		writing.Wait()
	}()
	f.t.Cleanup(r.die)
	return r
}

// dead makes a dead letter below the limit, by the process instance that is given with it.
func (f *reviewFixture) dead() (id, subject string, instance int64) {
	f.t.Helper()
	subject = fmt.Sprintf("CLM-%d-1", len(f.Memory.Subjects()))
	id = f.Die(tiss, subject, "DUPLICATE_CLAIM", 2)
	return id, subject, f.Item(id).ProcessInstanceKey
}

// fails has the process of a dead letter be refused for good once more.
func (f *reviewFixture) fails(id string) { f.Die(tiss, f.Item(id).Subject.ID, "DUPLICATE_CLAIM", 2) }

// reports has the process of a dead letter succeed after all.
func (f *reviewFixture) reports(id string) {
	f.t.Helper()
	i := f.Item(id)
	o := &journal.Outcome{Subject: i.Subject, Success: true, ProcessInstanceKey: i.ProcessInstanceKey}
	_, err := f.Journal.Conclude(f.t.Context(), o)
	testkit.Must(f.t, err)
}

// waiting is a dead letter whose process came to its review task.
func (f *reviewFixture) waiting() (string, *reviewJob) {
	f.t.Helper()
	id, subject, instance := f.dead()
	return id, f.waits(instance, fmt.Sprintf(`{"deadLetterId":%q,"claimId":%q}`, id, subject))
}

func (f *reviewFixture) retry(id string) {
	f.t.Helper()
	_, err := f.DeadLetters.Retry(context.Background(), deadletter.Command{ID: id, Reason: "portal de volta", By: "maria"})
	testkit.Must(f.t, err)
}

func (f *reviewFixture) discard(id string) {
	f.t.Helper()
	_, err := f.DeadLetters.Discard(context.Background(), deadletter.Command{ID: id, Reason: "duplicada", By: "maria"})
	testkit.Must(f.t, err)
}

// within waits until something holds.
func (f *reviewFixture) within(long time.Duration, what string, holds func() bool) {
	f.t.Helper()
	for ends := time.Now().Add(long); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(ends) {
			f.t.Fatalf("after %v still not: %s", long, what)
		}
	}
	synctest.Wait()
}

// delivered reports whether nothing is on its way.
func (f *reviewFixture) delivered() bool { return len(f.Memory.Outbox()) == 0 }

// wantItem fails unless a dead letter stands like this.
func (f *reviewFixture) wantItem(id string, state journal.DeadLetterState, as journal.Delivery, process deadletter.Process) {
	f.t.Helper()
	if i := f.Item(id); i.State != state || i.Delivery != as || i.Process != process {
		f.t.Errorf("the dead letter is %s, its answer %q, its process %q; want %s, %q, %q", i.State, i.Delivery, i.Process, state, as, process)
	}
}

// deliveries are what the audit has of answers about a subject.
func (f *reviewFixture) deliveries(id string) []string {
	f.t.Helper()
	story, _, err := f.Memory.Story(f.t.Context(), f.Item(id).Subject)
	testkit.Must(f.t, err)
	var all []string
	for _, e := range story.Entries {
		var body struct{ Delivery string }
		if e.Kind == journal.DeliveryEntry && json.Unmarshal([]byte(e.Body), &body) == nil && body.Delivery != "waiting" {
			all = append(all, body.Delivery)
		}
	}
	return all
}
