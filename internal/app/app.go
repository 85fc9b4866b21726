// Package app puts the parts of the service together, starts them and stops them.
package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/config"
	"retry-worker/internal/decision"
	"retry-worker/internal/metrics"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

// pollTimeout of one activation: a stop waits for it, and an idle engine answers that often.
const pollTimeout = 2 * time.Second

// App is one running service.
type App struct {
	log       *zap.Logger
	readiness *metrics.Readiness
	ops       *metrics.Server
	worker    *worker.Worker
	shutdown  time.Duration
	cleanups  []cleanup // in the order of opening; run in reverse
}

type cleanup struct {
	name string
	run  func(context.Context) error
}

// New opens what the service needs; the engine need not be there yet. When it fails, everything it had
// opened is closed again.
func New(s config.Settings, b metrics.Build, log *zap.Logger) (_ *App, err error) {
	a := &App{log: log, shutdown: s.ShutdownTimeout, readiness: metrics.NewReadiness("the engine has not been seen yet; `retry-worker check` says why")}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	policies := decision.BuiltIn()
	m := metrics.New(b, policies)
	if a.ops, err = metrics.Listen(s.OpsAddr, m, a.readiness); err != nil {
		return nil, err
	}
	a.cleanups = append(a.cleanups, cleanup{"metrics and probes", a.ops.Close})
	engine, err := zeebe.Dial(EngineOptions(s.Engine, b.Version), log)
	if err != nil {
		return nil, err
	}
	a.cleanups = append(a.cleanups, cleanup{"engine connection", func(context.Context) error { return engine.Close() }})
	a.worker = a.newWorker(s, engine, policies, m)
	return a, nil
}

func (a *App) newWorker(s config.Settings, engine worker.Engine, policies decision.Policies, m *metrics.Metrics) *worker.Worker {
	hooks := m.Hooks()
	var seen sync.Once
	count := hooks.EngineUp
	hooks.EngineUp = func(up bool) {
		count(up)
		if up {
			seen.Do(a.readiness.Ready) // a later loss is an alert, not an unready service
		}
	}
	subs := subscriptions(policies, hooks, a.log)
	for _, sub := range subs {
		m.StartJobType(sub.JobType)
	}
	return worker.New(engine, worker.Config{
		Name: s.WorkerName, JobTimeout: s.JobTimeout, PollTimeout: pollTimeout,
		MaxJobsActive: s.MaxJobsActive, Concurrency: s.Concurrency, TenantIDs: s.TenantIDs,
	}, subs, hooks, a.log)
}

func subscriptions(policies decision.Policies, hooks worker.Hooks, log *zap.Logger) []worker.Subscription {
	variables := policies.Variables()
	analyzer := func(rule decision.BusinessRule) worker.Handler {
		return worker.NewAnalyzer(policies, rule, time.Now, hooks, log).Handle
	}
	return []worker.Subscription{
		{JobType: worker.AnalyzeRetry, Variables: variables, Handler: analyzer(decision.RNBIL005)},
		{JobType: worker.RetrySubmissionBackoff, Variables: variables, Handler: analyzer(decision.RNBIL004)},
		{JobType: worker.RecordRetryOutcome, Variables: append(policies.IDVariables(), worker.OutcomeVariable),
			Handler: worker.NewOutcomeRecorder(policies, hooks, log).Handle},
	}
}

// OpsAddr is the address of metrics and probes.
func (a *App) OpsAddr() string { return a.ops.Addr() }

// Run works until stop ends, then drains and closes everything, within the shutdown time-out; kill
// ends it at once. Call it once.
func (a *App) Run(stop, kill context.Context) error {
	hard, cancel := context.WithCancel(kill)
	defer cancel()
	defer context.AfterFunc(stop, func() {
		a.readiness.NotReady("stopping")
		a.log.Info("stopping: no new jobs, those begun are finished, the others handed back", zap.Duration("atMost", a.shutdown))
		time.AfterFunc(a.drainTime(), cancel)
	})()
	a.worker.Run(stop, hard)
	var hardStop error
	if hard.Err() != nil {
		hardStop = ErrHardStop
		a.log.Warn("stopped hard: jobs that were not answered come back after their time-out")
	}
	return errors.Join(hardStop, a.close())
}

// ErrHardStop is Run's error after a stop that left jobs behind: whoever started the process is to see it.
var ErrHardStop = errors.New("stopped before every job was answered or handed back; the engine offers the others again after their time-out")

// closeTime of the shutdown time-out is left for closing what is open.
const closeTime = 2 * time.Second

func (a *App) drainTime() time.Duration { return a.shutdown - min(closeTime, a.shutdown/4) }

// close runs the clean-ups in reverse order, once, all of them within closeTime.
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

// EngineOptions are the settings as the engine's adapter takes them.
func EngineOptions(e config.Engine, version string) zeebe.Options {
	o := zeebe.Options{
		Address: e.Address, Plaintext: e.Plaintext, CACertificatePath: e.CACertificatePath,
		OverrideAuthority: e.OverrideAuthority, KeepAlive: e.KeepAlive, UserAgent: "retry-worker/" + version,
	}
	if e.OAuth != nil {
		o.OAuth = &zeebe.OAuth{
			ClientID: e.OAuth.ClientID, ClientSecret: e.OAuth.ClientSecret, Audience: e.OAuth.Audience,
			Scope: e.OAuth.Scope, URL: e.OAuth.URL, RequestTimeout: e.OAuth.RequestTimeout,
		}
	}
	return o
}
