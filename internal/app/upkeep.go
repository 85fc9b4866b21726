package app

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/metrics"
	"retry-worker/internal/statistics"
)

const (
	// gaugePause is the time between two readings of the gauges that come from the database.
	gaugePause = 15 * time.Second
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
func (s *service) upkeep(ctx, _ context.Context) {
	defer background(ctx, s.purgeDaily)()
	var head time.Time // when it is due
	figures := metrics.Figures{Due: map[string][]deadletter.Count{}}
	every(ctx, gaugePause, func(within context.Context) {
		s.readFigures(within, &figures)
		s.metrics.Show(&figures)
		if !time.Now().Before(head) {
			s.logHead(within)
			head = time.Now().Add(headPause)
		}
	})
}

// purgeDaily purges, and logs the teams that are not notified, until ctx ends.
func (s *service) purgeDaily(ctx, _ context.Context) {
	for ctx.Err() == nil {
		s.logUntold()
		pause := purgePause
		if s.purge(ctx) { // a person may confirm it meanwhile
			pause = purgeAgain
		}
		clock.Machine{}.Rest(ctx, pause)
	}
}

// learn updates the learner, and the dead letters' chances, until ctx ends. If reading fails, the last state holds;
// retry_worker_journal_up shows it.
func (s *service) learn(ctx, _ context.Context) {
	var weigh time.Time // when it is due
	every(ctx, learnPause, func(within context.Context) {
		err := s.learner.Refresh(within, s.clock.Now())
		if err == nil && !time.Now().Before(weigh) {
			var mine bool
			if mine, err = s.store.Lease(within, weighLease, s.settings.WorkerName, weighPause/2); mine {
				err = s.store.Weigh(within, s.learner.Probability)
			}
			weigh = time.Now().Add(weighPause)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Debug("outcomes could not be read; decisions go by what was learnt before", zap.Error(err))
		}
		s.findNew(within)
	})
}

// findNew counts and logs causes that are new or back, of which their teams are then notified (R34).
func (s *service) findNew(ctx context.Context) {
	found, err := statistics.FindNew(ctx, s.store, s.clock.Now())
	if err != nil && ctx.Err() == nil {
		s.log.Debug("causes that may be new could not be looked at; they are with the next reading", zap.Error(err))
	}
	for i := range found {
		c := &found[i]
		s.metrics.NewCause(c.Policy)
		s.log.Warn("a cause is new, or back", zap.String("event", "new_cause"), zap.String("policy", c.Policy),
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
func (s *service) readFigures(ctx context.Context, f *metrics.Figures) {
	f.Read, f.Policies = s.clock.Now(), s.policies().Names()
	if sums, err := s.store.Sums(ctx, statistics.FirstSlot(f.Read)); err == nil { // a tenth of a second
		f.KPIs = statistics.All(sums, f.Policies, f.Read)
	}
	if counts, err := s.store.DeadLetterCounts(ctx, journal.DeadLetterFilter{State: deadletter.AllStates}); err == nil {
		f.DeadLetters = counts
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
		s.health.untold(waiting)
	}
	if destinations, err := s.gates.Destinations(); err == nil {
		f.Destinations = destinations
		for i := range destinations {
			destinations[i].Name = s.destinationLabel(destinations[i].Name)
		}
	}
}

func (s *service) logHead(ctx context.Context) {
	head, err := s.store.Head(ctx)
	if err != nil {
		s.log.Warn("the ledger's head could not be read", zap.Error(err))
		return
	}
	s.log.Info("ledger head, for `retry-worker audit verify --head`", zap.String("event", "ledger_head"),
		zap.Stringer("head", head), zap.Int64("records", head.Record))
}

// logUntold logs the teams that are not notified of their dead letters.
func (s *service) logUntold() {
	if teams := s.catalogue().Untold(); len(teams) > 0 {
		s.log.Warn("nobody is told of the dead letters of some teams: give them an address in the policies file",
			zap.String("event", "nobody_told"), zap.Any("teams", teams))
	}
}

// purge deletes records older than RETENTION. It reports whether that is refused until the clock is right or a person
// confirms it.
func (s *service) purge(ctx context.Context) (refused bool) {
	if s.settings.Retention <= 0 {
		return false // no retention is set
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
	return note != ""
}
