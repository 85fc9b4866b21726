package app

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/metrics"
	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
)

const (
	// gaugePause is the time between two readings of the gauges that come from the database.
	gaugePause = 15 * time.Second
	// kpiShare bounds the share of time spent on reading a week's figures, to one part in so many. A full reading takes
	// a tenth of a second.
	kpiShare = 100
	// learnPause is the time between two readings of outcomes to learn from.
	learnPause = time.Minute
	// weighPause is the time between two updates of the dead letters' chances. weighLease keeps replicas from doing
	// that at the same time.
	weighPause = time.Hour
	weighLease = "chances"
	// headPause is the time between two log lines of the ledger's head. A truncated or rewritten ledger contradicts
	// each of them.
	headPause = time.Hour
	// purgePause is the time between two purges, and between two log lines of the teams that are not notified;
	// purgeAgain the one after a purge that was refused.
	purgePause = 24 * time.Hour
	purgeAgain = time.Hour
	// upkeepTime bounds one reading.
	upkeepTime = 30 * time.Second
	// purgeLease keeps replicas from purging at the same time. The next purge continues an interrupted one.
	purgeLease = "purge"
)

// upkeep does the recurring tasks until ctx ends. The gauges do not wait for a purge, which may take hours.
func (a *App) upkeep(ctx context.Context, memory *journal.Journal, gates *gate.Gates, notices *notify.Sink) {
	defer a.background(ctx, func(ends context.Context) { a.purgeDaily(ends, memory) })()
	var kpis, head time.Time // when each is due
	figures := metrics.Figures{Due: map[string][]deadletter.Count{}}
	every(ctx, gaugePause, func(within context.Context) {
		now := time.Now()
		a.readFigures(within, gates, notices, &figures)
		if !now.Before(kpis) {
			a.readKPIs(within, &figures)
			kpis = now.Add(kpiShare * time.Since(now))
		}
		a.metrics.Show(&figures)
		if !now.Before(head) {
			a.logHead(within)
			head = now.Add(headPause)
		}
	})
}

// purgeDaily purges, and logs the teams that are not notified, until ctx ends.
func (a *App) purgeDaily(ctx context.Context, memory *journal.Journal) {
	for ctx.Err() == nil {
		a.logUntold()
		pause := purgePause
		if a.purge(ctx, memory) { // a person may confirm it meanwhile
			pause = purgeAgain
		}
		clock.Machine{}.Rest(ctx, pause)
	}
}

// learn updates the learner, and the dead letters' chances, until ctx ends. If reading fails, the last state holds;
// retry_worker_journal_up shows it.
func (a *App) learn(ctx context.Context, learner *statistics.Learner) {
	var weigh time.Time // when it is due
	every(ctx, learnPause, func(within context.Context) {
		err := learner.Refresh(within, a.clock.Now())
		if err == nil && !time.Now().Before(weigh) {
			var mine bool
			if mine, err = a.store.Lease(within, weighLease, a.settings.WorkerName, weighPause/2); mine {
				err = a.store.Weigh(within, learner.Probability)
			}
			weigh = time.Now().Add(weighPause)
		}
		if err != nil && ctx.Err() == nil {
			a.log.Debug("outcomes could not be read; decisions go by what was learnt before", zap.Error(err))
		}
		a.findNew(within)
	})
}

// findNew counts and logs causes that are new or back, of which their teams are then notified (R34).
func (a *App) findNew(ctx context.Context) {
	found, err := statistics.FindNew(ctx, a.store, a.clock.Now())
	if err != nil && ctx.Err() == nil {
		a.log.Debug("causes that may be new could not be looked at; they are with the next reading", zap.Error(err))
	}
	for i := range found {
		c := &found[i]
		a.metrics.NewCause(c.Policy)
		a.log.Warn("a cause is new, or back", zap.String("event", "new_cause"), zap.String("policy", c.Policy),
			zap.String("cause", c.ID), zap.String("reason", string(c.Reason)), zap.Int64("failures", c.News.Failures))
	}
}

// every calls read now and at each tick until ctx ends. One call gets upkeepTime.
func every(ctx context.Context, tick time.Duration, read func(within context.Context)) {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(ctx, upkeepTime)
		read(within)
		cancel()
		select {
		case <-ticks.C:
		case <-ctx.Done():
		}
	}
}

// readFigures reads the figures that are the same in every replica. If reading fails, the last value stays;
// retry_worker_journal_up shows it.
func (a *App) readFigures(ctx context.Context, gates *gate.Gates, notices *notify.Sink, f *metrics.Figures) {
	f.Read, f.Policies = a.clock.Now(), a.policies().Names()
	if counts, err := a.store.DeadLetterCounts(ctx, journal.DeadLetterFilter{State: deadletter.AllStates}); err == nil {
		f.DeadLetters = counts
	}
	for within, span := range metrics.DueWithin() {
		soon := journal.DeadLetterFilter{DueSince: f.Read, DueUntil: f.Read.Add(span)}
		if due, err := a.store.DeadLetterCounts(ctx, soon); err == nil {
			f.Due[within] = due
		}
	}
	if pending, err := a.store.Backlog(ctx); err == nil {
		f.Pending = pending
	}
	if waiting, err := notices.Waiting(ctx, a.store); err == nil {
		f.Notices = waiting
		a.health.untold(waiting)
	}
	if destinations, err := gates.Destinations(); err == nil {
		f.Destinations = destinations
		for i := range destinations {
			destinations[i].Name = a.destinationLabel(destinations[i].Name)
		}
	}
}

// readKPIs reads R19's figures; if that fails, the last ones stay.
func (a *App) readKPIs(ctx context.Context, f *metrics.Figures) {
	if sums, err := a.store.Sums(ctx, statistics.FirstSlot(f.Read)); err == nil {
		f.KPIs = statistics.All(sums, f.Policies, f.Read)
	}
}

func (a *App) logHead(ctx context.Context) {
	head, err := a.store.Head(ctx)
	if err != nil {
		a.log.Warn("the ledger's head could not be read", zap.Error(err))
		return
	}
	a.log.Info("ledger head, for `retry-worker audit verify --head`", zap.String("event", "ledger_head"),
		zap.Stringer("head", head), zap.Int64("records", head.Record))
}

// logUntold logs the teams that are not notified of their dead letters.
func (a *App) logUntold() {
	if teams := a.catalogue().Untold(); len(teams) > 0 {
		a.log.Warn("nobody is told of the dead letters of some teams: give them an address in the policies file",
			zap.String("event", "nobody_told"), zap.Any("teams", teams))
	}
}

// purge deletes records older than RETENTION. It reports whether that is refused until the clock is right or a person
// confirms it.
func (a *App) purge(ctx context.Context, memory *journal.Journal) (refused bool) {
	if a.settings.Retention <= 0 {
		return false // no retention is set
	}
	deleted, note := 0, ""
	mine, err := a.store.Lease(ctx, purgeLease, a.settings.WorkerName, purgePause/2)
	if mine {
		deleted, err = memory.Purge(ctx, a.store, a.settings.Retention, false)
	}
	switch {
	case errors.Is(err, journal.ErrClockAhead):
		note = err.Error()
		a.log.Error(note, zap.String("event", "purge_refused"))
	case err != nil && ctx.Err() == nil:
		a.log.Warn("the purge of old records was interrupted and goes on with the next", zap.Error(err))
	}
	a.metrics.Readiness.Note(metrics.AboutPurge, note)
	if deleted > 0 {
		a.log.Info("old records purged, their digests stay", zap.Int("records", deleted),
			zap.Duration("retention", a.settings.Retention))
	}
	return note != ""
}
