package audit_test

import (
	"context"
	"fmt"
	"slices"
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
	// first has it write as a worker of the first version, which kept neither catalogue nor matched text.
	first bool
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
	if w.first {
		p.Catalogue, f.Match.Text = "", ""
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
	if err != nil {
		w.t.Fatal(err)
	}
}

func subject(id string) journal.Subject {
	return journal.Subject{Tenant: journal.DefaultTenant, Policy: decision.DefaultPolicy, ID: id}
}

// ledger is a journal's archive as plain slices, which a test may break.
type ledger struct {
	head    journal.Head
	links   []journal.Link
	records []journal.Record
	// meanwhile is called after records behind the first were read; it must not read itself.
	meanwhile func()
	// unreadable is a record that cannot be read.
	unreadable int64
	mu         sync.Mutex
}

// copied is all that an archive holds.
func copied(t testing.TB, a journal.Archive) *ledger {
	t.Helper()
	l := &ledger{}
	var err error
	if l.head, err = a.Head(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l.links, err = a.Links(t.Context(), 0, 1_000_000); err != nil {
		t.Fatal(err)
	}
	if l.records, err = a.Records(t.Context(), journal.RecordFilter{}, 0, 1_000_000); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *ledger) Head(ctx context.Context) (journal.Head, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.head, ctx.Err()
}

func (l *ledger) Links(ctx context.Context, after int64, limit int) ([]journal.Link, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []journal.Link
	for _, link := range l.links {
		if link.Number > after && len(all) < limit {
			all = append(all, link)
		}
	}
	return all, ctx.Err()
}

func (l *ledger) Records(ctx context.Context, _ journal.RecordFilter, after int64, limit int) ([]journal.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []journal.Record
	for _, r := range l.records {
		if numberOf(r) > after && len(all) < limit {
			if l.unreadable != 0 && numberOf(r) == l.unreadable {
				return nil, &journal.StoreError{Err: fmt.Errorf("a column holds what it cannot")}
			}
			all = append(all, r)
		}
	}
	if after > 0 && l.meanwhile != nil {
		l.meanwhile()
	}
	return all, ctx.Err()
}

func numberOf(r journal.Record) int64 {
	if r.Attempt != nil {
		return r.Attempt.Record
	}
	return r.Entry.Record
}

// drop forgets records.
func (l *ledger) drop(numbers ...int64) {
	l.records = slices.DeleteFunc(l.records, func(r journal.Record) bool { return slices.Contains(numbers, numberOf(r)) })
}

// at is a copy of a record that may be changed; it takes the old one's place.
func (l *ledger) at(n int64) *journal.Record {
	for i := range l.records {
		if r := &l.records[i]; numberOf(*r) == n {
			if r.Attempt != nil {
				r.Attempt = new(*r.Attempt)
			} else {
				r.Entry = new(*r.Entry)
			}
			return r
		}
	}
	return nil
}
