package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

// anotherTenant has processes, too.
const anotherTenant = "hospital-b"

// reviewFixture is a journal with dead letters, an engine, and whoever decides, in a bubble.
type reviewFixture struct {
	*testkit.Fixture
	*tally
	t       *testing.T
	gateway *gateway.Gateway
	client  *zeebe.Client
	logs    *observer.ObservedLogs
	log     *zap.Logger
	behind  time.Duration // is the clock of replicas that begin
}

func withReviews(t *testing.T, test func(f *reviewFixture)) {
	t.Helper()
	testkit.Bubble(t, func(t *testing.T, f *testkit.Fixture) {
		core, logs := observer.New(zapcore.DebugLevel)
		log := zap.New(core)
		g := gateway.New(t, gateway.Options{InMemory: true, Tenants: []string{anotherTenant}})
		c, err := zeebe.Dial(zeebe.Options{Address: g.Addr(), Plaintext: true, KeepAlive: time.Minute, Dialer: g.Dial}, log)
		testkit.Must(t, err)
		t.Cleanup(func() { _ = c.Close() })
		test(&reviewFixture{Fixture: f, tally: newTally(), t: t, gateway: g, client: c, logs: logs, log: log})
	}, testkit.By(policies()))
}

// job is how a job stands.
func (f *reviewFixture) job(key int64) gateway.Record {
	f.t.Helper()
	j, known := f.gateway.Job(key)
	if !known {
		f.t.Fatalf("there is no job %d", key)
	}
	return j
}

// given is how often a job was handed out.
func (f *reviewFixture) given(key int64) int { return len(f.job(key).Activations) }

// said returns what the engine took by a method from the worker that answered a job; nil where it took nothing.
func (f *reviewFixture) said(key int64, by gateway.Method) *gateway.Answer {
	for _, a := range f.job(key).Answers {
		if a.Method == by && a.Accepted() {
			return &a
		}
	}
	return nil
}

// taken reports whether the engine took the answer to a job.
func (f *reviewFixture) taken(key int64) bool { return f.said(key, gateway.CompleteJob) != nil }

// cancel ends the process instance of a job.
func (f *reviewFixture) cancel(key int64) { f.gateway.Cancel(f.job(key).ProcessInstanceKey) }

// calls is how many completions, holds and questions were made.
func (f *reviewFixture) calls() int {
	return f.gateway.Calls(gateway.CompleteJob) + f.gateway.Calls(gateway.UpdateJobTimeout) + f.gateway.Calls(gateway.SetVariables)
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
	hooks.Committed = func([]journal.Happening, time.Duration) { relay.Wake() }
	memory := journal.New(f.Memory, time.Now, nil, hooks)
	now := func() time.Time { return time.Now().Add(-f.behind) }
	sink := worker.NewReviewSink(f.client, f.Memory, memory, now, f.hooks(), f.log)
	relay = outbox.New(journal.ReviewQueue, name, f.Memory, func(context.Context, []int64) error { return nil }, sink, f.log)
	relay.Leads = sink.Leads
	reviews := worker.NewReviews(f.client, policies, f.Memory, memory, relay.Wake, f.hooks(), f.log)
	taking := reviews.Worker(worker.Config{Name: name, PollTimeout: pollTimeout, Await: memory.Await,
		TenantIDs: []string{journal.DefaultTenant, anotherTenant}})
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

// dead makes a dead letter below the limit, of a process instance that comes to no task before waits has it.
func (f *reviewFixture) dead() (id, subject string, instance int64) {
	f.t.Helper()
	subject = fmt.Sprintf("CLM-%d-1", len(f.Memory.Subjects()))
	failed := f.gateway.AddJob(gateway.Job{Type: "submit-claim"})
	_, err := f.gateway.CompleteJob(f.t.Context(), &pb.CompleteJobRequest{JobKey: failed, Variables: "{}"})
	testkit.Must(f.t, err)
	instance = f.job(failed).ProcessInstanceKey
	f.InProcess(testkit.Subject(tiss, subject), instance)
	return f.Die(tiss, subject, "DUPLICATE_CLAIM", 2), subject, instance
}

// waits has a process come to its review task, and returns the job's key; instance is 0 for a process of its own.
func (f *reviewFixture) waits(instance int64, variables string) int64 {
	return f.gateway.AddJob(gateway.Job{Type: worker.RetryReview, ProcessInstanceKey: instance, Variables: variables})
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
func (f *reviewFixture) waiting() (string, int64) {
	f.t.Helper()
	id, subject, instance := f.dead()
	return id, f.waits(instance, fmt.Sprintf(`{"deadLetterId":%q,"claimId":%q}`, id, subject))
}

func (f *reviewFixture) retry(id string) {
	f.t.Helper()
	_, err := f.DeadLetters.Decide(context.Background(), deadletter.Command{Action: journal.BulkRetry, ID: id, Reason: "portal de volta", By: "maria"})
	testkit.Must(f.t, err)
}

func (f *reviewFixture) discard(id string) {
	f.t.Helper()
	_, err := f.DeadLetters.Decide(context.Background(), deadletter.Command{Action: journal.BulkDiscard, ID: id, Reason: "duplicada", By: "maria"})
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
