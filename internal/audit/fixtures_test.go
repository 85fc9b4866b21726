package audit_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// begin is when the first failure of every test is decided.
var begin = time.Date(2026, 3, 2, 10, 0, 0, 450*int(time.Millisecond), time.UTC)

// writer is a journal to which the test says what happened.
type writer struct {
	*testkit.Fixture
	t testing.TB
}

func write(t testing.TB) *writer {
	t.Helper()
	policies := decisiontest.Policies()
	policies[decision.DefaultPolicy].Catalogue = "3f9a1c77d0e2"
	return &writer{testkit.New(t, testkit.At(begin), testkit.By(policies)), t}
}

// fails records a failure of 1.5 ms ago; below 0, count says nothing of the retries.
func (w *writer) fails(id, text string, count int) {
	w.t.Helper()
	a := w.Analysis(decision.DefaultPolicy, id, text, count)
	a.ReceivedAt = w.Now().Add(-1500 * time.Microsecond)
	_, err := w.Journal.Analyze(w.t.Context(), a)
	testkit.Must(w.t, err)
}

// fail records failures of n claims, CLM-1-1 first.
func (w *writer) fail(n int) {
	w.t.Helper()
	for i := range n {
		w.fails(fmt.Sprintf("CLM-1-%d", i+1), "TIMEOUT", -1)
	}
}

func (w *writer) succeeds(id string) { w.Succeed(decision.DefaultPolicy, id) }

func (w *writer) rejects() {
	w.t.Helper()
	r := &decision.Rejection{Code: decision.InvalidClaimID, Variable: "claimId", Found: `"=1+1" (text)`, Expected: "text that matches ^CLM-.*-\\d+$"}
	err := w.Journal.Reject(w.t.Context(), &journal.RejectedJob{Subject: journal.Subject{Tenant: journal.DefaultTenant}, Rule: decision.RNBIL005, JobKey: 7, Rejection: r})
	testkit.Must(w.t, err)
}

func subject(id string) journal.Subject {
	return testkit.Subject(decision.DefaultPolicy, id)
}

// edited is an archive with changed records, or with an earlier end.
type edited struct {
	*testkit.Memory
	edit func(r *journal.Entry)
	last int64
}

func (e *edited) Head(ctx context.Context) (journal.Head, error) {
	h, err := e.Memory.Head(ctx)
	if e.last > 0 {
		h.Record = e.last
	}
	return h, err
}

func (e *edited) Records(ctx context.Context, f journal.RecordFilter, after int64, limit int) ([]journal.Entry, error) {
	all, err := e.Memory.Records(ctx, f, after, limit)
	for i := range all {
		if e.edit != nil {
			e.edit(&all[i])
		}
	}
	return all, err
}

// recordAt returns the record with that number.
func recordAt(t *testing.T, a journal.Reader, n int64) *journal.Entry {
	t.Helper()
	all, err := a.Records(t.Context(), journal.RecordFilter{}, n-1, 1)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return &all[0]
}
