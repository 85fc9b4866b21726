package audit_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// clock of a journal; the test moves it on.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// begin is when every test's first failure is decided.
var begin = time.Date(2026, 3, 2, 10, 0, 0, 450*int(time.Millisecond), time.UTC)

// writer tells a journal what happened.
type writer struct {
	*journal.Journal
	*clock
	t    testing.TB
	jobs int64
}

func write(t testing.TB, store journal.Store) *writer {
	t.Helper()
	c := &clock{now: begin}
	return &writer{Journal: testkit.StartJournal(t, store, c.Now), clock: c, t: t}
}

// fails tells that a claim failed; nothing is said of the retries made where count is below 0.
func (w *writer) fails(id, text string, count int) {
	w.t.Helper()
	p := decisiontest.TISSSubmission()
	p.Catalogue = "3f9a1c77d0e2"
	v := decision.Variables{ID: decision.Text(id), Error: decision.Text(text)}
	if count >= 0 {
		v.RetryCount = decision.Value(fmt.Sprint(count))
	}
	f, rejection := p.Read(v)
	if rejection != nil {
		w.t.Fatal(rejection)
	}
	w.jobs++
	a := &journal.Analysis{
		Subject: subject(id), JobKey: 9007199254740993 + w.jobs, ElementInstanceKey: 2, ProcessInstanceKey: 3, Rule: decision.RNBIL005,
		Policy: p, Failure: &f, Error: text, ReceivedAt: w.Now().Add(-1500 * time.Microsecond),
	}
	a.Identity = journal.IdentityOf(a)
	if _, err := w.Analyze(w.t.Context(), a); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) succeeds(id string) {
	w.t.Helper()
	if _, err := w.Conclude(w.t.Context(), &journal.Outcome{Subject: subject(id), Success: true}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) rejects() {
	w.t.Helper()
	r := &decision.Rejection{Code: decision.InvalidClaimID, Variable: "claimId", Found: `"=1+1" (text)`, Expected: "text that matches ^CLM-.*-\\d+$"}
	err := w.Reject(w.t.Context(), &journal.Refusal{Subject: journal.Subject{Tenant: journal.DefaultTenant}, Rule: decision.RNBIL005, JobKey: 7, Rejection: r})
	testkit.Must(w.t, err)
}

func subject(id string) journal.Subject {
	return journal.Subject{Tenant: journal.DefaultTenant, Policy: decision.DefaultPolicy, ID: id}
}

// edited is an archive in which somebody changed records, or that ends earlier.
type edited struct {
	*testkit.Memory
	edit func(r *journal.Record)
	last int64
}

func (e *edited) Head(ctx context.Context) (journal.Head, error) {
	h, err := e.Memory.Head(ctx)
	if e.last > 0 {
		h.Record = e.last
	}
	return h, err
}

func (e *edited) Records(ctx context.Context, f journal.RecordFilter, after int64, limit int) ([]journal.Record, error) {
	all, err := e.Memory.Records(ctx, f, after, limit)
	for i := range all {
		if e.edit != nil {
			e.edit(&all[i])
		}
	}
	return all, err
}

// recordAt is the record with that number.
func recordAt(t *testing.T, a journal.Archive, n int64) *journal.Record {
	t.Helper()
	all, err := a.Records(t.Context(), journal.RecordFilter{}, n-1, 1)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return &all[0]
}
