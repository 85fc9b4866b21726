package gate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/outbox"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

const (
	portal = "unimed-sp"
	// mostIn10s is how many claims may go in 10 s at the default pace.
	mostIn10s = 10
)

// world is a portal, the processes that send claims to it, an engine that keeps their jobs, and replicas over one
// store.
type world struct {
	t      *testing.T
	memory *testkit.Memory
	// fails returns the error of a submission, empty for none; the lock is held.
	fails func(w *world) string
	// probe answers for the portal's status URL; nil: it fails. version is the settings'.
	probe   func() bool
	version atomic.Int64
	// recorded is called with each happening before the gates are.
	recorded func(records []journal.Happening)
	// never is a job whose answer the engine never takes; 0 for none.
	never int64
	// listing is how long the store takes to list held claims.
	listing time.Duration
	began   time.Time

	mu       sync.Mutex
	settings destination.Settings
	replicas []*replica
	key      int64
	waits    map[int64]chan answer
	sent     []sending
	failed   map[string]int
	ended    map[string]string // the end of each claim
	draw     *rand.Rand
}

// sending is a submission.
type sending struct {
	claim  string
	at     time.Duration
	canary bool // the gate was down
	ok     bool
}

// answer is what a waiting process gets.
type answer struct {
	thrown    bool
	variables string
}

// replica is a worker.
type replica struct {
	*world
	gates    *gate.Gates
	handlers *worker.Handlers
	// admitted is how many claims went at once.
	admitted int
	kill     context.CancelFunc
	ctx      context.Context
	running  sync.WaitGroup
}

// slowlyHeld is a Memory that takes a while to list held claims.
type slowlyHeld struct {
	*testkit.Memory
	listing time.Duration
}

func (s slowlyHeld) Held(ctx context.Context, take func(*journal.KeyedState)) (journal.Head, error) {
	time.Sleep(s.listing)
	return s.Memory.Held(ctx, take)
}

func newWorld(t *testing.T, fails func(w *world) string) *world {
	return &world{t: t, memory: testkit.NewMemory(), fails: fails, recorded: func([]journal.Happening) {}, listing: 50 * time.Millisecond, began: time.Now(), settings: destination.Defaults(), waits: map[int64]chan answer{},
		failed: map[string]int{}, ended: map[string]string{}, draw: rand.New(rand.NewPCG(1, 2))}
}

func (w *world) now() time.Duration { return time.Since(w.began) }

