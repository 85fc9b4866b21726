package testkit

import (
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
)

// Store is what a journal and the services over it need.
type Store interface {
	journal.Store
	journal.Reader
	deadletter.Reader
	deadletter.BulkStore
	journal.Outbox
	journal.PurgeStore
}

// firstKey is the engine's first key. A consumer that keeps keys as floating-point numbers cannot hold it.
const firstKey = 1<<53 + 1

// Fixture is a journal with the services that people use over it. Its methods make things happen there, fail the test
// on an error, and are safe for concurrent use.
type Fixture struct {
	*Clock
	// Memory is the store; nil where the test brought its own (Over).
	Memory      *Memory
	Store       Store
	Journal     *journal.Journal
	DeadLetters *deadletter.Service
	// Learner knows nothing until the test calls Refresh.
	Learner *statistics.Learner
	Tokens  *Tokens
	// Calendar is that of all destinations; nil is always open.
	Calendar *calendar.Calendar
	// Due is the deadline of every failure; zero is none.
	Due time.Time

	t        testing.TB
	policies atomic.Pointer[decision.Policies]
	engineUp atomic.Pointer[time.Time]
	gates    atomic.Pointer[gate.Gates]
	mu       sync.Mutex
	key      int64
	process  map[journal.Subject]int64
}

// Option changes a Fixture before it begins.
type Option func(*Fixture)

// Over keeps the journal in s.
func Over(s Store) Option { return func(f *Fixture) { f.Store, f.Memory = s, nil } }

// At stops the clock at that instant until the test moves it; otherwise it is this machine's.
func At(instant time.Time) Option { return func(f *Fixture) { f.Clock = &Clock{stands: instant} } }

// By sets the policies in force, instead of the shipped ones.
func By(p decision.Policies) Option { return func(f *Fixture) { f.SetPolicies(p) } }

// New returns a Fixture that ends with the test. Its engine has answered for an hour.
func New(t testing.TB, options ...Option) *Fixture {
	t.Helper()
	m := NewMemory()
	f := &Fixture{Clock: &Clock{}, Memory: m, Store: m, Tokens: NewTokens(t), t: t, key: firstKey,
		process: map[journal.Subject]int64{}}
	f.SetPolicies(catalogue.Default().Policies)
	for _, change := range options {
		change(f)
	}
	f.SetEngineUp(f.Now().Add(-time.Hour))
	hooks := journal.NoHooks()
	hooks.Committed = f.recorded
	f.Journal = journal.New(f.Store, f.Now, nil, hooks)
	f.Learner = statistics.NewLearner(f.Store)
	f.Journal.Learner = f.Learner
	RunJournal(t, f.Journal)
	f.DeadLetters = deadletter.New(f.Store, f.Journal, f.Policies, f.Now, f.EngineUp)
	return f
}

// Policies returns the policies in force.
func (f *Fixture) Policies() decision.Policies { return *f.policies.Load() }

// SetPolicies puts other policies in force.
func (f *Fixture) SetPolicies(p decision.Policies) { f.policies.Store(&p) }

// EngineUp returns since when the engine has answered; the zero time if it does not.
func (f *Fixture) EngineUp() time.Time { return *f.engineUp.Load() }

// SetEngineUp sets since when the engine has answered; the zero time if it does not.
func (f *Fixture) SetEngineUp(since time.Time) { f.engineUp.Store(&since) }

// Subject returns the subject of a policy with that id.
func Subject(policy, id string) journal.Subject {
	return journal.Subject{Tenant: journal.DefaultTenant, Policy: policy, ID: id}
}

// InProcess sets the process instance of a subject that has not failed yet.
func (f *Fixture) InProcess(s journal.Subject, instance int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.process[s] = instance
}

// keys returns a new key, and that of the process instance of s.
func (f *Fixture) keys(s journal.Subject) (key, process int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.key++
	if f.process[s] == 0 {
		f.process[s] = f.key + 1_000_000
	}
	return f.key, f.process[s]
}

// Analysis returns the analysis of a subject's failure after so many retries; below 0, the process does not say how
// many.
func (f *Fixture) Analysis(policy, id, text string, retries int) *journal.Analysis {
	f.t.Helper()
	p := f.Policies()[policy]
	v := decision.Variables{ID: decision.Text(id), Error: decision.Text(text)}
	if retries >= 0 {
		v.RetryCount = decision.Value(strconv.Itoa(retries))
	}
	if p.Own != nil {
		v.MaxAttempts, v.Delay = "3", decision.Text("PT42S")
	}
	if !f.Due.IsZero() {
		v.Deadline = decision.Text(decision.Instant(f.Due))
	}
	failure, rejection := p.Read(v)
	if rejection != nil {
		f.t.Fatal(rejection)
	}
	s := Subject(policy, id)
	key, process := f.keys(s)
	a := &journal.Analysis{Subject: s, JobKey: key, ElementInstanceKey: key, ProcessInstanceKey: process, Rule: decision.RNBIL005,
		Policy: p, Failure: &failure, Error: failure.Error, ReceivedAt: f.Now()}
	return a
}

