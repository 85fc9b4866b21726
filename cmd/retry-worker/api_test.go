package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// fixture is a worker's API with tokens over a journal and its services, which the commands find, as an operator.
type fixture struct {
	*testkit.Fixture
	t         *testing.T
	addr      string
	afterPlan func() // of a bulk run
}

// bulkRuns is the service of bulk runs; after it has planned one it calls the fixture's afterPlan.
type bulkRuns struct {
	*deadletter.Service
	*fixture
}

func (b bulkRuns) Plan(ctx context.Context, c journal.BulkCommand) (deadletter.Plan, error) {
	if b.afterPlan != nil {
		defer b.afterPlan()
	}
	return b.Service.Plan(ctx, c)
}

// open serves the API. Its instants stand still unless options say otherwise.
func open(t *testing.T, options ...testkit.Option) *fixture {
	t.Helper()
	options = append([]testkit.Option{testkit.At(time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC))}, options...)
	w := &fixture{Fixture: testkit.New(t, options...), t: t}
	served := api.New(api.Options{Gate: access.Options{Now: w.Now, Tokens: w.Tokens.Load}, Policies: w.Policies, Log: zap.NewNop()})
	to := w.Services()
	to.DeadLetters, to.Accounts = bulkRuns{w.DeadLetters, w}, served.Accounts
	served.Open(api.Journal{Reader: w.Store, Guard: guard.New(to)})
	server, err := served.Listen(net.Listen, "127.0.0.1:0", nil)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	w.addr = server.Addr()
	testkit.Environment(t, map[string]string{"RETRY_WORKER_HTTP_ADDR": w.addr, "COLUMNS": ""})
	w.as("otto")
	return w
}

// as has the commands show somebody's token.
func (w *fixture) as(name string) { w.t.Setenv(tokenVariable, w.Tokens.Secret(name)) }

// letter is a new dead letter's id; the process waits for a decision.
func (w *fixture) letter(claim, text string, retries int) string {
	w.t.Helper()
	return w.DieWaiting(decision.DefaultPolicy, claim, text, retries)
}

// openCauses is an admin's API with an ended run that discarded three, ten dead letters of one cause, two more of it that are
// at their limit, and one of another cause.
func openCauses(t *testing.T) *fixture {
	t.Helper()
	w := open(t)
	w.as("ada")
	for n := range 3 {
		w.DieWaiting("no-retry", fmt.Sprintf("lote-%d", n), "exit status 1", 0)
	}
	old := w.StartBulk(journal.BulkCommand{Action: journal.BulkDiscard, Filter: journal.DeadLetterFilter{Policy: "no-retry"}, Reason: "lote antigo", By: "ada", PerMinute: 600})
	w.DecideBulk(old, 3)
	w.Deliver(true)
	w.FinishBulk(old)
	for n := range 12 {
		w.letter(fmt.Sprintf("CLM-%03d-1", n), fmt.Sprintf("LoginInvalido: senha expirada em 2026-02-%02d", n+1), 1+n/10*4)
	}
	w.letter("CLM-900-1", "INVALID_PATIENT_DATA: sem nome", 0)
	w.Advance(90 * time.Minute)
	return w
}

// names are what stands in golden files for the ids of bulk runs, the oldest first, each followed by its id.
func (w *fixture) names() []string {
	runs := w.runs()
	slices.Reverse(runs)
	var names []string
	for n, run := range runs {
		names = append(names, runName(n+1), run.ID)
	}
	return append(names, "ADDR", w.addr)
}

// runName stands for the id of the nth bulk run.
func runName(n int) string { return fmt.Sprintf("0198a0c0-0000-7000-8000-%012d", n) }

// runs are all of them, the newest first.
func (w *fixture) runs() []journal.BulkRun {
	w.t.Helper()
	runs, _, err := w.DeadLetters.Runs(w.t.Context(), "", 100)
	testkit.Must(w.t, err)
	return runs
}