// start starts a replica.
func (w *world) start() *replica {
	r := &replica{world: w}
	r.ctx, r.kill = context.WithCancel(context.Background())
	hooks := journal.NoHooks()
	hooks.Committed = func(records []journal.Happening, _ time.Duration) { w.recorded(records); r.gates.Recorded(records) }
	memory := journal.New(w.memory, time.Now, nil, hooks)
	r.gates = gate.New(gate.Options{Store: slowlyHeld{w.memory, w.listing}, Memory: memory, Engine: r, Clock: clock.Machine{}, Zone: time.UTC, Hooks: worker.NoHooks(),
		Log: zap.NewNop(), Probe: func(context.Context, string, []int) bool { return w.probe != nil && w.probe() },
		Settings: func() gate.Settings {
			return gate.Settings{Version: fmt.Sprint(w.version.Load()), Destinations: destination.Configured{
				Named: map[string]destination.Settings{portal: w.settings}, Others: destination.Defaults()}}
		}})
	tiss := *catalogue.Default().Policies[decision.DefaultPolicy]
	tiss.Destinations.Named = map[string]destination.Settings{portal: {Calendar: w.settings.Calendar, Pace: destination.Defaults().Pace}}
	policies := func() decision.Policies { return decision.Policies{decision.DefaultPolicy: &tiss} }
	r.handlers = worker.NewHandlers(worker.Options{Policies: policies, Memory: memory, Now: time.Now, Hooks: worker.NoHooks(), Log: zap.NewNop(),
		Engine: r, Admit: r.admit})
	r.running.Go(func() { memory.Run(r.ctx, r.ctx) })
	r.running.Go(func() { r.gates.Run(r.ctx) })
	holder := fmt.Sprint(time.Now().UnixNano(), len(w.replicas))
	r.running.Go(func() { outbox.Lead(r.ctx, r.ctx, w.memory, gate.Lease, holder, r.gates.Lead) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replicas = append(w.replicas, r)
	return r
}

func (r *replica) admit(name string, job int64, deadline time.Time) bool {
	admits := r.gates.Admit(name, job, deadline)
	if admits {
		r.admitted++
	}
	return admits
}

// stop kills all replicas.
func (w *world) stop() {
	for _, r := range w.replicas {
		r.kill()
		r.running.Wait()
	}
}

// replace kills a replica and starts another.
func (w *world) replace(n int) {
	old := w.replicas[n]
	old.kill()
	old.running.Wait()
	w.start()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replicas[n] = w.replicas[len(w.replicas)-1]
	w.replicas = w.replicas[:len(w.replicas)-1]
}

// job has a replica handle a job, and another one if that was killed.
func (w *world) job(jobType, claim string, key int64, variables map[string]any) worker.Reply {
	variables["claimId"], variables["operadora"] = claim, portal
	text, _ := json.Marshal(variables)
	for {
		w.mu.Lock()
		r := w.replicas[w.draw.IntN(len(w.replicas))]
		w.mu.Unlock()
		j := &worker.Job{Key: key, ElementInstanceKey: key + 1, ProcessInstanceKey: key + 2, Type: jobType, Variables: string(text), Retries: 3}
		if reply := r.handlers.Begin(jobType).Handler(r.ctx, j); r.ctx.Err() == nil && reply.Action != worker.Released {
			return reply
		}
		time.Sleep(30 * time.Second)
	}
}

// process sends a claim as a model with a gate does.
func (w *world) process(claim string, deadline time.Time) {
	for {
		a := w.gate(claim, deadline)
		var told struct{ GateCanary bool }
		_ = json.Unmarshal([]byte(a.variables), &told)
		if a.thrown {
			w.end(claim, a.variables)
			return
		}
		w.mu.Lock()
		problem := w.fails(w)
		w.sent = append(w.sent, sending{claim, w.now(), told.GateCanary, problem == ""})
		w.mu.Unlock()
		time.Sleep(time.Second)
		if problem == "" {
			if told.GateCanary {
				w.job(worker.RecordRetryOutcome, claim, w.newKey(nil), map[string]any{})
			}
			w.end(claim, "sent")
			return
		}
		reply := w.job(worker.AnalyzeRetry, claim, w.newKey(nil), with(map[string]any{"submissionError": problem}, deadline))
		w.mu.Lock()
		w.failed[claim]++
		w.mu.Unlock()
		if reply.Action == worker.Thrown {
			w.end(claim, "given up: "+reply.Error.Message)
			return
		}
		var next struct{ NextRetryTime time.Time }
		_ = json.Unmarshal([]byte(reply.Variables), &next)
		time.Sleep(time.Until(next.NextRetryTime))
	}
}

// gate waits until the claim may go or is given up.
func (w *world) gate(claim string, deadline time.Time) answer {
	variables := with(map[string]any{}, deadline)
	waits := make(chan answer, 1)
	key := w.newKey(waits)
	if reply := w.job(worker.SubmissionGate, claim, key, variables); reply.Action == worker.Completed {
		return answer{variables: reply.Variables}
	}
	return <-waits
}

func with(variables map[string]any, deadline time.Time) map[string]any {
	if !deadline.IsZero() {
		variables["submissionDeadline"] = deadline
	}
	return variables
}

// order gives a person's order about the portal, and waits for a minute.
func (w *world) order(c destination.Order) {
	c.Reason, c.By = "manutenção", "ana"
	testkit.Must(w.t, w.replicas[0].gates.Command(w.t.Context(), portal, c))
	time.Sleep(time.Minute)
}

func (w *world) newKey(waits chan answer) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.key += 10
	w.waits[w.key] = waits
	return w.key
}

func (w *world) end(claim, how string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended[claim] = how
}

// all returns how many claims have ended.
func (w *world) all() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ended)
}

// The engine: a job is answered once. The answer of a killed replica may arrive or not.

