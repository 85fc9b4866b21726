package worker

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
)

// Config bounds what one Worker takes and how long it holds it. Every field but Await, TenantIDs and Tracer must be
// set.
type Config struct {
	// Name under which the engine knows this process.
	Name string
	// JobTimeout after which the engine offers an unanswered job again (RN-BIL-005 §11.2: 10 s).
	JobTimeout time.Duration
	// PollTimeout of one activation. Short, because a stop lets the running one end: cancelling a
	// poll near a job's birth would lock that job until its time-out.
	PollTimeout time.Duration
	// MaxJobsActive held per job type, activated and not yet answered (RN-BIL-005 §11.2: 50).
	MaxJobsActive int
	// Concurrency is how many jobs are handled at once, all types together (R22).
	Concurrency int
	// Await returns once jobs can be handled, or false when ctx ends before: nothing is activated meanwhile.
	// Nil: they always can.
	Await func(ctx context.Context) bool
	// TenantIDs to take jobs from; none means the engine's default.
	TenantIDs []string
	// Tracer of each job's span; nil: nothing is traced.
	Tracer trace.Tracer
}

// Handler turns one job into the reply to send, before the job's Deadline. Its context ends when the
// worker is ended hard. A panic costs the job one retry.
type Handler func(ctx context.Context, j *Job) Reply

// Subscription is one job type and who handles it.
type Subscription struct {
	JobType string
	// Begin is asked before each poll, by one goroutine. What it answers holds for the jobs that the poll brings,
	// whatever changes before they are handled.
	Begin func() Activation
}

// Activation is what one poll asks for and who handles what it brings.
type Activation struct {
	// Variables that Handler reads; at least one.
	Variables []string
	Handler   Handler
}

// Always returns a Begin for a handler that nothing changes while it runs: every poll asks for the same.
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
	queue  chan *activeJob
}

// activeJob is a job between its activation and its answer.
type activeJob struct {
	Job
	loop    *loop
	handler Handler // of the activation that brought it
}

// New prepares a Worker; Run starts it.
func New(engine Engine, cfg Config, subs []Subscription, hooks Hooks, log *zap.Logger) *Worker {
	w := &Worker{
		engine: engine, cfg: cfg, hooks: hooks, log: log,
		queue: make(chan *activeJob, len(subs)*cfg.MaxJobsActive), // what all loops may hold: sending never blocks
	}
	health := &engineHealth{hooks: &w.hooks, log: log, served: map[*loop]bool{}}
	for _, s := range subs {
		w.loops = append(w.loops, newLoop(w, s, health))
	}
	return w
}

// Run takes and answers jobs until stop ends; then it activates no more, finishes what has begun and
// hands back what has not, and returns. When kill ends, it returns without waiting for anything.
// Call it once.
func (w *Worker) Run(stop, kill context.Context) {
	stop, stopNow := context.WithCancel(stop)
	defer stopNow()
	defer context.AfterFunc(kill, stopNow)()
	var polling, handling sync.WaitGroup
	for _, l := range w.loops {
		polling.Go(func() { l.run(stop, kill) })
	}
	serve := func() {
		for range w.cfg.Concurrency {
			handling.Go(func() { w.serve(stop, kill) })
		}
	}
	serve()
	handling.Go(func() {
		<-stop.Done()
		serve() // hands back what waits while all others are still busy with what they began
	})
	polling.Wait()
	close(w.queue)
	handling.Wait()
}

func (w *Worker) serve(stop, kill context.Context) {
	for h := range w.queue {
		var action Action
		if stop.Err() == nil {
			action = w.Handle(kill, &h.Job, h.handler)
		} else {
			action = w.handBack(kill, h)
		}
		if action != held {
			w.hooks.Answered(h.Type, action)
		}
		h.loop.release()
	}
}

// Handle takes one job from its handler to the engine, and returns what became of it. A job whose time ran out in
// the queue is left alone: who gets it next decides on it. Safe for concurrent use.
func (w *Worker) Handle(kill context.Context, j *Job, h Handler) Action {
	if !time.Now().Before(j.Deadline) {
		return w.late(j, Released)
	}
	if w.cfg.Tracer != nil {
		return w.traced(kill, j, h)
	}
	return w.deliver(kill, j, w.reply(kill, j, h))
}

// reply runs the handler; a panic becomes a reply of its own.
func (w *Worker) reply(kill context.Context, j *Job, h Handler) (r Reply) {
	defer func() {
		if p := recover(); p != nil {
			w.hooks.Panicked(j.Type)
			w.log.Error("handler panicked, job loses one retry",
				zap.String("jobType", j.Type), zap.Int64("jobKey", j.Key),
				zap.String("panic", fmt.Sprintf("%T", p)), // its text may hold what the job held
				zap.ByteString("stack", debug.Stack()))
			r = penalty(j, "the worker failed on this job, which cost it a retry; the worker's log says where, by the "+
				"job's key")
		}
	}()
	return h(kill, j)
}

// handBack gives a job that has not begun to whoever asks next.
func (w *Worker) handBack(kill context.Context, h *activeJob) Action {
	return w.deliver(kill, &h.Job, release(&h.Job, "handed back: worker "+w.cfg.Name+" stops"))
}
