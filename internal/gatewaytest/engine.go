package gatewaytest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// What a real engine does unless told otherwise.
const (
	// DefaultRequestTimeout is how long a poll waits that names no time.
	DefaultRequestTimeout = 10 * time.Second
	// DefaultMaxBatch bounds the jobs of one activation, in bytes; the first
	// job of a batch is handed out whatever its size.
	DefaultMaxBatch = 4 << 20
	// messageLimit is where the broker cuts error messages, in bytes.
	messageLimit = 10_000
	// firstKey is the first key of partition 1.
	firstKey int64 = 1<<51 + 1
)

// EngineOptions say how an engine behaves. The zero value is one broker without
// multi-tenancy where every BPMN error is caught and commands take no time.
type EngineOptions struct {
	// MultiTenancy demands tenant ids on every poll and accepts any; without it
	// an id other than [DefaultTenant] is INVALID_ARGUMENT.
	MultiTenancy bool
	// Tenants are those the caller may use where multi-tenancy is on; others
	// are PERMISSION_DENIED. Nil allows all.
	Tenants []string
	// UncaughtErrors are the codes no boundary event catches: an incident.
	UncaughtErrors []string
	// MapErrorVariables makes boundary events map what ThrowError brings into
	// the process; without it those variables are lost, as in the real engine.
	MapErrorVariables bool
	// MaxInFlight is how many commands may be under way before the next, and a
	// poll meanwhile, is answered RESOURCE_EXHAUSTED; 0 is no limit. The real
	// broker stands at about 200. Without CommandLatency it is hardly reached.
	MaxInFlight int
	// CommandLatency passes between a command's effect and its answer.
	CommandLatency time.Duration
	// ClockOffset is how far the engine's clock is ahead of this machine's.
	ClockOffset time.Duration
	// MaxBatch bounds one activation in bytes; 0 is [DefaultMaxBatch].
	MaxBatch int
	// Version is what Topology reports as the gateway's; "8.5.8" if empty.
	Version string
	// Jobs gives the jobs that a new process instance starts with; nil: none.
	// It is called outside the engine's lock.
	Jobs func(Instance) []Job
}

// Engine is a small, faithful engine for jobs. All methods may be called at
// any time from any goroutine. Times are the engine's clock: this machine's
// plus a movable offset.
type Engine struct {
	options EngineOptions
	faults  faults
	calls   callCounts
	source  *endlessSource // set before the first poll, never changed

	authorize  atomic.Pointer[func(context.Context) error]
	limit      atomic.Int64 // EngineOptions.MaxInFlight
	latency    atomic.Int64 // EngineOptions.CommandLatency
	commands   atomic.Int64 // under way
	kept       atomic.Bool  // a job with a history was ever added
	dismissing atomic.Bool  // polls do not wait
	watching   atomic.Int64 // number of watchers, to be read without the lock

	mu          sync.Mutex
	offset      time.Duration
	nextKey     int64
	jobs        map[int64]*job
	queues      map[string]*queue
	due         jobHeap
	elements    map[int64]int64 // element instance → job, where the test chose the key
	instances   map[int64]*instance
	incidents   map[int64]*job
	processes   map[string][]Process
	counts      Counts
	held        holder
	holders     map[string]*holder
	cut         map[string]struct{} // callers whose connection the gateway cut
	workers     map[string]string   // caller → the name it last polled by
	polls       []*Poll
	watchers    map[chan struct{}]struct{}
	goal        int           // of WaitAnswers
	goalReached chan struct{} // nil without a goal
	waiting     int           // polls that wait for a job
	alarm       *time.Timer
	alarmAt     time.Time // zero if the alarm is not set
}

// NewEngine makes an engine without jobs. [Engine.Close] frees its timer.
func NewEngine(o EngineOptions) *Engine {
	if o.MaxBatch == 0 {
		o.MaxBatch = DefaultMaxBatch
	}
	setIfEmpty(&o.Version, "8.5.8")
	e := &Engine{options: o, offset: o.ClockOffset, watchers: map[chan struct{}]struct{}{}}
	e.limit.Store(int64(o.MaxInFlight))
	e.latency.Store(int64(o.CommandLatency))
	e.reset()
	return e
}

func (e *Engine) reset() {
	e.nextKey = firstKey
	e.jobs = map[int64]*job{}
	e.queues = map[string]*queue{}
	e.due = jobHeap{before: byDue}
	e.elements = map[int64]int64{}
	e.instances = map[int64]*instance{}
	e.incidents = map[int64]*job{}
	e.processes = map[string][]Process{}
	e.counts = Counts{Polls: e.counts.Polls}
	e.held = holder{}
	e.holders = map[string]*holder{}
	e.workers = map[string]string{}
	e.cut = map[string]struct{}{}
}

// Close stops the engine's timer. Polls that still wait are not ended: that is
// for their contexts.
func (e *Engine) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.disarm()
}

