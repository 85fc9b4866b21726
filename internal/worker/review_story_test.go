package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/camunda/zeebe/clients/go/v8/pkg/pb"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"google.golang.org/grpc/codes"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/golden"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

// TestReviewStories plays testdata/reviews/*.txt: processes wait for people's decisions on their dead letters, and
// get them.
func TestReviewStories(t *testing.T) {
	golden.Stories(t, "testdata/reviews", func(t *testing.T, file string) {
		withReviews(t, func(r *reviews) { golden.Story(t, file, r.play) })
	})
}

// reviews are a journal with dead letters, an engine, and whoever decides, in a bubble.
type reviews struct {
	*testkit.Fixture
	*tally
	t        *testing.T
	gateway  *gateway.Gateway
	client   *zeebe.Client
	logs     *observer.ObservedLogs
	log      *zap.Logger
	behind   time.Duration // is the clock of replicas that begin
	replicas map[string]*replica
	letters  map[string]*letter // by name
	faults   []*gateway.Rule
	calls    int   // of the engine, when they were told
	records  int64 // likewise
}

// letter is a dead letter, and the process that it is of.
type letter struct {
	id, subject string
	instance    int64
	job         int64 // of its review task; 0: it has not come there
}

// anotherTenant has processes, too.
const anotherTenant = "hospital-b"

func withReviews(t *testing.T, test func(r *reviews)) {
	t.Helper()
	testkit.Bubble(t, func(t *testing.T, f *testkit.Fixture) {
		core, logs := observer.New(zapcore.DebugLevel)
		r := &reviews{Fixture: f, t: t, logs: logs, log: zap.New(core),
			gateway: gateway.New(t, gateway.Options{InMemory: true, Tenants: []string{anotherTenant}})}
		var err error
		o := zeebe.Options{Address: r.gateway.Addr(), Plaintext: true, KeepAlive: time.Minute, Dialer: r.gateway.Dial}
		r.client, err = zeebe.Dial(o, r.log)
		testkit.Must(t, err)
		t.Cleanup(func() { _ = r.client.Close() })
		_, _ = r.renew(nil)
		test(r)
	}, testkit.By(policies()))
}

func (r *reviews) play(command string) string {
	text := golden.Play(command, map[string]func(*golden.Arguments) (string, error){
		"new": r.renew, "dead": r.dies, "comes": r.comes, "odd": r.odd, "begin": r.begins, "behind": r.isBehind, "stop": r.stops,
		"die": r.killed, "wait": golden.Wait, "advance": r.advance, "delivered": r.delivered, "decide": r.decides, "cancel": r.cancels,
		"ends": r.processEnds, "fault": r.fault, "heal": r.heal, "store": r.storeIs, "shows": r.shows, "handed": r.handed,
		"counted": r.counted, "logged": r.logged,
	})
	for name, l := range r.letters {
		text = strings.ReplaceAll(text, l.id, name)
	}
	return text
}

// renew ends all replicas and faults; what there is stays.
func (r *reviews) renew(*golden.Arguments) (string, error) {
	for _, one := range r.replicas {
		one.die()
	}
	r.tally, r.replicas, r.letters, r.behind = newTally(), map[string]*replica{}, map[string]*letter{}, 0
	r.Memory.Delay(0)
	r.Memory.Heal()
	aligned()
	r.logs.TakeAll()
	return r.heal(nil)
}

// aligned waits until the next minute: what ends, a poll above all, takes a time that is drawn.
func aligned() { golden.Pass(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute))) }

// dies makes dead letters below the limit, of process instances that come to no task before they are said to.
func (r *reviews) dies(a *golden.Arguments) (string, error) {
	for _, name := range strings.Split(a.First, ",") {
		l := &letter{subject: fmt.Sprintf("CLM-%d-1", len(r.Memory.Subjects()))}
		failed := r.gateway.AddJob(gateway.Job{Type: "submit-claim"})
		_, err := r.gateway.CompleteJob(r.t.Context(), &pb.CompleteJobRequest{JobKey: failed, Variables: "{}"})
		testkit.Must(r.t, err)
		l.instance = r.job(failed).ProcessInstanceKey
		r.InProcess(testkit.Subject("tiss-submission", l.subject), l.instance)
		l.id = r.Die("tiss-submission", l.subject, "DUPLICATE_CLAIM", 2)
		r.letters[name] = l
	}
	return "", nil
}

