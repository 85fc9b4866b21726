package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/api"
	"retry-worker/internal/clock"
	"retry-worker/internal/console"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/events"
	"retry-worker/internal/gate"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/metrics"
	"retry-worker/internal/notify"
	"retry-worker/internal/outbox"
	"retry-worker/internal/statistics"
	"retry-worker/internal/web"
	"retry-worker/internal/worker"
)

const (
	// pollTimeout of one activation. A stop waits for it.
	pollTimeout = 2 * time.Second
	// gatherLease keeps replicas from gathering the same news.
	gatherLease = "notify"
	// noticeHold is the least time between tries for a receiver that does not take its messages.
	noticeHold = 15 * time.Minute
)

// service is what works while the journal is open.
type service struct {
	*App
	memory  *journal.Journal
	learner *statistics.Learner
	gates   *gate.Gates
	jobs    *worker.Handlers
	reviews *outbox.Relay // carries decisions to the waiting processes
	notices *notify.Sink
	figures metrics.Figures // as they were read last
	// carriers carry the journal's messages. Each queue has a lease of its own, so that a stuck one does not stop the
	// others. wakes make them look for new messages.
	carriers []func(ends, hard context.Context)
	wakes    []func()
}

func (a *App) newService() *service {
	s := &service{App: a, learner: statistics.NewLearner(a.store)}
	var publish journal.Publisher
	if a.sink != nil {
		publish = events.Publisher(a.destinationLabel)
	}
	s.memory = journal.New(a.store, a.clock.Now, publish, journal.Hooks{Committed: s.committed, Open: a.journalOpen})
	s.memory.Learner = s.learner
	s.gates = gate.New(gate.Options{
		Store: a.store, Memory: s.memory, Engine: a.engine, Clock: a.clock, Zone: a.settings.Notify.Zone, Log: a.log,
		Hooks: a.metrics.Hooks(), Settings: func() gate.Settings {
			c := a.catalogue()
			return gate.Settings{Version: c.Version, Destinations: c.Destinations, Policies: c.Policies}
		},
		Probe: web.NewProbe(web.NewClient(a.settings.Notify.Webhooks, a.version), a.log),
	})
	s.jobs = worker.NewHandlers(worker.Options{Policies: a.policies, Memory: s.memory, Now: a.clock.Now, Hooks: a.workerHooks(),
		Log: a.log, Expected: s.gates.Expected, Engine: a.engine, Admit: s.gates.Admit, Letters: a.store,
		Answered: func() { s.reviews.Wake() }})
	sink := &worker.ReviewSink{Options: s.jobs.Options, Record: s.memory.Delivered}
	byDelivery := func(context.Context, []int64) error { return nil } // the sink records each message's delivery itself
	s.reviews = s.relay(journal.ReviewQueue, byDelivery, sink)
	s.reviews.Leads = sink.Leads
	s.wakes = append(s.wakes, s.reviews.Wake)
	s.addNotices()
	if a.sink != nil {
		published := func(ctx context.Context, sequences []int64) error {
			err := s.memory.Published(ctx, sequences)
			if err == nil {
				s.metrics.Add("retry_worker_outbox_published_total", float64(len(sequences)))
			}
			return err
		}
		s.wakes = append(s.wakes, s.relay(events.Queue, published, a.sink).Wake)
	}
	return s
}

func (s *service) relay(queue string, published func(context.Context, []int64) error, sink outbox.Sink) *outbox.Relay {
	r := outbox.New(queue, s.holder, s.store, published, sink, s.log)
	s.carriers = append(s.carriers, r.Run)
	return r
}

// led returns work that is done while this replica has the lease.
func (s *service) led(lease string, work func(stop, hard context.Context)) func(stop, hard context.Context) {
	return func(stop, hard context.Context) { outbox.Lead(stop, hard, s.store, lease, s.holder, work) }
}