func (r *replica) Complete(ctx context.Context, j *worker.Job, variables string) error {
	return r.answer(ctx, j.Key, answer{variables: variables})
}

func (r *replica) Throw(ctx context.Context, j *worker.Job, e worker.BPMNError) error {
	return r.answer(ctx, j.Key, answer{true, e.Variables})
}

func (*replica) Ended(context.Context, int64) bool         { return false }
func (*replica) Runs(context.Context, int64) (bool, error) { return true, nil }

func (r *replica) answer(ctx context.Context, key int64, a answer) error {
	time.Sleep(5 * time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	if key == r.never {
		return &worker.EngineError{Kind: worker.Ambiguous, Err: context.DeadlineExceeded}
	}
	if r.waits[key] == nil {
		return &worker.EngineError{Kind: worker.Gone, Err: context.Canceled}
	}
	if ctx.Err() == nil || r.draw.IntN(2) == 0 {
		r.waits[key] <- a
		r.waits[key] = nil
	}
	if ctx.Err() != nil {
		return &worker.EngineError{Kind: worker.Ambiguous, Err: ctx.Err()}
	}
	return nil
}

func (*replica) Activate(context.Context, worker.ActivateRequest) ([]worker.Job, error) {
	return nil, nil
}
func (*replica) Fail(context.Context, *worker.Job, worker.Failure) error { return nil }
func (*replica) Hold(context.Context, *worker.Job, time.Duration) error  { return nil }

// arrive lets claims arrive one after another. Every third has a nearer deadline than the one before.
func (w *world) arrive(n int, apart time.Duration) {
	for i := range n {
		claim, deadline := fmt.Sprintf("CLM-%d-1", i), time.Time{}
		if i%3 == 0 {
			deadline = w.began.Add(24*time.Hour - time.Duration(i)*time.Minute)
		}
		go w.process(claim, deadline)
		time.Sleep(apart)
	}
}

// check checks that n claims have ended, at most mostGiven of them given up, and that claims and canaries kept their
// pace.
func (w *world) check(n, mostGiven int) {
	w.t.Helper()
	if len(w.ended) != n {
		w.t.Errorf("%d of %d claims have ended", len(w.ended), n)
	}
	given := 0
	for claim, how := range w.ended {
		if how == "sent" {
			continue
		}
		if given++; given > mostGiven {
			w.t.Errorf("%s: %s", claim, how)
		}
	}
	slices.SortFunc(w.sent, func(a, b sending) int { return int(a.at - b.at) })
	lastCanary := -time.Hour
	for i, s := range w.sent {
		in := 0
		for _, later := range w.sent[i:] {
			if later.at-s.at < 10*time.Second {
				in++
			}
		}
		if in > mostIn10s*11/10 {
			w.t.Errorf("%d are sent within 10 s of %s, at most %d may be", in, s.at, mostIn10s*11/10)
		}
		if s.canary && !s.ok {
			if s.at-lastCanary < time.Minute-time.Second {
				w.t.Errorf("a canary goes at %s and one at %s", lastCanary, s.at)
			}
			lastCanary = s.at
		}
	}
}

// wasted returns how many submissions failed.
func (w *world) wasted() (n int) {
	for _, f := range w.failed {
		n += f
	}
	return n
}

// down lets submissions time out in a period.
func down(from, until time.Duration) func(w *world) string {
	return func(w *world) string {
		if at := w.now(); at < from || at > until {
			return ""
		}
		return "Read timed out after 30000 ms"
	}
}

// nothing lets every submission succeed.
func nothing(*world) string { return "" }

// inBubble runs a test in a bubble, and stops the replicas at the end.
func inBubble(t *testing.T, fails func(w *world) string, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, fails)
		defer w.stop()
		test(w)
	})
}

// waiting returns a gate's job and what its process is answered; hold makes its claim wait.
func (w *world) waiting() (key int64, told chan answer) {
	told = make(chan answer, 1)
	return w.newKey(told), told
}

// portal returns the portal for records, while no replica is there.
func (w *world) portal() *testkit.Portal {
	return testkit.NewPortal(portal, testkit.StartJournal(w.t, w.memory, time.Now), time.Now())
}
