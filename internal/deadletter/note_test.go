package deadletter_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/store/sqlite"
	"retry-worker/internal/testkit"
)

// unreadable has a journal in a file with two dead letters, of which damage makes the first one unreadable.
func unreadable(t *testing.T, test func(f *fixture, letters []string, damage func())) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "journal.db")
		db, err := sqlite.Open(t.Context(), path)
		testkit.Must(t, err)
		t.Cleanup(func() { testkit.Must(t, db.Close()) })
		core, logs := observer.New(zap.InfoLevel)
		f := &fixture{Fixture: testkit.New(t, testkit.Over(db)), t: t, logs: logs, log: zap.New(core)}
		letters := f.die(0, 2, badPassword, 0)
		test(f, letters, func() {
			other, err := sql.Open("sqlite", "file:"+path)
			testkit.Must(t, err)
			defer func() { testkit.Must(t, other.Close()) }()
			_, err = other.ExecContext(t.Context(), "UPDATE dead_letters SET body = '7' WHERE id = ?", letters[0])
			testkit.Must(t, err)
		})
	})
}

// TestDecisionsBehindOneThatFails: they are carried out, and what fails is told, once.
func TestDecisionsBehindOneThatFails(t *testing.T) {
	unreadable(t, func(f *fixture, letters []string, damage func()) {
		for _, id := range letters {
			_, err := f.DeadLetters.Note(f.t.Context(), deadletter.Command{ID: id, Reason: "paga em mãos", By: "ana"}, journal.DiscardLater)
			testkit.Must(f.t, err)
		}
		damage()
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); f.DeadLetters.RunLater(ctx, f.Store, f.log) }()
		time.Sleep(journal.UndoFor + time.Minute)
		d, err := f.DeadLetters.Show(f.t.Context(), letters[1])
		testkit.Must(f.t, err)
		want(f.t, "the one behind", d.State, journal.DeadLetterDiscarded)
		told := f.logs.FilterMessageSnippet("decision").All()
		if len(told) != 1 || !strings.Contains(told[0].ContextMap()["error"].(string), letters[0]) {
			f.t.Errorf("it says %v, want once that %s cannot be discarded", told, letters[0])
		}
		stop()
		<-done
	})
}

// TestRunWithOneThatFails: a bulk run refuses a dead letter that cannot be read, and goes on to its end.
func TestRunWithOneThatFails(t *testing.T) {
	unreadable(t, func(f *fixture, letters []string, damage func()) {
		c := retryAll(journal.DeadLetterFilter{})
		c.Action, c.PerMinute = journal.BulkDiscard, 600
		run := f.StartBulk(c)
		damage()
		f.runner()
		f.within(time.Minute, "done", f.done(run))
		counts := f.state(run).Counts
		want(f.t, "decided", counts[journal.BulkDecided], 1)
		want(f.t, "refused", counts[journal.BulkRefused], 1)
	})
}