// comes has the processes of dead letters come to their review tasks.
func (r *reviews) comes(a *golden.Arguments) (string, error) {
	for _, name := range strings.Split(a.First, ",") {
		l := r.letters[name]
		variables := fmt.Sprintf(`{"deadLetterId":%q,"claimId":%q}`, l.id, l.subject)
		if a.Words["nameless"] {
			variables = fmt.Sprintf(`{"deadLetterId":%q}`, l.id)
		}
		l.job = r.gateway.AddJob(gateway.Job{Type: worker.RetryReview, ProcessInstanceKey: l.instance, Variables: variables})
	}
	return "", nil
}

// odd has a process of nobody's come with those variables, in which ID is the dead letter's id, and tells the incident.
func (r *reviews) odd(a *golden.Arguments) (string, error) {
	id := r.letters["a"].id
	spell := strings.NewReplacer("'", `"`, "ID", id, "CAPITALS", strings.ToUpper(id), "LONG", strings.Repeat("x", 1<<20))
	variables := spell.Replace(a.Named["variables"])
	key := r.gateway.AddJob(gateway.Job{Type: worker.RetryReview, Variables: variables, TenantID: a.Named["tenant"]})
	r.within(10*time.Second, func() bool { return r.job(key).State == gateway.Incident })
	return r.job(key).Answers[0].Message + "\n", nil
}

// job is how a job stands.
func (r *reviews) job(key int64) gateway.Record {
	r.t.Helper()
	j, known := r.gateway.Job(key)
	if !known {
		r.t.Fatalf("there is no job %d", key)
	}
	return j
}

// replica is one process: it takes review jobs and delivers answers.
type replica struct {
	halt, kill context.CancelFunc
	ended      chan struct{}
}

// stop ends it softly.
func (p *replica) stop() { p.halt(); <-p.ended; p.kill() }

// die ends it as SIGKILL does, as far as that can be played.
func (p *replica) die() { p.kill(); p.halt(); <-p.ended }

// begin starts a replica.
func (r *reviews) begin(name string) *replica {
	stop, halt := context.WithCancel(context.Background())
	kill, killNow := context.WithCancel(context.Background())
	p := &replica{halt, killNow, make(chan struct{})}
	var relay *outbox.Relay
	hooks := journal.NoHooks()
	hooks.Committed = func([]journal.Happening, time.Duration) { relay.Wake() }
	memory := journal.New(r.Memory, time.Now, nil, hooks)
	behind := r.behind
	now := func() time.Time { return time.Now().Add(-behind) }
	jobs := worker.NewHandlers(worker.Options{Policies: policies, Memory: memory, Now: now, Hooks: r.hooks(), Log: r.log, Engine: r.client,
		Letters: r.Memory, Answered: func() { relay.Wake() }})
	sink := &worker.ReviewSink{Options: jobs.Options, Record: memory.Delivered}
	relay = outbox.New(journal.ReviewQueue, name, r.Memory, func(context.Context, []int64) error { return nil }, sink, r.log)
	relay.Leads = sink.Leads
	taking := jobs.Worker(worker.Config{Name: name, PollTimeout: pollTimeout, Await: memory.Await,
		TenantIDs: []string{journal.DefaultTenant, anotherTenant}}, worker.RetryReview)
	ends, end := context.WithCancel(context.Background())
	var writing, working sync.WaitGroup
	writing.Go(func() { memory.Run(ends, kill) })
	working.Go(func() { relay.Run(stop, kill) })
	working.Go(func() { taking.Run(stop, kill) })
	go func() {
		defer close(p.ended)
		working.Wait()
		end()
		writing.Wait()
	}()
	r.t.Cleanup(p.die)
	return p
}

func (r *reviews) begins(a *golden.Arguments) (string, error) {
	r.replicas[a.First] = r.begin(a.First)
	return "", nil
}

func (r *reviews) stops(a *golden.Arguments) (string, error) {
	r.replicas[a.First].stop()
	aligned()
	return "", nil
}

func (r *reviews) killed(a *golden.Arguments) (string, error) {
	r.replicas[a.First].die()
	return "", nil
}

func (r *reviews) isBehind(a *golden.Arguments) (_ string, err error) {
	r.behind, err = time.ParseDuration(a.First)
	return "", err
}

// advance moves the engine's clock.
func (r *reviews) advance(a *golden.Arguments) (string, error) {
	d, err := time.ParseDuration(a.First)
	r.gateway.Advance(d)
	return "", err
}

// within waits until something holds.
func (r *reviews) within(long time.Duration, holds func() bool) {
	r.t.Helper()
	for ends := time.Now().Add(long); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(ends) {
			r.t.Fatalf("not within %v", long)
		}
	}
	synctest.Wait()
}

