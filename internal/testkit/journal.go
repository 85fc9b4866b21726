package testkit

import (
	"context"
	"testing"
	"time"

	"retry-worker/internal/journal"
)

// StartJournal runs a journal over store until the test ends. now gives the instants of its decisions.
func StartJournal(t testing.TB, store journal.Store, now func() time.Time) *journal.Journal {
	t.Helper()
	j := journal.New(store, now, nil, journal.NoHooks())
	RunJournal(t, j)
	return j
}

// RunJournal runs a journal until the test ends.
func RunJournal(t testing.TB, j *journal.Journal) {
	stop, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		j.Run(stop, context.Background())
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}