// addNotices adds the notices to teams about their dead letters.
func (s *service) addNotices() {
	settings := s.settings.Notify
	s.notices = &notify.Sink{Catalogue: s.catalogue, Senders: Senders(settings, s.version), Clock: s.clock,
		Add: s.metrics.Add, Log: s.log}
	relay := s.relay(deadletter.NoticeQueue, s.memory.Published, s.notices)
	relay.Patience = outbox.Patience{Message: notify.PublishTime, Hold: noticeHold, Apart: true}
	gatherer := notify.NewGatherer(notify.Options{
		Store: s.store, Catalogue: s.catalogue, Clock: s.clock, Settings: settings, Retention: s.settings.Retention,
		Destinations: s.gates.Destinations, Learner: s.learner, Made: relay.Wake, Log: s.log,
	})
	s.wakes = append(s.wakes, gatherer.Wake)
	s.carriers = append(s.carriers, s.led(gatherLease, gatherer.Run))
}

// Senders returns the senders of notices that the settings configure.
func Senders(s notify.Settings, version string) notify.Senders {
	senders := notify.Senders{Poster: notify.NewPoster(web.NewClient(s.Webhooks, version))}
	if s.SMTP != nil {
		senders.Mailer = notify.NewMailer(*s.SMTP, console.Portuguese, s.Zone)
	}
	return senders
}

// journalOpen is called when the journal can be written again, or cannot.
func (a *App) journalOpen(open bool, reason error) {
	if open {
		a.showJournal("")
		a.log.Info("the journal can be written again, jobs are taken again")
		return
	}
	a.showJournal(reason.Error())
	a.log.Error("the journal cannot be written: jobs go back as they came and none is taken until it can",
		zap.Error(reason))
}

// committed is called after each commit.
func (s *service) committed(records []journal.Happening, took time.Duration) {
	s.metrics.Committed(records, took)
	for _, wake := range s.wakes {
		wake()
	}
	s.gates.Recorded(records)
}

// run opens what people decide by, and takes and answers jobs until stop ends. What it does beside ends after that, and
// the journal last, so that all that has begun is recorded.
func (s *service) run(stop, hard context.Context) {
	defer background(hard, s.memory.Run)()
	for _, beside := range append(s.carriers, s.upkeep) {
		defer background(hard, beside)()
	}
	decide := deadletter.New(s.store, s.memory, s.policies, s.clock.Now, s.health.engineUp)
	people := guard.New(guard.Services{DeadLetters: decide, Gates: s.gates, Journal: s.memory, Store: s.store,
		Accounts: s.api.Accounts, Log: s.log})
	s.api.Open(api.Journal{Reader: s.store, Guard: people, Sessions: s.store})
	s.pages.Open(s.store, people)
	bulk := deadletter.Runner{Items: s.store, Decide: decide.Decide, Memory: s.memory, Clock: s.clock,
		EngineUp: s.health.engineUp, Log: s.log}
	c := worker.Config{Name: s.settings.WorkerName, PollTimeout: pollTimeout, Await: s.memory.Await,
		TenantIDs: s.settings.TenantIDs, JobTimeout: s.settings.JobTimeout, MaxJobsActive: s.settings.MaxJobsActive,
		Concurrency: s.settings.Concurrency}
	if s.tracing != nil {
		c.Tracer = s.tracing.Tracer("retry-worker")
	}
	// Reviews and gates have places of their own, so that waiting for people or for a portal blocks no other jobs.
	jobs := func(types ...string) *worker.Worker {
		for _, jobType := range types {
			s.metrics.Start(map[string]string{"job_type": jobType})
		}
		return s.jobs.Worker(c, types...)
	}
	gated := jobs(worker.SubmissionGate)
	var working sync.WaitGroup
	for _, work := range []func(stop, hard context.Context){
		s.led(deadletter.BulkLease, bulk.Run),
		func(stop, _ context.Context) { decide.RunLater(stop, s.store, s.log) },
		jobs(worker.AnalyzeRetry, worker.RetrySubmissionBackoff, worker.RecordRetryOutcome).Run,
		jobs(worker.RetryReview).Run,
		func(stop, hard context.Context) {
			defer background(hard, func(ends, _ context.Context) { s.gates.Run(ends) })()
			defer background(hard, s.led(gate.Lease, s.gates.Lead))() // for all held claims
			gated.Run(stop, hard)
		},
	} {
		working.Go(func() { work(stop, hard) })
	}
	working.Wait()
}