// delivered waits for so long, and tells how many answers are on their way then, if any.
func (r *reviews) delivered(a *golden.Arguments) (string, error) {
	long, err := time.ParseDuration(a.Named["within"])
	golden.Pass(long)
	if n := len(r.Memory.Outbox()); n > 0 {
		return fmt.Sprintf("%d are on their way\n", n), err
	}
	return "", err
}

// decides has a person retry or discard, or say what became of a claim that a process had sent again.
func (r *reviews) decides(a *golden.Arguments) (_ string, err error) {
	c := deadletter.Command{ID: r.letters[a.Named["on"]].id, By: "maria", Action: journal.BulkRetry, Reason: "portal de volta"}
	if a.First == "discard" {
		c.Action, c.Reason = journal.BulkDiscard, "duplicada"
	}
	_, err = r.DeadLetters.Decide(context.Background(), c)
	return "", err
}

// cancels ends the process instance of a dead letter.
func (r *reviews) cancels(a *golden.Arguments) (string, error) {
	r.gateway.Cancel(r.letters[a.First].instance)
	return "", nil
}

// processEnds has a claim succeed after all, be found at the portal, or be refused once more, by its process or as a
// person says.
func (r *reviews) processEnds(a *golden.Arguments) (string, error) {
	i := r.Item(r.letters[a.First].id)
	o := &journal.Outcome{Subject: i.Subject, ProcessInstanceKey: i.ProcessInstanceKey, Success: a.Words["well"]}
	switch {
	case a.Words["refused"]:
		r.Die("tiss-submission", i.Subject.ID, "DUPLICATE_CLAIM", 2)
		return "", nil
	case a.Words["accepted"]:
		o.Accepted = &journal.Acceptance{}
	}
	if by := a.Named["by"]; by != "" {
		o.By, o.DeadLetter, o.ProcessInstanceKey = by, i.ID, 0
	}
	_, err := r.Journal.Conclude(r.t.Context(), o)
	return "", err
}

// fault has the engine answer calls of a method, or all, with a code. Calls that are lost take effect, too.
func (r *reviews) fault(a *golden.Arguments) (string, error) {
	var code codes.Code
	err := code.UnmarshalJSON([]byte(`"` + a.Named["code"] + `"`))
	r.faults = append(r.faults, r.gateway.Inject(gateway.Fault{Method: gateway.Method(a.Named["method"]), Code: code,
		Times: int(a.Number("times")), DropAck: a.Words["lost"]}))
	return "", err
}

func (r *reviews) heal(*golden.Arguments) (string, error) {
	for _, rule := range r.faults {
		rule.Remove()
	}
	r.faults = nil
	return "", nil
}

// storeIs has the store be down, read only or too slow to record anything, or well again.
func (r *reviews) storeIs(a *golden.Arguments) (string, error) {
	r.Memory.SetDown(a.First == "down")
	r.Memory.Delay(map[string]time.Duration{"slow": time.Second}[a.First])
	if r.Memory.Heal(); a.First == "readonly" {
		r.Memory.Fail(1<<16, testkit.Fault{})
	}
	return "", nil
}

// shows tells how dead letters stand, what their processes were told, and what the audit has of that.
func (r *reviews) shows(a *golden.Arguments) (said string, _ error) {
	for _, name := range strings.Split(a.First, ",") {
		l := r.letters[name]
		i := r.Item(l.id)
		said += fmt.Sprintf("%s: %s, delivery %q, process %s", name, i.State, i.Delivery, i.Process)
		if i.ReviewJobKey != l.job {
			said += fmt.Sprintf(" at job %d of %d", i.ReviewJobKey, l.job)
		}
		said += fmt.Sprintf(", audited %v\n", r.deliveries(l.id))
		if l.job != 0 {
			said += r.review(r.job(l.job))
		}
	}
	return said, nil
}

// review tells of a review job; the same answer again and again once.
func (r *reviews) review(j gateway.Record) string {
	last := "never"
	if n := len(j.Activations); n > 0 {
		last = j.Activations[n-1].Deadline.Sub(r.gateway.Now()).Round(time.Hour).String()
	}
	lines := []string{fmt.Sprintf("  job %s, %d retries, locked for %s\n", j.State, j.Retries, last)}
	for _, answer := range j.Answers {
		if answer.Accepted() && answer.Method != gateway.UpdateJobTimeout {
			lines = append(lines, fmt.Sprintf("  %s %s%s\n", answer.Method, answer.Variables, answer.Message))
		}
	}
	return strings.Join(slices.Compact(lines), "")
}

