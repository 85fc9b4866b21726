package review_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
	"retry-worker/internal/testkit"
)

// world is a journal in memory and the service over it, in a bubble of testing/synctest.
type world struct {
	*testkit.Memory
	*review.Service
	t       *testing.T
	journal *journal.Journal

	mu       sync.Mutex
	policies decision.Policies
	up       time.Time // since when the engine answers
	jobs     int64     // keys given
}

// play runs a test where time is fake.
func play(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{Memory: testkit.NewMemory(), t: t, policies: catalogue.Default().Policies, up: time.Now()}
		w.journal = testkit.StartJournal(t, w.Memory, time.Now)
		w.Service = review.New(w.Memory, w.journal, w.inForce, time.Now, w.engineUp)
		test(w)
	})
}

func (w *world) inForce() decision.Policies {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.policies
}

func (w *world) engineUp() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.up
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// fail analyses one failure of a subject, as a job does.
func (w *world) fail(policy, id string, v decision.Variables) journal.Recorded {
	w.t.Helper()
	p := w.policies[policy]
	v.ID = decision.Text(id)
	f, rejection := p.Read(v)
	if rejection != nil {
		w.t.Fatal(rejection)
	}
	w.jobs++
	a := &journal.Analysis{Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: policy, ID: id}, JobKey: w.jobs, ElementInstanceKey: w.jobs,
		ProcessInstanceKey: 7, Rule: decision.RNBIL005, Policy: p, Failure: &f, Error: f.Error, ReceivedAt: time.Now()}
	a.Identity = journal.IdentityOf(a)
	r, err := w.journal.Analyze(w.t.Context(), a)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// die makes a dead letter: the failure after that many retries.
func (w *world) die(policy, id string, retries int, text string) string {
	w.t.Helper()
	r := w.fail(policy, id, decision.Variables{RetryCount: decision.Value(strconv.Itoa(retries)), Error: decision.Text(text)})
	if r.Attempt == nil || r.Attempt.DeadLetter == "" {
		w.t.Fatalf("%s %s lives on: %+v", policy, id, r.Decision)
	}
	return r.Attempt.DeadLetter
}

// wait brings the job by which the process of a dead letter waits.
func (w *world) wait(id string) {
	w.t.Helper()
	w.jobs++
	if _, err := w.journal.ReviewSeen(w.t.Context(), &journal.ReviewJob{Subject: w.item(id).Subject, DeadLetter: id, JobKey: w.jobs}); err != nil {
		w.t.Fatal(err)
	}
}

// dead is a dead letter whose process waits.
func (w *world) dead(policy, id string, retries int, text string) string {
	w.t.Helper()
	letter := w.die(policy, id, retries, text)
	w.wait(letter)
	return letter
}

func (w *world) item(id string) review.Item {
	w.t.Helper()
	d, err := w.Show(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return d
}

// answers are what is on its way to processes.
func (w *world) answers() []*journal.Answer {
	w.t.Helper()
	var all []*journal.Answer
	for _, m := range w.Outbox() {
		a, err := journal.ReadAnswer(&m)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, a)
	}
	return all
}

func (w *world) retry(c review.Command) (review.Decided, error) {
	if c.Reason == "" {
		c.Reason = "portal de volta"
	}
	if c.By == "" {
		c.By = "maria"
	}
	return w.Service.Retry(context.Background(), c)
}

// wantRefusal fails unless err is a refusal with that code.
func wantRefusal(t *testing.T, what string, err error, code review.Code) *review.Refusal {
	t.Helper()
	r := review.Refused(err)
	if r == nil {
		t.Fatalf("%s: %v, want the refusal %s", what, err, code)
	}
	if r.Code != code || r.Message == "" {
		t.Errorf("%s: refused as %s (%q), want %s", what, r.Code, r.Message, code)
	}
	return r
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, fmt.Sprint(got), fmt.Sprint(want))
	}
}
