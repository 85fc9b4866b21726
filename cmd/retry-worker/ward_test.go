package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/console"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
	"retry-worker/internal/testkit"
)

// ward is a worker's API with tokens over a real journal and the real review; its instants are the same each time, and so
// are its ids.
type ward struct {
	t       *testing.T
	now     time.Time
	clock   func() time.Time
	store   shelf
	journal *journal.Journal
	addr    string
	secrets map[string]string
	flock   *flock
	jobs    int64
}

// shelf is a store, in memory or real.
type shelf interface {
	journal.Store
	console.Reader
	review.Letters
}

// openWard serves a flock's runs.
func openWard(t *testing.T) *ward {
	t.Helper()
	w := &ward{t: t, now: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), store: testkit.NewMemory()}
	w.clock = func() time.Time { return w.now }
	w.flock = newFlock(w.clock)
	w.journal = testkit.StartJournal(t, w.store, w.clock)
	w.serve(console.Journal{Groups: w.flock, Bulk: w.flock}, w.review(time.Time{}))
	return w
}

// review is people's part.
func (w *ward) review(engineUp time.Time) *review.Service {
	return review.New(w.store, w.journal, decisiontest.Policies, w.clock, func() time.Time { return engineUp })
}

// serve serves the API, and has the commands find it, as an operator.
func (w *ward) serve(m console.Journal, letters console.DeadLetters) {
	w.t.Helper()
	lines := ""
	w.secrets = map[string]string{}
	for name, role := range map[string]access.Role{"vera": access.Viewer, "otto": access.Operator, "ada": access.Admin} {
		secret, token, err := access.NewToken(name, role, time.Time{})
		if err != nil {
			w.t.Fatal(err)
		}
		w.secrets[name] = secret
		lines += token.Line() + "\n"
	}
	tokens, err := access.Parse("tokens", []byte(lines))
	if err != nil {
		w.t.Fatal(err)
	}
	api := console.New(console.Options{Now: w.clock, Policies: decisiontest.Policies, Tokens: func() *access.Tokens { return tokens }, Log: zap.NewNop()})
	m.Reader, m.Recorder, m.DeadLetters = w.store, w.journal, letters
	api.Open(m)
	server, err := api.Listen("127.0.0.1:0", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = server.Close(context.Background()) })
	w.addr = server.Addr()
	environment(w.t, map[string]string{"RETRY_WORKER_HTTP_ADDR": w.addr, "COLUMNS": "", tokenVariable: w.secrets["otto"]})
}

// letter is a new dead letter's id; the process waits for a decision.
func (w *ward) letter(claim, text string, retries int) string {
	w.t.Helper()
	p := decisiontest.TISSSubmission()
	f, rejection := p.Read(decision.Variables{ID: decision.Text(claim), Error: decision.Text(text), RetryCount: decision.Value(fmt.Sprint(retries))})
	if rejection != nil {
		w.t.Fatal(rejection)
	}
	w.jobs += 2
	a := &journal.Analysis{
		Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: p.Name, ID: claim}, JobKey: w.jobs, ElementInstanceKey: w.jobs,
		ProcessInstanceKey: 2251799813685000 + w.jobs, Rule: decision.RNBIL005, Policy: p, Failure: &f, Error: text, ReceivedAt: w.clock(),
	}
	a.Identity = journal.IdentityOf(a)
	if _, err := w.journal.Analyze(w.t.Context(), a); err != nil {
		w.t.Fatal(err)
	}
	story, _, err := w.store.Story(w.t.Context(), a.Subject)
	if err != nil || len(story.DeadLetters) == 0 {
		w.t.Fatalf("%q gave no dead letter (%v)", text, err)
	}
	id := story.DeadLetters[len(story.DeadLetters)-1].ID
	if _, err := w.journal.ReviewSeen(w.t.Context(), &journal.ReviewJob{Subject: a.Subject, DeadLetter: id, JobKey: w.jobs + 1}); err != nil {
		w.t.Fatal(err)
	}
	return id
}