// AddJob puts a job in and returns its key. It panics on a job without a type
// and on variables or headers that are no JSON objects.
func (e *Engine) AddJob(j Job) int64 { return e.AddJobs(j)[0] }

// AddJobs puts jobs in at one instant and returns their keys in order.
func (e *Engine) AddJobs(jobs ...Job) []int64 {
	for i := range jobs {
		jobs[i].setDefaults()
		mustBeObject("a job's variables", jobs[i].Variables)
		mustBeObject("a job's custom headers", jobs[i].CustomHeaders)
		if jobs[i].Type == "" {
			panic("gatewaytest: a job needs a type")
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept.Store(true)
	keys := make([]int64, len(jobs))
	for i := range jobs {
		keys[i] = e.add(jobs[i])
	}
	e.changed()
	return keys
}

func (e *Engine) add(values Job) int64 {
	now := e.now()
	j := &job{Job: values, index: -1, state: Activatable, history: newHistory(now)}
	e.drawKeys(&j.Job)
	e.join(j)
	e.jobs[j.Key] = j
	e.counts.Jobs++
	e.enterState(j, Activatable)
	return j.Key
}

// drawKeys gives a job three keys in a row, so that an element's job is found
// by arithmetic; keys that the test chose are remembered instead.
func (e *Engine) drawKeys(j *Job) {
	instance := e.nextKey
	element := instance + 1
	j.Key = instance + 2
	e.nextKey += 3
	if j.ProcessInstanceKey == 0 {
		j.ProcessInstanceKey = instance
	}
	if j.ElementInstanceKey == 0 {
		j.ElementInstanceKey = element
	} else {
		e.elements[j.ElementInstanceKey] = j.Key
	}
}

// jobOf finds the job of an element instance; nil if there is none.
func (e *Engine) jobOf(element int64) *job {
	if key, chosen := e.elements[element]; chosen {
		return e.jobs[key]
	}
	if j := e.jobs[element+1]; j != nil && j.ElementInstanceKey == element {
		return j
	}
	return nil
}

// Wipe forgets all jobs, instances and deployments, as a broker whose disk was
// emptied: keys start over. The journal of polls and calls stays.
func (e *Engine) Wipe() {
	e.mu.Lock()
	defer e.mu.Unlock()
	waiting := e.queues
	e.reset()
	for name, q := range waiting {
		e.queue(name).waiters = q.waiters
	}
	e.changed()
}

// Now is the engine's clock.
func (e *Engine) Now() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.now()
}

func (e *Engine) now() time.Time { return time.Now().Add(e.offset) }

// Advance moves the engine's clock by d, backwards if negative, and does at
// once what has become due. Activations that run keep their deadlines.
func (e *Engine) Advance(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.offset += d
	e.disarm()
	e.expire(e.now())
	e.changed()
}

// SetMaxInFlight changes [EngineOptions].MaxInFlight while running.
func (e *Engine) SetMaxInFlight(n int) { e.limit.Store(int64(n)) }

// SetCommandLatency changes [EngineOptions].CommandLatency while running.
func (e *Engine) SetCommandLatency(d time.Duration) { e.latency.Store(int64(d)) }

// SetAuthorize puts a check before every call: its error is the answer, with
// the status code it carries, or UNAUTHENTICATED. Nil takes the check away.
func (e *Engine) SetAuthorize(check func(context.Context) error) {
	if check == nil {
		e.authorize.Store(nil)
		return
	}
	e.authorize.Store(&check)
}

// move changes a job's state and keeps heaps and counts in step.
func (e *Engine) move(j *job, to State) {
	e.leave(j)
	e.counts.in[j.state]--
	e.enterState(j, to)
}

func (e *Engine) enterState(j *job, to State) {
	j.state = to
	e.counts.in[to]++
	switch to {
	case Activatable:
		e.offer(j)
	case Activated:
		j.holder.add(1)
		e.held.add(1)
		e.due.push(j)
	case BackingOff:
		e.due.push(j)
	case Completed, ErrorThrown, Cancelled:
		e.forget(j)
	}
}

// leave takes a job out of what its present state put it in.
func (e *Engine) leave(j *job) {
	switch j.state {
	case Activatable:
		e.withdraw(j)
	case Activated:
		j.holder.add(-1)
		e.held.add(-1)
		e.due.remove(j)
	case BackingOff:
		e.due.remove(j)
	}
}

// forget drops the record of a finished endless job; others are the journal.
func (e *Engine) forget(j *job) {
	if j.history == nil {
		delete(e.jobs, j.Key)
	}
}

// String is the engine's state in one line, for messages of failed tests.
func (e *Engine) String() string {
	c := e.Counts()
	return fmt.Sprintf("%d jobs (%s), %d held at most", c.Jobs, c, c.MaxHeld)
}
