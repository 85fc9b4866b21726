// Package app assembles the service's parts, starts them and stops them.
package app

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/config"
	"retry-worker/internal/console"
	"retry-worker/internal/decision"
	"retry-worker/internal/events"
	"retry-worker/internal/journal"
	"retry-worker/internal/metrics"
	"retry-worker/internal/notify"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/store"
	"retry-worker/internal/web"
	"retry-worker/internal/zeebe"
)

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
	store     store.Store                        // nil until it is opened
	sink      *events.Sink                       // nil if events are off
	tracing   *sdktrace.TracerProvider           // nil if traces are off
	catalogue func() *catalogue.Catalogue        // the one in force
	watches   []func(ends, hard context.Context) // take up changed files
	cleanups  []cleanup                          // in order of opening; run in reverse
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
		metrics: metrics.New(o.Build)}
	for _, hint := range s.Unread {
		log.Warn(hint, zap.String("event", "setting_not_read"))
	}
	for _, line := range unencrypted(&s) {
		log.Warn(line, zap.String("event", "unencrypted"))
	}
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
	s.Engine.Version = a.version
	if a.tracing != nil {
		s.Engine.Trace = traceCalls(a.tracing)
	}
	if a.engine, err = zeebe.Dial(s.Engine, log); err != nil {
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

const (
	// openTime bounds one try to open the journal, including a migration.
	openTime = time.Minute
	// openPause is the pause between two tries.
	openPause = time.Second
)

// openStore opens the journal's store, or shows in /readyz why it cannot.
func (a *App) openStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	s, err := store.Open(ctx, a.settings.DatabaseURL)
	if err != nil {
		a.showJournal("the journal is not open: " + err.Error())
		return err
	}
	a.store = s
	a.cleanups = append(a.cleanups, cleanup{"journal", func(context.Context) error { return s.Close() }})
	a.showJournal("")
	return nil
}

// showJournal shows probes and people why the journal cannot be written; empty if it can.
func (a *App) showJournal(reason string) {
	a.metrics.Readiness.NotReady(metrics.AboutJournal, reason)
	a.health.update(func(h *console.Health) { h.Journal.Set(reason == "", a.clock.Now()) })
}

// canWait reports whether the journal may open later: its database server may be down. A file's problem needs a person.
func (a *App) canWait(err error) bool {
	if strings.HasPrefix(a.settings.DatabaseURL, "sqlite:") {
		return false
	}
	failed, ok := errors.AsType[*journal.StoreError](err)
	return ok && failed.Kind == journal.Unavailable
}

// awaitStore tries to open the journal until it succeeds, or stop or hard ends. An error means that waiting does not
// help.
func (a *App) awaitStore(stop, hard context.Context) error {
	if a.store != nil {
		return nil
	}
	a.log.Warn("the journal is not open; it is tried again, and no job is taken until it is open")
	stop, cancel := context.WithCancel(stop)
	defer cancel()
	defer context.AfterFunc(hard, cancel)()
	for {
		clock.Machine{}.Rest(stop, openPause)
		if stop.Err() != nil {
			return nil
		}
		err := a.openStore(hard)
		if err == nil {
			a.log.Info("the journal is open")
		}
		if err == nil || !a.canWait(err) {
			return err
		}
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
		time.AfterFunc(a.settings.ShutdownTimeout-min(closeTime, a.settings.ShutdownTimeout/4), cancel)
	})()
	a.logCatalogue(a.catalogue())
	for _, watch := range a.watches {
		defer background(hard, watch)()
	}
	if err := a.awaitStore(stop, hard); err != nil {
		return errors.Join(err, a.close())
	}
	if a.store != nil {
		a.newService().run(stop, hard)
	}
	var hardStop error
	if hard.Err() != nil {
		hardStop = ErrHardStop
		a.log.Warn("stopped hard: jobs that were not answered come back after their time-out")
	}
	return errors.Join(hardStop, a.close())
}

// ErrHardStop is Run's error after a stop that left jobs unanswered.
var ErrHardStop = errors.New("stopped before every job was answered or handed back; the engine offers the others " +
	"again after their time-out")

// closeTime is the part of the shutdown time-out that is kept for clean-ups.
const closeTime = 2 * time.Second

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