// Fail records a subject's failure, whose answer the engine takes.
func (f *Fixture) Fail(policy, id, text string, retries int) *journal.Attempt {
	f.t.Helper()
	r, err := f.Journal.Analyze(f.t.Context(), f.Analysis(policy, id, text, retries))
	Must(f.t, err)
	f.Journal.Answered(&r)
	return r.Attempt
}

// Die records a subject's last failure and returns its dead letter, for which no process waits.
func (f *Fixture) Die(policy, id, text string, retries int) (deadLetter string) {
	f.t.Helper()
	a := f.Fail(policy, id, text, retries)
	if a == nil || a.DeadLetter == "" {
		f.t.Fatalf("%s of %s is no dead letter: %+v", id, policy, a)
	}
	return a.DeadLetter
}

// DieWaiting is Die for a process that reaches its review task.
func (f *Fixture) DieWaiting(policy, id, text string, retries int) (deadLetter string) {
	f.t.Helper()
	deadLetter = f.Die(policy, id, text, retries)
	f.Await(deadLetter)
	return deadLetter
}

// Await has the process of a dead letter reach its review task.
func (f *Fixture) Await(deadLetter string) {
	f.t.Helper()
	item := f.Item(deadLetter)
	key, _ := f.keys(item.Subject)
	_, err := f.Journal.ReviewSeen(f.t.Context(), &journal.ReviewJob{Subject: item.Subject, DeadLetter: deadLetter, JobKey: key, Accepts: true})
	Must(f.t, err)
}

// Item returns a dead letter.
func (f *Fixture) Item(deadLetter string) deadletter.Item {
	f.t.Helper()
	item, err := f.DeadLetters.Show(f.t.Context(), deadLetter)
	if err != nil {
		f.t.Fatalf("dead letter %s: %v", deadLetter, err)
	}
	return item
}

// Succeed records a subject's success.
func (f *Fixture) Succeed(policy, id string) {
	f.t.Helper()
	_, err := f.Journal.Conclude(f.t.Context(), &journal.Outcome{Subject: Subject(policy, id), Success: true, At: f.Now()})
	Must(f.t, err)
}

// Answers returns the answers that wait for delivery to processes.
func (f *Fixture) Answers() (all []*journal.Answer) {
	f.t.Helper()
	messages, err := f.Store.Pending(f.t.Context(), journal.ReviewQueue, 0, 100_000)
	Must(f.t, err)
	for i := range messages {
		a, err := journal.ReadAnswer(&messages[i])
		Must(f.t, err)
		all = append(all, a)
	}
	return all
}

// Deliver records that processes took those answers, or that none waits for them.
func (f *Fixture) Deliver(taken bool) {
	f.t.Helper()
	for _, a := range f.Answers() {
		Must(f.t, f.Journal.Delivered(f.t.Context(), a, taken))
	}
}

// StartBulk plans a bulk run and starts it.
func (f *Fixture) StartBulk(c journal.BulkCommand) (run string) {
	f.t.Helper()
	p, err := f.DeadLetters.Plan(f.t.Context(), c)
	Must(f.t, err)
	r, _, err := f.DeadLetters.Start(f.t.Context(), c, p.Token)
	Must(f.t, err)
	return r.ID
}

// DecideBulk decides the next n planned dead letters of a bulk run, as a Runner does, and returns them.
func (f *Fixture) DecideBulk(run string, n int) []journal.BulkItem {
	f.t.Helper()
	r, err := f.DeadLetters.Run(f.t.Context(), run)
	Must(f.t, err)
	items, err := f.Store.BulkItems(f.t.Context(), run, journal.BulkPlanned, 0, n)
	Must(f.t, err)
	for _, i := range items {
		_, err := f.DeadLetters.Decide(f.t.Context(), deadletter.Command{ID: i.DeadLetter, Action: r.Action, Reason: r.Reason, By: r.By, Run: run, RetryOptions: journal.RetryOptions{Force: r.Force, Fresh: r.Fresh, When: r.When}})
		if refusal := journal.RefusalOf(err); refusal != nil {
			err = f.Journal.RefuseBulkItem(f.t.Context(), run, i.Number, string(refusal.Code))
		}
		Must(f.t, err)
	}
	return items
}

// FinishBulk ends a bulk run that has nothing left to decide.
func (f *Fixture) FinishBulk(run string) {
	f.t.Helper()
	_, err := f.Journal.Bulk(f.t.Context(), &journal.BulkStep{Verb: journal.BulkFinish, Run: journal.BulkRun{ID: run}})
	Must(f.t, err)
}

// Bubble runs a test of a Fixture in fake time (testing/synctest).
func Bubble(t *testing.T, test func(t *testing.T, f *Fixture), options ...Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, New(t, options...)) })
}

// File writes a file that only this user may read, in a folder of its own, and returns its path.
func File(t testing.TB, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	Must(t, os.WriteFile(path, content, 0o600))
	return path
}

// Read returns a file's content.
func Read(t testing.TB, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	Must(t, err)
	return string(content)
}

// Must ends the test on an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
