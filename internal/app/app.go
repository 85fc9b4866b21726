// Package app assembles the service's parts, starts them and stops them.
package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"retry-worker/internal/api"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/config"
	"retry-worker/internal/console"
	"retry-worker/internal/decision"
	"retry-worker/internal/events"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/metrics"
	"retry-worker/internal/statistics"
	"retry-worker/internal/store"
	"retry-worker/internal/web"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

// pollTimeout of one activation. A stop waits for it.
const pollTimeout = 2 * time.Second

// App is one running service.
type App struct {
	settings  config.Settings
	version   string
	holder    string // of leases; new with each start
	log       *zap.Logger
	clock     clock.Clock
	metrics   *metrics.Metrics
	ops, http *web.Server
	api       *api.API
	pages     *console.Pages
	health    health
	engine    *zeebe.Client
	store     store.Store                 // nil until it is opened
	sink      *events.Sink                // nil if events are off
	tracing   *tracing                    // nil if traces are off
	catalogue func() *catalogue.Catalogue // the one in force
	watches   []func(context.Context)     // take up changed files until their context ends
	cleanups  []cleanup                   // in order of opening; run in reverse
}

type cleanup struct {
	name string
	run  func(context.Context) error
}

// Options of a service. Nil Listen and Dial use this machine's network.
type Options struct {
	Settings config.Settings
	Build    metrics.Build
	// Clock is the time for decisions, plans and people. What is agreed with other programs uses this machine's clock:
	// job deadlines, leases, time-outs.
	Clock clock.Clock
	Log   *zap.Logger
	// Listen opens the addresses of metrics and console.
	Listen web.Opener
	// Dial connects to the engine, to webhooks and to probed addresses.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// New opens what the service needs; the engine and a database server may be down. If it fails, it closes what it had
// opened. Problems of the policies or tokens file are config.Problems.
func New(o Options) (_ *App, err error) {
	s, log := o.Settings, o.Log
	if o.Listen == nil {
		o.Listen = net.Listen
	}
	if o.Dial != nil {
		s.Engine.Dialer = func(ctx context.Context, address string) (net.Conn, error) { return o.Dial(ctx, "tcp", address) }
		s.Notify.Webhooks.Dial = o.Dial
	}
	a := &App{settings: s, version: o.Build.Version, holder: s.WorkerName + " " + uuid.NewString(), log: log, clock: o.Clock,
		metrics: metrics.New(o.Build), health: health{now: o.Clock.Now}}
	a.warnOfSettings()
	if err = a.openCatalogue(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	a.metrics.Readiness.NotReady(metrics.AboutEngine, "the engine has not been seen yet; `retry-worker check` says why")
	if a.ops, err = a.metrics.Listen(o.Listen, s.OpsAddr, s.Profiles); err != nil {
		return nil, err
	}
	a.cleanups = append(a.cleanups, cleanup{"metrics and probes", a.ops.Close})
	if err = a.openConsole(o.Listen); err != nil {
		return nil, err
	}
	if err = a.openTracing(); err != nil {
		return nil, err
	}
	if a.engine, err = zeebe.Dial(a.engineOptions(), log); err != nil {
		return nil, err
	}
	a.cleanups = append(a.cleanups, cleanup{"engine connection", func(context.Context) error { return a.engine.Close() }})
	if s.EventsURL != "" {
		if a.sink, err = events.NewSink(s.EventsURL, s.WorkerName); err != nil {
			return nil, fmt.Errorf("RETRY_WORKER_EVENTS_URL: %w", err)
		}
		a.cleanups = append(a.cleanups, cleanup{"events", func(context.Context) error { a.sink.Close(); return nil }})
	}
	if err = a.openStore(context.Background()); err != nil && !a.canWait(err) {
		return nil, err
	}
	return a, nil
}

func (a *App) newWorker(memory *journal.Journal, gates *gate.Gates) *worker.Worker {
	s := a.settings
	hooks := a.metrics.Hooks()
	var seen sync.Once
	count := hooks.EngineUp
	hooks.EngineUp = func(up bool) {
		count(up)
		a.health.set(&a.health.shown.Engine, up)
		if up {
			seen.Do(func() { // a later loss raises an alert, but the service stays ready
				a.metrics.Readiness.Note(metrics.AboutEngine, "engine: "+a.settings.Engine.String())
				a.metrics.Readiness.Ready(metrics.AboutEngine)
			})
		}
	}
	subs := a.subscriptions(memory, gates, hooks)
	for _, sub := range subs {
		a.metrics.StartJobType(sub.JobType)
	}
	return worker.New(a.engine, worker.Config{
		Name: s.WorkerName, JobTimeout: s.JobTimeout, PollTimeout: pollTimeout, Await: memory.Await,
		MaxJobsActive: s.MaxJobsActive, Concurrency: s.Concurrency, TenantIDs: s.TenantIDs, Tracer: a.tracing.tracer(),
	}, subs, hooks, a.log)
}

func (a *App) subscriptions(memory *journal.Journal, gates *gate.Gates, hooks worker.Hooks) []worker.Subscription {
	analyzer := func(rule decision.BusinessRule) *worker.Analyzer {
		analyzer := worker.NewAnalyzer(a.policies, rule, memory, a.clock.Now, hooks, a.log)
		analyzer.Expected = gates.Expected
		return analyzer
	}
	return []worker.Subscription{
		{JobType: worker.AnalyzeRetry, Begin: analyzer(decision.RNBIL005).Begin},
		{JobType: worker.RetrySubmissionBackoff, Begin: analyzer(decision.RNBIL004).Begin},
		{JobType: worker.RecordRetryOutcome, Begin: worker.NewOutcomeRecorder(a.policies, memory, hooks, a.log).Begin},
	}
}

// OpsAddr returns the address of metrics and probes.
func (a *App) OpsAddr() string { return a.ops.Addr() }

// HTTPAddr returns the address of the API.
func (a *App) HTTPAddr() string { return a.http.Addr() }

// Run works until stop ends, then drains and closes everything within the shutdown time-out. kill ends it at once. Call
// it once.
func (a *App) Run(stop, kill context.Context) error {
	hard, cancel := context.WithCancel(kill)
	defer cancel()
	defer context.AfterFunc(stop, func() {
		a.metrics.Readiness.NotReady(metrics.AboutStop, "stopping")
		a.log.Info("stopping: no new jobs, those begun are finished, the others handed back",
			zap.Duration("atMost", a.settings.ShutdownTimeout))
		time.AfterFunc(a.drainTime(), cancel)
	})()
	a.logCatalogue(a.catalogue())
	for _, watch := range a.watches {
		defer a.background(hard, watch)()
	}
	if err := a.awaitStore(stop, hard); err != nil {
		return errors.Join(err, a.close())
	}
	if a.store != nil {
		a.work(stop, hard)
	}
	var hardStop error
	if hard.Err() != nil {
		hardStop = ErrHardStop
		a.log.Warn("stopped hard: jobs that were not answered come back after their time-out")
	}
	return errors.Join(hardStop, a.close())
}

// work takes and answers jobs until stop ends. The journal stops last, so that all that has begun is recorded.
func (a *App) work(stop, hard context.Context) {
	var relays *relays
	var gates *gate.Gates
	hooks := a.journalHooks()
	hooks.Committed = func(records []journal.Happening, took time.Duration) {
		a.metrics.Committed(records, took)
		relays.wake()
		gates.Recorded(records)
	}
	var publish journal.Publisher
	if a.sink != nil {
		publish = events.Publisher(events.Source, a.destinationLabel)
	}
	memory := journal.New(a.store, a.clock.Now, publish, hooks)
	learner := statistics.NewLearner(a.store)
	memory.Learner = learner
	gates = a.newGates(memory)
	relays = a.newRelays(memory, gates)
	recorded := a.background(hard, func(ends context.Context) { memory.Run(ends, hard) })
	kept := a.background(hard, func(ends context.Context) { a.upkeep(ends, memory, gates, relays.notices) })
	learnt := a.background(hard, func(ends context.Context) { a.learn(ends, learner) })
	relayed := a.runRelays(hard, relays)
	decide := a.openReviews(memory, gates)
	var reviewing sync.WaitGroup
	reviewing.Go(func() { a.carryBulk(stop, hard, decide, memory) })
	reviewing.Go(func() { decide.RunLater(stop, a.store, a.log) })
	reviewing.Go(func() { a.newReviews(memory, relays).Run(stop, hard) })
	reviewing.Go(func() { a.holdGates(stop, hard, gates, memory) })
	a.newWorker(memory, gates).Run(stop, hard)
	reviewing.Wait()
	kept()
	learnt()
	relayed()
	recorded()
}

// background runs f in a goroutine. end cancels its context and waits for it.
func (a *App) background(hard context.Context, f func(ends context.Context)) (end func()) {
	ends, cancel := context.WithCancel(context.WithoutCancel(hard))
	var running sync.WaitGroup
	running.Go(func() { f(ends) })
	return func() {
		cancel()
		running.Wait()
	}
}

// ErrHardStop is Run's error after a stop that left jobs unanswered.
var ErrHardStop = errors.New("stopped before every job was answered or handed back; the engine offers the others " +
	"again after their time-out")

// closeTime is the part of the shutdown time-out that is kept for clean-ups.
const closeTime = 2 * time.Second

func (a *App) drainTime() time.Duration {
	return a.settings.ShutdownTimeout - min(closeTime, a.settings.ShutdownTimeout/4)
}

// close runs the clean-ups in reverse order, once, within closeTime.
func (a *App) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	var all error
	for len(a.cleanups) > 0 {
		last := a.cleanups[len(a.cleanups)-1]
		a.cleanups = a.cleanups[:len(a.cleanups)-1]
		if err := last.run(ctx); err != nil {
			all = errors.Join(all, fmt.Errorf("close %s: %w", last.name, err))
		}
	}
	return all
}
