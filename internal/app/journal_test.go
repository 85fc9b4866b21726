package app_test

import (
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

// A database server that is not there yet is waited for: nothing is taken from the engine meanwhile.
func TestDatabaseServerThatIsNotThereYet(t *testing.T) {
	leavesNothing(t)
	g := gateway.New(t, gateway.Options{})
	g.AddJob(analyze("CLM-1-1", "TIMEOUT", 0))
	s := settings(t, g.Addr())
	s.DatabaseURL = "postgres://worker:canary-secret@" + testkit.Nowhere(t) + "/retries"
	r := serve(t, s)
	wait.Until(t, "tried again", func() bool {
		status, body := r.get(t, "/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "the journal is not open: ")
	})
	if polls := g.Polls(""); len(polls) != 0 {
		t.Errorf("%d polls without a journal", len(polls))
	}
	if !r.metric(t, "retry_worker_journal_up 0") {
		t.Error("retry_worker_journal_up is not 0")
	}
	if _, body := r.get(t, "/metrics"); strings.Contains(body, "\nretry_worker_engine_up ") {
		t.Error("retry_worker_engine_up is known, though nobody has asked the engine")
	}
	if _, body := r.get(t, "/readyz"); strings.Contains(body+logged.String(), "canary-secret") {
		t.Errorf("the password is shown: %s%s", body, logged)
	}
	r.stop()
	r.returned(t, 5*time.Second)
}

// A clock that went five years ahead purges nothing, whatever was decided by it before a restart, until a person confirms it.
func TestPurgeWaitsForAPerson(t *testing.T) {
	leavesNothing(t)
	g := gateway.New(t, gateway.Options{})
	answerAtOnce(g)
	s := settings(t, g.Addr())
	write := func(do func(store.Store) error) {
		t.Helper()
		db, err := store.Open(t.Context(), s.DatabaseURL)
		testkit.Must(t, err)
		testkit.Must(t, errors.Join(do(db), db.Close()))
	}
	write(func(db store.Store) error {
		return db.Transact(t.Context(), nil, func(head journal.Head, _ []journal.History) *journal.Changes {
			return journal.RebuildStep(head, time.Now().AddDate(-5, 0, 0), false, nil) // any record
		})
	})
	for _, claim := range []string{"CLM-1-1", "CLM-2-1"} {
		key := g.AddJob(analyze(claim, "TIMEOUT", 0))
		r := serve(t, s)
		wait.Until(t, "a job is decided and the purge refused", func() bool {
			j, _ := g.Job(key)
			return j.State == gateway.Completed && r.metric(t, "retry_worker_purge_refused 1")
		})
		if status, body := r.get(t, "/readyz"); status != http.StatusOK || !strings.Contains(body, "\n"+journal.ErrClockAhead.Error()) {
			t.Errorf("/readyz says %d %q", status, body)
		}
		if lines := logged.with(t, "event", "purge_refused"); len(lines) != 1 {
			t.Errorf("the log says %v", lines)
		}
		r.stop()
		r.returned(t, 5*time.Second)
	}
	write(func(db store.Store) error {
		n, err := journal.New(db, time.Now, nil, journal.NoHooks()).Purge(t.Context(), db, s.Retention, true)
		if n != 1 {
			t.Errorf("%d records are purged once that is confirmed, want the one that is old", n)
		}
		return err
	})
}

// A record that cannot be read refuses its subject, in words of its own; the worker starts, and others go on.
func TestRecordThatCannotBeRead(t *testing.T) {
	leavesNothing(t)
	g := gateway.New(t, gateway.Options{})
	answerAtOnce(g)
	s := settings(t, g.Addr())
	first := g.AddJob(analyze("CLM-2-1", "TIMEOUT", 0))
	r := serve(t, s)
	wait.Until(t, "decided", func() bool { j, _ := g.Job(first); return j.State == gateway.Completed })
	r.stop()
	r.returned(t, 5*time.Second)
	db, err := sql.Open("sqlite", strings.TrimPrefix(s.DatabaseURL, "sqlite:"))
	testkit.Must(t, err)
	_, err = db.Exec("UPDATE records SET body = '{' WHERE subject = (SELECT key FROM subjects WHERE id = 'CLM-2-1')")
	testkit.Must(t, errors.Join(err, db.Close()))
	refused, other := g.AddJob(analyze("CLM-2-1", "TIMEOUT", 1)), g.AddJob(analyze("CLM-3-1", "TIMEOUT", 0))
	r = serve(t, s)
	wait.Until(t, "one is refused, the other decided", func() bool {
		j, _ := g.Job(refused)
		o, _ := g.Job(other)
		return j.State == gateway.Incident && o.State == gateway.Completed
	})
	j, _ := g.Job(refused)
	for _, want := range []string{"what the journal remembers of it is ", "unreadable", "`retry-worker audit verify`", "; restore the journal and resolve the incident"} {
		if !strings.Contains(j.Answers[0].Message, want) {
			t.Errorf("the incident says %q, without %q", j.Answers[0].Message, want)
		}
	}
	if !r.metric(t, "retry_worker_journal_up 1") {
		t.Error("the journal is down for all")
	}
	for _, action := range []string{"completed", "failed"} {
		line := fmt.Sprintf(`retry_worker_jobs_total{action=%q,job_type="analyze-retry"} 1`, action)
		wait.Until(t, line, func() bool { return r.metric(t, line) })
	}
}
