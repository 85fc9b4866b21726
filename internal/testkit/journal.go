package testkit

import (
	"context"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/journal"
)

// StartJournal runs a journal over store until the test ends. now is its clock.
func StartJournal(t testing.TB, store journal.Store, now func() time.Time) *journal.Journal {
	t.Helper()
	j := journal.New(store, now, nil, journal.NoHooks())
	RunJournal(t, j)
	return j
}

// RunJournal runs a journal until the test ends.
func RunJournal(t testing.TB, j *journal.Journal) {
	untilEnd(t, func(stop context.Context) { j.Run(stop, context.Background()) })
}

// untilEnd runs a function until the test ends, and waits for it.
func untilEnd(t testing.TB, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}