// deliveries are what the audit has of answers about a subject.
func (r *reviews) deliveries(id string) (all []string) {
	r.t.Helper()
	told, _, err := r.Memory.Story(r.t.Context(), r.Item(id).Subject)
	testkit.Must(r.t, err)
	for _, e := range told.Entries {
		var body struct{ Delivery string }
		if e.Kind == journal.DeliveryEntry && json.Unmarshal([]byte(e.Body), &body) == nil && body.Delivery != "waiting" {
			all = append(all, body.Delivery)
		}
	}
	return all
}

// handed tells how often a job was handed out, if that is not between two numbers.
func (r *reviews) handed(a *golden.Arguments) (string, error) {
	if n := int64(len(r.job(r.letters[a.First].job).Activations)); n < a.Number("least") || n > a.Number("most") {
		return fmt.Sprintf("handed out %d times\n", n), nil
	}
	return "", nil
}

// counted tells what jobs were counted as; with calls, how often the engine was asked to complete, hold or tell of
// one since that was told last, with records, what was recorded since.
func (r *reviews) counted(a *golden.Arguments) (string, error) {
	said := fmt.Sprintf("%v, %d in flight at most", r.actions(), r.highest)
	calls, records := 0, r.Memory.End().Record
	for _, m := range []gateway.Method{gateway.CompleteJob, gateway.UpdateJobTimeout, gateway.SetVariables} {
		calls += r.gateway.Calls(m)
	}
	if a.Words["calls"] {
		said += fmt.Sprintf(", %d calls", calls-r.calls)
	}
	if a.Words["records"] {
		said += fmt.Sprintf(", %d records", records-r.records)
	}
	r.calls, r.records = calls, records
	return said + "\n", nil
}

// logged tells the warnings and errors, once each.
func (r *reviews) logged(*golden.Arguments) (said string, _ error) {
	lines := map[string]int{}
	for _, line := range r.logs.TakeAll() {
		if line.Level >= zapcore.WarnLevel {
			lines[line.Message]++
		}
	}
	for _, message := range slices.Sorted(maps.Keys(lines)) {
		said += fmt.Sprintf("%d times: %s\n", lines[message], message)
	}
	return said, nil
}

// TestManyReviewJobs are taken in small numbers, however many wait: none stays in the worker. A stop while people
// decide on them lets arrive what is on its way, and that is recorded; the rest waits for the next.
func TestManyReviewJobs(t *testing.T) {
	const many, decided = 500, 200
	withReviews(t, func(r *reviews) {
		var names []string
		for i := range many {
			names = append(names, fmt.Sprint(i))
		}
		all := &golden.Arguments{First: strings.Join(names, ",")}
		_, _ = r.dies(all)
		_, _ = r.comes(all)
		p := r.begin("a")
		time.Sleep(time.Minute)
		unknown := func(name string) bool { return r.Item(r.letters[name].id).ReviewJobKey == 0 }
		if i := slices.IndexFunc(names, unknown); i >= 0 {
			t.Errorf("after a minute the process of dead letter %d is not known to wait", i)
		}
		for _, p := range r.gateway.Polls(worker.RetryReview) {
			if p.MaxJobsToActivate > 64 || !slices.Contains(p.FetchVariable, worker.DeadLetterVariable) ||
				!slices.Contains(p.FetchVariable, "claimId") {
				t.Errorf("asked with %v", p.ActivateJobsRequest)
			}
		}
		if given := r.gateway.Counts().HandedOut; given != many {
			t.Fatalf("%d jobs were handed out %d times", many, given)
		}
		r.Memory.Delay(20 * time.Millisecond)
		for _, name := range names[:decided] {
			c := deadletter.Command{Action: journal.BulkDiscard, ID: r.letters[name].id, Reason: "duplicada", By: "maria"}
			_, err := r.DeadLetters.Decide(r.t.Context(), c)
			testkit.Must(t, err)
		}
		p.stop()
		taken := 0
		for _, name := range names {
			if r.job(r.letters[name].job).State == gateway.Completed {
				taken++
			}
		}
		if left := len(r.Memory.Outbox()); taken+left != decided || taken == 0 {
			t.Errorf("%d were taken and %d wait, of %d", taken, left, decided)
		}
		r.Memory.Delay(0)
		r.begin("b")
		r.within(time.Minute, func() bool { return len(r.Memory.Outbox()) == 0 })
		r.wantActions(t, map[worker.Action]int{worker.Completed: decided})
	})
}
