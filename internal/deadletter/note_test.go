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

// TestWhatCannotBeCarriedOutIsUndoneByNobody: a retry that was asked for is refused when it comes due, as its policy is gone by then.
// The audit does not say that the person took it back.
func TestWhatCannotBeCarriedOutIsUndoneByNobody(t *testing.T) {
	f := testkit.New(t, testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)))
	id := f.DieWaiting("tiss-submission", "CLM-1-1", badPassword, 0)
	_, err := f.DeadLetters.Note(t.Context(), deadletter.Command{ID: id, Reason: "portal de volta", By: "ana"}, journal.RetryLater)
	testkit.Must(t, err)
	f.SetPolicies(nil)
	f.Advance(journal.UndoFor)
	testkit.Must(t, f.DeadLetters.DecideDue(t.Context(), f.Store))
	told, _, err := f.Memory.Story(t.Context(), testkit.Subject("tiss-submission", "CLM-1-1"))
	testkit.Must(t, err)
	for _, says := range []string{`"note":"undo"`, `"by":"retry-worker"`, "no longer in the catalogue"} {
		if last := told.Entries[len(told.Entries)-1]; !strings.Contains(last.Body, says) {
			t.Errorf("the audit says %s, want %s in it", last.Body, says)
		}
	}
}

// TestDecisionOfAWrongClock: it is carried out soon, though its clock was hours ahead and has been put right.
func TestDecisionOfAWrongClock(t *testing.T) {
	for ahead, want := range map[time.Duration]journal.DeadLetterState{
		time.Minute: journal.DeadLetterOpen, 5 * time.Hour: journal.DeadLetterDiscarded,
	} {
		f := testkit.New(t, testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)))
		id := f.DieWaiting("tiss-submission", "CLM-1-1", badPassword, 0)
		_, err := f.DeadLetters.Note(t.Context(), deadletter.Command{ID: id, Reason: "paga em mãos", By: "ana"}, journal.DiscardLater)
		testkit.Must(t, err)
		f.Advance(-ahead)
		testkit.Must(t, f.DeadLetters.DecideDue(t.Context(), f.Store))
		if d := f.Item(id); d.State != want {
			t.Errorf("behind a clock %s ahead it is %s, want %s", ahead, d.State, want)
		}
	}
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