// workerHooks returns the metrics' hooks, which also show whether the engine answers.
func (a *App) workerHooks() worker.Hooks {
	hooks := a.metrics.Hooks()
	count := hooks.EngineUp
	hooks.EngineUp = func(up bool) {
		count(up)
		a.health.update(func(h *console.Health) { h.Engine.Set(up, a.clock.Now()) })
		if up { // a later loss raises an alert, but the service stays ready
			a.metrics.Readiness.Note(metrics.AboutEngine, "engine: "+a.settings.Engine.String())
			a.metrics.Readiness.NotReady(metrics.AboutEngine, "")
		}
	}
	return hooks
}

// destinationLabel returns a destination's name in metrics and events.
func (a *App) destinationLabel(name string) string { return a.catalogue().Destinations.Label(name) }

// background runs f in a goroutine. end ends its ends and waits for it.
func background(hard context.Context, f func(ends, hard context.Context)) (end func()) {
	ends, cancel := context.WithCancel(context.WithoutCancel(hard))
	var running sync.WaitGroup
	running.Go(func() { f(ends, hard) })
	return func() {
		cancel()
		running.Wait()
	}
}

const (
	// gaugePause is the time between two readings of the gauges that come from the database.
	gaugePause = 15 * time.Second
	// learnPause is the time between two readings of outcomes to learn from.
	learnPause = time.Minute
	// headPause is the time between two log lines of the ledger's head. A truncated or rewritten ledger contradicts
	// each of them.
	headPause = time.Hour
	// purgePause is the time between two purges, and between two log lines of the teams that are not notified;
	// purgeAgain the one after a purge that was refused.
	purgePause = 24 * time.Hour
	purgeAgain = time.Hour
	// upkeepTime bounds one reading, purgeTime one purge.
	upkeepTime = 30 * time.Second
	purgeTime  = 7 * 24 * time.Hour
	// purgeLease keeps replicas from purging at the same time. The next purge continues an interrupted one.
	purgeLease = "purge"
)

// upkeep does the recurring tasks until ctx ends. None waits for another, as a purge may take hours. Each has a time
// limit, and returns after how long it is due again.
func (s *service) upkeep(ctx, _ context.Context) {
	var running sync.WaitGroup
	for _, task := range []struct {
		limit time.Duration
		do    func(context.Context) (pause time.Duration)
	}{{upkeepTime, s.showFigures}, {upkeepTime, s.logHead}, {upkeepTime, s.learn}, {purgeTime, s.purge}} {
		running.Go(func() {
			for ctx.Err() == nil {
				within, cancel := context.WithTimeout(ctx, task.limit)
				pause := task.do(within)
				cancel()
				clock.Machine{}.Rest(ctx, pause)
			}
		})
	}
	running.Wait()
}

// learn updates the learner, and counts and logs causes that are new or back, of which their teams are then notified
// (R34). If reading fails, the last state holds; retry_worker_journal_up shows it.
func (s *service) learn(ctx context.Context) time.Duration {
	if err := s.learner.Refresh(ctx, s.clock.Now()); err != nil && ctx.Err() == nil {
		s.log.Debug("outcomes could not be read; decisions go by what was learnt before", zap.Error(err))
	}
	found, err := statistics.FindNew(ctx, s.store, s.clock.Now())
	if err != nil && ctx.Err() == nil {
		s.log.Debug("causes that may be new could not be looked at; they are with the next reading", zap.Error(err))
	}
	for i := range found {
		c := &found[i]
		s.metrics.Add("retry_worker_new_causes_total", 1, c.Policy)
		s.log.Warn("a cause is new, or back", zap.String("event", "new_cause"), zap.String("policy", c.Policy),
			zap.String("cause", c.ID), zap.String("reason", string(c.Reason)), zap.Int64("failures", c.News.Failures))
	}
	return learnPause
}

