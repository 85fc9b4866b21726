package main

import (
	"bytes"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	_ "modernc.org/sqlite"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/store"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// auditBegin is when the audit of these tests begins.
var auditBegin = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// audited is a journal in a file of which every instant is known: a claim that recovers at its second retry, one that
// is given up, and a rejection, on 2 and 3 March 2026. The environment names it.
func audited(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal.db")
	t.Run("write", func(t *testing.T) { // the journal ends with it
		cryptotest.SetGlobalRandom(t, 1) // the key of identities and the records' salts are the same each time
		db, err := store.Open(t.Context(), "sqlite:"+path)
		testkit.Must(t, err)
		t.Cleanup(func() { testkit.Must(t, db.Close()) })
		var passed atomic.Int64
		now := func() time.Time { return auditBegin.Add(time.Duration(passed.Load())) }
		j := testkit.StartJournal(t, db, now)
		fails := func(id, text string, count int64) {
			t.Helper()
			p := decisiontest.TISSSubmission()
			f, rejection := p.Read(decision.Variables{ID: decision.Text(id), Error: decision.Text(text), RetryCount: decision.Value(fmt.Sprint(count))})
			if rejection != nil {
				t.Fatal(rejection)
			}
			a := &journal.Analysis{
				Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: p.Name, ID: id}, JobKey: 2251799813685250 + passed.Load(),
				ElementInstanceKey: 2251799813685300, ProcessInstanceKey: 2251799813685200, Rule: decision.RNBIL005, Policy: p, Failure: &f,
				Error: text, ReceivedAt: now().Add(-2 * time.Millisecond),
			}
			_, err := j.Analyze(t.Context(), a)
			testkit.Must(t, err)
		}
		fails("CLM-001-1", "TIMEOUT", 0)
		passed.Store(int64(6 * time.Minute))
		fails("CLM-001-1", "HTTP 503, =later", 1)
		passed.Store(int64(30 * time.Minute))
		_, err = j.Conclude(t.Context(), &journal.Outcome{Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: decision.DefaultPolicy, ID: "CLM-001-1"}, Success: true})
		testkit.Must(t, err)
		passed.Store(int64(14*time.Hour + 30*time.Minute))
		fails("CLM-002-1", "DUPLICATE_CLAIM", 0)
		err = j.Reject(t.Context(), &journal.RejectedJob{Subject: journal.Subject{Tenant: journal.DefaultTenant}, Rule: decision.RNBIL005, JobKey: 9,
			Rejection: &decision.Rejection{Code: decision.InvalidRetryCount, Variable: "retryCount", Found: "2.5", Expected: "a whole number"}})
		testkit.Must(t, err)
	})
	testkit.Environment(t, map[string]string{"RETRY_WORKER_DATABASE_URL": "sqlite:" + path})
	return path
}

// done is a run that did what it should, and says nothing on standard error.
func (r result) done(t *testing.T) result {
	t.Helper()
	if r.code != exitDone || r.stderr != "" {
		t.Errorf("exit %d, standard error %q, want 0 and nothing", r.code, r.stderr)
	}
	return r
}

// alter does to the file what the worker never does.
func alter(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	testkit.Must(t, err)
	for _, s := range statements {
		_, err = db.ExecContext(t.Context(), s)
		testkit.Must(t, err)
	}
	testkit.Must(t, db.Close())
}

// The line says how far a work is and how long it takes yet, no wider than the terminal, and leaves nothing behind.
func TestProgress(t *testing.T) {
	testkit.Environment(t, map[string]string{"COLUMNS": "30"})
	synctest.Test(t, func(t *testing.T) {
		var w strings.Builder
		p := &progress{w: &w, what: "records hold", began: time.Now()}
		p.show(0, 1000, 0)
		time.Sleep(50 * time.Millisecond)
		p.show(1, 1000, 1) // too soon
		time.Sleep(4 * time.Second)
		p.show(400, 1000, 380)
		p.end()
		if want := "\r0 records hold\x1b[K\r380 records hold, 40 %, 6s l…\x1b[K\r\x1b[K"; w.String() != want {
			t.Errorf("got  %q\nwant %q", w.String(), want)
		}
	})
	silent := &progress{}
	silent.show(1, 2, 1)
	silent.end()
}

// kpiAt runs the command at an instant.
func kpiAt(t *testing.T, format string, now time.Time) string {
	t.Helper()
	var out, errOut bytes.Buffer
	c := &cli{out: &checkedWriter{w: &out}, errOut: &errOut, format: format}
	if err := c.kpis(t.Context(), []string{decision.DefaultPolicy}, "", now); err != nil || errOut.Len() > 0 {
		t.Fatal(err, errOut.String())
	}
	return out.String()
}

func TestKPI(t *testing.T) {
	audited(t)
	later := auditBegin.Add(15 * time.Hour)
	golden.Check(t, "testdata/audit/kpi.txt", kpiAt(t, "text", later))
	golden.Check(t, "testdata/audit/kpi.json", kpiAt(t, "json", later))
	golden.Check(t, "testdata/audit/kpi-long-after.txt", kpiAt(t, "text", later.AddDate(1, 0, 0)))
}
