package worker

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"retry-worker/internal/clock"
)

// Config bounds what one Worker takes and how long it holds it. Await, TenantIDs and Tracer may be left out.
type Config struct {
	// Name identifies this process to the engine.
	Name string
	// JobTimeout is when the engine offers an unanswered job again (RN-BIL-005 §11.2: 10 s).
	JobTimeout time.Duration
	// PollTimeout of one activation. It is short, because a stop waits for the running poll: a cancelled poll could
	// lock a job until its time-out.
	PollTimeout time.Duration
	// MaxJobsActive held per job type, activated and not yet answered (RN-BIL-005 §11.2: 50).
	MaxJobsActive int
	// Concurrency is how many jobs are handled at once, all types together (R22).
	Concurrency int
	// Await returns true once jobs can be handled, or false if ctx ends before. No job is activated meanwhile. Nil
	// means that they always can.
	Await func(ctx context.Context) bool
	// TenantIDs to take jobs from; none means the engine's default tenant.
	TenantIDs []string
	// Tracer makes a span for each job; nil means no traces.
	Tracer trace.Tracer
}

// Handler turns one job into a reply, before the job's Deadline. Its context ends when the worker is killed. A panic
// costs the job one retry.
type Handler func(ctx context.Context, j *Job) Reply

// Subscription is a job type and its handler.
type Subscription struct {
	JobType string
	// Begin is called before each poll, by one goroutine. Its result holds for the jobs of that poll, whatever changes
	// before they are handled.
	Begin func() Activation
}

// Activation says what one poll fetches and who handles its jobs.
type Activation struct {
	// Variables that Handler reads; at least one.
	Variables []string
	Handler   Handler
}

// Always returns a Begin that asks for the same at every poll.
func Always(h Handler, variables ...string) func() Activation {
	return func() Activation { return Activation{Variables: variables, Handler: h} }
}

// Worker runs one activation loop per subscription.
type Worker struct {
	engine Engine
	cfg    Config
	hooks  Hooks
	log    *zap.Logger
	loops  []*loop
	queue  chan func() // handles one job each

	mu     sync.Mutex
	served map[*loop]bool // whether each loop's last poll was answered
}

// New prepares a Worker; Run starts it.
func New(engine Engine, cfg Config, subs []Subscription, hooks Hooks, log *zap.Logger) *Worker {
	w := &Worker{engine: engine, cfg: cfg, hooks: hooks, log: log, served: map[*loop]bool{},
		queue: make(chan func(), len(subs)*cfg.MaxJobsActive)} // room for all loops, so sending never blocks
	for _, s := range subs {
		w.loops = append(w.loops, &loop{w: w, begin: s.Begin, ask: cfg.MaxJobsActive, freed: clock.NewSignal(),
			request: ActivateRequest{JobType: s.JobType, Worker: cfg.Name, TenantIDs: cfg.TenantIDs,
				JobTimeout: cfg.JobTimeout, PollTimeout: min(cfg.PollTimeout, cfg.JobTimeout/2)}})
	}
	return w
}

// Run takes and answers jobs until stop ends. Then it activates no more, finishes the jobs that have begun and hands
// back the others. If kill ends, it returns without waiting. Call it once.
func (w *Worker) Run(stop, kill context.Context) {
	stop, stopNow := context.WithCancel(stop)
	defer stopNow()
	defer context.AfterFunc(kill, stopNow)()
	var polling, handling sync.WaitGroup
	for _, l := range w.loops {
		polling.Go(func() { l.run(stop, kill) })
	}
	handle := func() {
		for range w.cfg.Concurrency {
			handling.Go(func() {
				for one := range w.queue {
					one()
				}
			})
		}
	}
	handle()
	handling.Go(func() {
		<-stop.Done()
		handle() // hand back queued jobs while the other goroutines finish theirs
	})
	polling.Wait()
	close(w.queue)
	handling.Wait()
}

// serve handles and answers j, or hands it back if the worker stops.
func (w *Worker) serve(stop, kill context.Context, j *Job, h Handler) {
	var action Action
	if stop.Err() == nil {
		action = w.Handle(kill, j, h)
	} else {
		action = w.deliver(kill, j, release(j, "handed back: worker "+w.cfg.Name+" stops"))
	}
	if action != held {
		w.hooks.Add(Answered, 1, j.Type, string(action))
	}
}

// Handle handles and answers one job, and returns what became of it. A job whose time ran out in the queue is left to
// the worker that gets it next. It is safe for concurrent use.
func (w *Worker) Handle(kill context.Context, j *Job, h Handler) Action {
	if !time.Now().Before(j.Deadline) {
		return w.late(j, Released)
	}
	if w.cfg.Tracer != nil {
		return w.traced(kill, j, h)
	}
	return w.deliver(kill, j, w.reply(kill, j, h))
}

// reply runs the handler and turns a panic into a reply.
func (w *Worker) reply(kill context.Context, j *Job, h Handler) (r Reply) {
	defer func() {
		if p := recover(); p != nil {
			w.hooks.Add("retry_worker_panics_total", 1, j.Type)
			w.log.Error("handler panicked, job loses one retry",
				zap.String("jobType", j.Type), zap.Int64("jobKey", j.Key),
				zap.String("panic", fmt.Sprintf("%T", p)), // the text may hold the job's data
				zap.ByteString("stack", debug.Stack()))
			r = penalty(j, "the worker failed on this job, which cost it a retry; the worker's log says where, by the "+
				"job's key")
		}
	}()
	return h(kill, j)
}
