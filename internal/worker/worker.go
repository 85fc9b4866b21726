package worker

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
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

// Hooks are called as things happen, to feed metrics. All must be set (see NoHooks). They are called from many
// goroutines and must not block.
type Hooks struct {
	// Add adds n to a counter or a gauge of internal/metrics/metrics.yaml, with these values of its labels. Observe is the
	// same for a histogram.
	Add, Observe func(metric string, n float64, values ...string)
	// Decided is called for every new decision, with the time the analysis took.
	Decided func(d *decision.Decision, took time.Duration)
	// Ended is called for what is given up because it came too late (R20, R27).
	Ended func(policy string)
	// EngineUp is called when the engine begins or stops to answer.
	EngineUp func(up bool)
}

// NoHooks returns hooks that do nothing.
func NoHooks() Hooks {
	count := func(string, float64, ...string) {}
	return Hooks{Add: count, Observe: count, Decided: func(*decision.Decision, time.Duration) {}, Ended: func(string) {},
		EngineUp: func(bool) {}}
}

// Metrics that are counted in several places.
const (
	inFlight  = "retry_worker_jobs_in_flight"
	oversized = "retry_worker_oversized_total"
	replayed  = "retry_worker_decisions_replayed_total"
	// Answered counts the jobs that were answered, by their type and Action.
	Answered = "retry_worker_jobs_total"
)

// heard takes the result of a loop's last poll. The engine is up while it serves any loop. Only changes are logged.
func (w *Worker) heard(l *loop, err error) {
	ok := err == nil || kindOf(err) == TooLarge // TooLarge is an answer, though an unreadable one
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, known := w.served[l]; known && before == ok {
		return
	}
	isUp := func() bool { return slices.Contains(slices.Collect(maps.Values(w.served)), true) }
	first, was := len(w.served) == 0, isUp()
	w.served[l] = ok
	if up := isUp(); first || up != was {
		w.hooks.EngineUp(up)
	}
	if ok {
		w.log.Info("engine answers polls", zap.String("jobType", l.request.JobType))
		return
	}
	w.log.Warn("engine does not answer polls; it is asked again with growing pauses (`retry-worker check` says more)",
		zap.String("jobType", l.request.JobType), zap.Error(err))
}

// traceField names a job's trace in its log line.
const traceField = "traceId"

// traced is Handle within a span, from the handler to the engine's answer; calls of the journal and of the engine are
// spans inside it. Spans hold the engine's keys and words of closed sets, but no variables, which may be personal.
func (w *Worker) traced(kill context.Context, j *Job, h Handler) Action {
	ctx, span := w.cfg.Tracer.Start(kill, j.Type, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		attribute.Int64("zeebe.job.key", j.Key), attribute.Int64("zeebe.process_instance.key", j.ProcessInstanceKey),
		attribute.Int64("zeebe.element_instance.key", j.ElementInstanceKey),
		attribute.String("zeebe.tenant.id", j.TenantID)))
	defer span.End()
	action := w.deliver(ctx, j, w.reply(ctx, j, h))
	span.SetAttributes(attribute.String("retry_worker.action", string(action)))
	if action != Completed && action != Thrown && action != held {
		span.SetStatus(codes.Error, string(action))
	}
	return action
}

// inJournal calls the journal's Analyze, in a span of its own if the job has one.
func inJournal(ctx context.Context, memory *journal.Journal, n *journal.Analysis) (journal.Recorded, error) {
	job := trace.SpanFromContext(ctx)
	if !job.IsRecording() {
		return memory.Analyze(ctx, n)
	}
	policy := attribute.String("retry_worker.policy", n.Policy.Name)
	ctx, span := job.TracerProvider().Tracer("retry-worker").Start(ctx, "journal", trace.WithAttributes(policy))
	defer span.End()
	r, err := memory.Analyze(ctx, n)
	if err != nil {
		span.SetStatus(codes.Error, "not recorded")
		return r, err
	}
	span.SetAttributes(attribute.String("retry_worker.recorded_as", string(r.How)))
	d := &r.Decision
	if d.Rejection != nil {
		job.SetAttributes(policy, attribute.String("retry_worker.rejection", string(d.Rejection.Code)))
		return r, err
	}
	span.SetAttributes(attribute.Int64("retry_worker.journal.record", r.Attempt.Record))
	job.SetAttributes(policy,
		attribute.String("retry_worker.outcome", string(d.Outcome)),
		attribute.String("retry_worker.reason", string(d.Reason)),
		attribute.String("retry_worker.classification", string(d.ErrorClassification)),
		attribute.String("retry_worker.team", string(d.Team)),
		attribute.Int64("retry_worker.retry_count", d.RetryCount),
		attribute.Float64("retry_worker.backoff_seconds", d.Wait().Seconds()))
	return r, nil
}