// showFigures reads the figures that are the same in every replica, and has scrapes and pages show them. Where reading
// fails, the last value stays; retry_worker_journal_up shows it.
func (s *service) showFigures(ctx context.Context) time.Duration {
	f := &s.figures
	f.Read, f.Policies = s.clock.Now(), s.policies().Names()
	if sums, err := s.store.Sums(ctx, statistics.FirstSlot(f.Read)); err == nil { // a tenth of a second
		f.KPIs = statistics.All(sums, f.Policies, f.Read)
	}
	if counts, err := s.store.DeadLetterCounts(ctx, journal.DeadLetterFilter{State: deadletter.AllStates}); err == nil {
		f.DeadLetters = counts
	}
	if f.Due == nil {
		f.Due = map[string][]deadletter.Count{}
	}
	for within, span := range metrics.DueWithin() {
		soon := journal.DeadLetterFilter{DueSince: f.Read, DueUntil: f.Read.Add(span)}
		if due, err := s.store.DeadLetterCounts(ctx, soon); err == nil {
			f.Due[within] = due
		}
	}
	if pending, err := s.store.Backlog(ctx); err == nil {
		f.Pending = pending
	}
	if waiting, err := s.notices.Waiting(ctx, s.store); err == nil {
		f.Notices = waiting
	}
	s.health.update(func(h *console.Health) { h.Notices, h.KPIs, h.Backlog = f.Notices, f.KPIs, f.Pending })
	if destinations, err := s.gates.Destinations(); err == nil {
		f.Destinations = destinations
		for i := range destinations {
			destinations[i].Name = s.destinationLabel(destinations[i].Name)
		}
	}
	s.metrics.Show(f)
	return gaugePause
}

func (s *service) logHead(ctx context.Context) time.Duration {
	head, err := s.store.Head(ctx)
	if err != nil {
		s.log.Warn("the ledger's head could not be read", zap.Error(err))
		return headPause
	}
	s.log.Info("ledger head, for `retry-worker audit verify --head`", zap.String("event", "ledger_head"),
		zap.Stringer("head", head), zap.Int64("records", head.Record))
	return headPause
}

// purge deletes records older than RETENTION, unless that is refused until the clock is right or a person confirms it.
func (s *service) purge(ctx context.Context) time.Duration {
	if teams := s.catalogue().Untold(); len(teams) > 0 {
		s.log.Warn("nobody is told of the dead letters of some teams: give them an address in the policies file",
			zap.String("event", "nobody_told"), zap.Any("teams", teams))
	}
	if s.settings.Retention <= 0 {
		return purgePause // no retention is set
	}
	deleted, note := 0, ""
	mine, err := s.store.Lease(ctx, purgeLease, s.settings.WorkerName, purgePause/2)
	if mine {
		deleted, err = s.memory.Purge(ctx, s.store, s.settings.Retention, false)
	}
	switch {
	case errors.Is(err, journal.ErrClockAhead):
		note = err.Error()
		s.log.Error(note, zap.String("event", "purge_refused"))
	case err != nil && ctx.Err() == nil:
		s.log.Warn("the purge of old records was interrupted and goes on with the next", zap.Error(err))
	}
	s.metrics.Readiness.Note(metrics.AboutPurge, note)
	if deleted > 0 {
		s.log.Info("old records purged, their digests stay", zap.Int("records", deleted),
			zap.Duration("retention", s.settings.Retention))
	}
	if note != "" {
		return purgeAgain
	}
	return purgePause
}
