package pages_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
	"retry-worker/internal/testkit"
)

// world is a journal with a clock of its own, and people who decide on what it gives up.
type world struct {
	*testkit.Memory
	t       *testing.T
	journal *journal.Journal

	mu       sync.Mutex
	at       time.Time
	keys     int64
	backlog  map[string]int64
	engineUp time.Time
}

func newWorld(t *testing.T, at time.Time) *world {
	w := &world{Memory: testkit.NewMemory(), t: t, at: at, keys: 2251799813685300, engineUp: at}
	w.journal = testkit.StartJournal(t, w.Memory, w.now)
	return w
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

func (w *world) goTo(t time.Time) { w.pass(t.Sub(w.now())) }

// fails has a subject fail once, in the same process, and returns what was decided.
func (w *world) fails(policy, id, text string) *journal.Attempt {
	w.t.Helper()
	p := catalogue.Default().Policies[policy]
	v := decision.Variables{ID: decision.Text(id), Error: decision.Text(text)}
	if p.Own != nil {
		v.MaxAttempts, v.Delay = "3", decision.Text("PT30S")
	}
	f, rejection := p.Read(v)
	if rejection != nil {
		w.t.Fatal(rejection)
	}
	w.keys += 13
	s := journal.Subject{Tenant: journal.DefaultTenant, Policy: policy, ID: id}
	process := int64(2251799813600000 + len(id)*37)
	a := &journal.Analysis{Subject: s, JobKey: w.keys, ElementInstanceKey: w.keys + 1, ProcessInstanceKey: process, Rule: decision.RNBIL005,
		Policy: p, Failure: &f, Error: text, ReceivedAt: w.now().Add(-3 * time.Millisecond)}
	a.Identity = journal.IdentityOf(a)
	r, err := w.journal.Analyze(w.t.Context(), a)
	if err != nil {
		w.t.Fatal(err)
	}
	w.journal.Answered(&r)
	return r.Attempt
}

// failsUntilDead has it fail again whenever its retry comes.
func (w *world) failsUntilDead(policy, id, text string) *journal.Attempt {
	w.t.Helper()
	for {
		a := w.fails(policy, id, text)
		if !a.Decision.ShouldRetry() {
			return a
		}
		w.goTo(a.Decision.NextRetryTime.Add(4 * time.Second))
	}
}

func (w *world) succeeds(policy, id string) {
	w.t.Helper()
	if _, err := w.journal.Conclude(w.t.Context(), &journal.Outcome{Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: policy, ID: id}, Success: true}); err != nil {
		w.t.Fatal(err)
	}
}

// awaits has the process of a dead letter come to its review task.
func (w *world) awaits(id string) {
	w.t.Helper()
	item, found, err := w.DeadLetter(w.t.Context(), id)
	if err != nil || !found {
		w.t.Fatal("no dead letter ", id, err)
	}
	w.keys++
	if _, err := w.journal.ReviewSeen(w.t.Context(), &journal.ReviewJob{Subject: item.Subject, DeadLetter: id, JobKey: w.keys}); err != nil {
		w.t.Fatal(err)
	}
}

// deliver has the processes take, or miss, what was decided.
func (w *world) deliver(taken bool) {
	w.t.Helper()
	for _, m := range w.Outbox() {
		a, err := journal.ReadAnswer(&m)
		if err != nil {
			w.t.Fatal(err)
		}
		if err := w.journal.Delivered(w.t.Context(), a, taken); err != nil {
			w.t.Fatal(err)
		}
	}
}

// reviewer is the real service over this world.
func (w *world) reviewer() *review.Service {
	return review.New(w, w.journal, func() decision.Policies { return catalogue.Default().Policies }, w.now, func() time.Time { return w.engineUp })
}

// items are all dead letters, the newest first.
func (w *world) items() (all []journal.DeadLetterItem) {
	for cursor := ""; ; {
		page, next, err := w.DeadLetterPage(context.Background(), journal.DeadLetterFilter{State: journal.AllDeadLetters}, cursor, 200)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, page...)
		if cursor = next; next == "" {
			return all
		}
	}
}