// openConsole serves the API and the pages. Until the journal is open they say so.
func (a *App) openConsole(open web.Opener) (err error) {
	s := &a.settings
	tokens, err := watch(a, metrics.AboutTokens, "the tokens file", "RETRY_WORKER_AUTH_TOKENS_FILE", s.AuthTokensFile,
		access.Open, nil)
	if err != nil {
		return err
	}
	cert, err := watch(a, metrics.AboutCertificate, "the console's certificate", "RETRY_WORKER_TLS_CERT_FILE", s.TLSCertFile,
		func(path string) (*smallfile.Watcher[tls.Certificate], error) {
			return web.OpenCertificate(path, s.TLSKeyFile)
		}, nil)
	if err != nil {
		return err
	}
	a.pages = console.New(console.Options{Now: a.clock.Now, Catalogue: a.catalogue, Health: a.health.snapshot, Log: a.log,
		Operate: s.OperateURL, Claim: s.ClaimURL, Grafana: s.GrafanaURL, Zone: s.Notify.Zone})
	gate := access.Options{
		Now: a.clock.Now, Tokens: tokens, Provider: s.Provider, Log: a.log,
		Public: []string{console.AssetsPrefix}, LoginPage: a.pages.Login, Refuse: a.pages.Refuse,
	}
	a.api = api.New(api.Options{Gate: gate, Policies: a.policies, Zone: s.Notify.Zone, Pages: a.pages, Log: a.log})
	if a.http, err = a.api.Listen(open, s.HTTPAddr, cert, s.Proxies...); err != nil {
		return err
	}
	a.cleanups = append(a.cleanups, cleanup{"API and pages", a.http.Close})
	return nil
}

// health is the service's state as the pages show it. It is safe for concurrent use.
type health struct {
	mu    sync.Mutex
	shown console.Health
}

func (h *health) update(change func(*console.Health)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.shown)
}

func (h *health) snapshot() (shown console.Health) {
	h.update(func(now *console.Health) { shown = *now })
	return shown
}

// engineUp returns since when the engine answers this process; zero if it does not.
func (h *health) engineUp() time.Time {
	if engine := h.snapshot().Engine; engine.Up {
		return engine.Since
	}
	return time.Time{}
}

// watch opens the file that a setting names, if any, takes up its changes, and returns its value in force. A wrong file
// is refused at the start. Later it changes nothing, and log, /readyz and the gauge about it say so until it is right.
// told, unless it is nil, is called as by smallfile.Watcher.Run.
func watch[T any](
	a *App, about, name, setting, path string, open func(path string) (*smallfile.Watcher[T], error),
	told func(*T, error),
) (current func() *T, _ error) {
	if path == "" {
		return nil, nil
	}
	w, err := open(path)
	if err != nil {
		var problems config.Problems
		for line := range strings.SplitSeq(err.Error(), "\n") {
			problems = append(problems, setting+": "+line)
		}
		return nil, problems
	}
	a.watches = append(a.watches, func(ends, _ context.Context) {
		w.Run(ends, func(next *T, err error) {
			if err != nil {
				lines := strings.Split(err.Error(), "\n")
				a.metrics.Readiness.Note(about, about+" rejected: "+strings.Join(lines, "; ")+"; the one before stays in force")
				a.log.Error(name+" has changed and is refused; the one before stays in force",
					zap.String("event", about+"_rejected"), zap.Strings("problems", lines))
			} else {
				a.metrics.Readiness.Note(about, "")
				a.log.Info(name+" has changed and is in force", zap.String("event", about+"_changed"))
			}
			if told != nil {
				told(next, err)
			}
		})
	})
	return w.Current, nil
}

// openCatalogue reads the policies file, or takes the built-in catalogue if there is none.
func (a *App) openCatalogue() (err error) {
	a.catalogue, err = watch(a, metrics.AboutCatalogue, "the policies file", "RETRY_WORKER_POLICIES_FILE",
		a.settings.PoliciesFile, catalogue.Open, func(next *catalogue.Catalogue, err error) {
			a.health.update(func(h *console.Health) { h.Rejection = err })
			if err == nil {
				a.takeCatalogue(next)
				a.logCatalogue(next)
			}
		})
	if err != nil {
		return err
	}
	if a.catalogue == nil {
		a.catalogue = catalogue.Default
	}
	a.takeCatalogue(a.catalogue())
	return nil
}

// takeCatalogue creates the metric series of a catalogue.
func (a *App) takeCatalogue(c *catalogue.Catalogue) {
	a.metrics.StartPolicies(c.Policies)
	a.metrics.SetCatalogue(c.Version)
	for name := range c.Destinations.Named {
		a.metrics.Start(map[string]string{"destination": name})
	}
	for _, r := range notify.Receivers(c) {
		a.metrics.Start(map[string]string{"team": string(r.Team), "channel": string(r.Channel)})
	}
}

// logCatalogue logs the catalogue in force, and the teams that cannot be notified.
func (a *App) logCatalogue(c *catalogue.Catalogue) {
	a.log.Info("policy catalogue in force", zap.String("catalogue", c.Version), zap.String("source", c.Source),
		zap.Strings("policies", c.Policies.Names()))
	for _, line := range notify.Problems(c, a.settings.Notify.SMTP != nil) {
		a.log.Warn("a team cannot be told of its dead letters: "+line, zap.String("event", "notice_problem"))
	}
}

// policies returns the policies in force.
func (a *App) policies() decision.Policies { return a.catalogue().Policies }
