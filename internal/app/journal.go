package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/journal"
	"retry-worker/internal/metrics"
	"retry-worker/internal/store"
)

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
		a.metrics.Readiness.NotReady(metrics.AboutJournal, "the journal is not open: "+err.Error())
		a.health.set(&a.health.shown.Journal, false)
		return err
	}
	a.store = s
	a.cleanups = append(a.cleanups, cleanup{"journal", func(context.Context) error { return s.Close() }})
	a.metrics.Readiness.Ready(metrics.AboutJournal)
	a.health.set(&a.health.shown.Journal, true)
	return nil
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

// journalHooks returns hooks that feed metrics, probes and log from the journal.
func (a *App) journalHooks() journal.Hooks {
	return journal.Hooks{
		Open: func(open bool, reason error) {
			a.health.set(&a.health.shown.Journal, open)
			if open {
				a.metrics.Readiness.Ready(metrics.AboutJournal)
				a.log.Info("the journal can be written again, jobs are taken again")
				return
			}
			a.metrics.Readiness.NotReady(metrics.AboutJournal, reason.Error())
			a.log.Error("the journal cannot be written: jobs go back as they came and none is taken until it can",
				zap.Error(reason))
		},
	}
}