func (w *world) Backlog(context.Context) (map[string]int64, error) { return w.backlog, nil }

// hostile is an error text that would like to act.
const hostile = "<script>alert(1)</script>\x1b[31mred\x1b[0m \u202Eevil\u200b \"'><img src=x onerror=alert(2)> {{.Secret}} \x00end"

// subjects of the sample.
const (
	deadID      = "CLM-2026-004711"
	permanentID = "CLM-2026-004802"
	waitingID   = "CLM-2026-004900"
	longStoryID = "CLM-2026-004650"
	hostileID   = "msg/<b>7</b>?x=1#y&z \"q\" é"
)

// sample is a worker's week, up to the instant now.
func sample(t *testing.T, now time.Time) *world {
	w := newWorld(t, now.Add(-80*time.Hour))
	const tiss = "tiss-submission"
	// A claim that a person sent again after three days, and that went through then.
	w.failsUntilDead(tiss, longStoryID, "Timeout waiting for https://portal.operadora.example/tiss: read timed out after 30000 ms")
	long := w.items()[0].ID
	w.awaits(long)
	w.goTo(now.Add(-6 * time.Hour))
	if _, err := w.reviewer().Retry(t.Context(), review.Command{ID: long, Reason: "Portal da operadora voltou; combinado com ela por telefone.", By: "marta.lima", Force: true, When: review.Now}); err != nil {
		t.Fatal(err)
	}
	w.deliver(true)
	w.pass(40 * time.Second)
	w.succeeds(tiss, longStoryID)
	// A day with its failures, of which most recover.
	w.goTo(now.Add(-5 * time.Hour))
	for i := range 24 {
		id := "CLM-2026-0040" + strconv.Itoa(10+i)
		w.fails(tiss, id, []string{"HTTP 503 Service Unavailable", "connection reset by peer", "SocketTimeoutException"}[i%3])
		w.pass(7 * time.Minute)
		if i%4 != 3 {
			w.succeeds(tiss, id)
		}
	}
	w.goTo(now.Add(-125 * time.Minute))
	for i, text := range []string{"AUTHORIZATION_DENIED: senha vencida", "INVALID_PATIENT_DATA: carteira não confere", "LoginInvalido: usuário bloqueado", "INSURANCE_EXPIRED", "DUPLICATE_CLAIM protocolo já utilizado"} {
		for n := range 5 - i {
			w.fails(tiss, "CLM-2026-0048"+strconv.Itoa(10+i*10+n), text)
			w.pass(time.Minute)
		}
	}
	w.fails(tiss, permanentID, "INVALID_PATIENT_DATA: número da carteira não confere com o cadastro da operadora")
	w.failsUntilDead("whatsapp-message", "wamid.HBgN-4471", "HTTP 500 Internal Server Error")
	w.fails("whatsapp-message", hostileID, "recipient does not exist 404 "+hostile)
	w.fails("no-retry", hostileID, hostile)
	w.failsUntilDead("job-queue", "import-lote-2219", "database is locked")
	for i, item := range w.items() {
		if item.State == journal.DeadLetterOpen && i%5 != 2 {
			w.awaits(item.ID)
		}
	}
	w.goTo(now.Add(-13 * time.Minute))
	w.fails(tiss, waitingID, "Connection refused by 10.20.0.7:443")
	w.goTo(now)
	return w
}

// sampleDead has a claim that has just used up its retries, on top of the sample.
func sampleDead(t *testing.T, now time.Time) *world {
	w := sample(t, now.Add(-190*time.Minute))
	w.failsUntilDead("tiss-submission", deadID, "HTTP 504 Gateway Timeout em /tissLoteGuias")
	if w.now().After(now) {
		t.Fatal("the ladder took longer than the sample gives it")
	}
	w.awaits(w.items()[0].ID)
	w.goTo(now.Add(-2*time.Minute - 20*time.Second))
	w.fails("tiss-submission", "CLM-2026-004901", "Connection refused by 10.20.0.7:443")
	w.goTo(now)
	return w
}
