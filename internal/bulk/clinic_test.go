package bulk_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/bulk"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
	"retry-worker/internal/store/sqlite"
	"retry-worker/internal/testkit"
)

// keep is a store as all parts need it.
type keep interface {
	journal.Store
	journal.Reader
	journal.DeadLetterReader
	journal.BulkStore
	journal.Outbox
}

// clinic is a store, the journal over it, and what people and a runner do there.
type clinic struct {
	keep
	t       *testing.T
	journal *journal.Journal
	review  *review.Service
	bulk    *bulk.Service
	jobs    int64

	mu       sync.Mutex
	policies decision.Policies
	up       time.Time
}

// visit runs a test on each kind of store, in bubbles of testing/synctest.
func visit(t *testing.T, test func(c *clinic)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(newClinic(t, testkit.NewMemory())) })
	})
	t.Run("sqlite", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := db.Close(); err != nil {
					t.Error(err)
				}
			})
			test(newClinic(t, db))
		})
	})
}

func newClinic(t *testing.T, store keep) *clinic {
	c := &clinic{keep: store, t: t, policies: catalogue.Default().Policies, up: time.Now().Add(-time.Hour)}
	c.journal = testkit.StartJournal(t, store, time.Now)
	c.review = review.New(store, c.journal, c.inForce, time.Now, c.engineUp)
	c.bulk = bulk.New(store, c.journal, c.inForce, time.Now, c.engineUp)
	return c
}

func (c *clinic) inForce() decision.Policies {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.policies
}

func (c *clinic) engineUp() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.up
}

func (c *clinic) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// runner works until the function it returns is called: at once then, whatever it does.
func (c *clinic) runner() (kill func()) {
	stop, cancel := context.WithCancel(context.Background())
	w := bulk.NewRunner(c, c.review, c.journal, clock.Machine{}, c.engineUp, bulk.NoHooks(), zap.NewNop())
	var working sync.WaitGroup
	working.Go(func() { w.Run(stop, stop) })
	kill = func() { cancel(); working.Wait() }
	c.t.Cleanup(kill)
	return kill
}

const badPassword = "Senha incorreta para o usuario 4711"

// fail has a claim fail once.
func (c *clinic) fail(policy, id, text string, retries int) *journal.Attempt {
	c.t.Helper()
	p := catalogue.Default().Policies[policy]
	f, rejection := p.Read(decision.Variables{ID: decision.Text(id), RetryCount: decision.Value(strconv.Itoa(retries)), Error: decision.Text(text)})
	if rejection != nil {
		c.t.Fatal(rejection)
	}
	c.jobs++
	a := &journal.Analysis{Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: policy, ID: id}, JobKey: c.jobs, ElementInstanceKey: c.jobs,
		ProcessInstanceKey: 7, Rule: decision.RNBIL005, Policy: p, Failure: &f, Error: f.Error, ReceivedAt: time.Now()}
	a.Identity = journal.IdentityOf(a)
	r, err := c.journal.Analyze(c.t.Context(), a)
	if err != nil {
		c.t.Fatal(err)
	}
	return r.Attempt
}

// die has n claims die of a text; their processes wait.
func (c *clinic) die(from, n int, text string, retries int) (letters []string) {
	c.t.Helper()
	for i := from; i < from+n; i++ {
		a := c.fail(tiss, claim(i), text, retries)
		if a.DeadLetter == "" {
			c.t.Fatalf("claim %d lives on: %+v", i, a.Decision)
		}
		c.jobs++
		job := &journal.ReviewJob{Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: tiss, ID: claim(i)}, DeadLetter: a.DeadLetter, JobKey: c.jobs}
		if _, err := c.journal.ReviewSeen(c.t.Context(), job); err != nil {
			c.t.Fatal(err)
		}
		letters = append(letters, a.DeadLetter)
	}
	return letters
}

func claim(n int) string { return fmt.Sprintf("CLM-%03d-%d", n%7, n) }

// deliver has the processes take what is on its way to them.
func (c *clinic) deliver() {
	c.t.Helper()
	messages, err := c.Pending(c.t.Context(), journal.ReviewQueue, 0, 10_000)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range messages {
		a, err := journal.ReadAnswer(&messages[i])
		if err == nil {
			err = c.journal.Delivered(c.t.Context(), a, true)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *clinic) plan(command bulk.Command) bulk.Plan {
	c.t.Helper()
	p, err := c.bulk.Plan(c.t.Context(), command)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// start plans and starts.
func (c *clinic) start(command bulk.Command) string {
	c.t.Helper()
	run, err := c.bulk.Start(c.t.Context(), command, c.plan(command).Token)
	if err != nil {
		c.t.Fatal(err)
	}
	return run.ID
}

func (c *clinic) show(id string) journal.BulkRun {
	c.t.Helper()
	run, err := c.bulk.Run(c.t.Context(), id)
	if err != nil {
		c.t.Fatal(err)
	}
	return run
}

// counts of a run that are not 0, as text.
func (c *clinic) counts(id string) string {
	run, text := c.show(id), ""
	for _, o := range journal.BulkOutcomes() {
		if n := run.Counts[o]; n > 0 {
			text += fmt.Sprintf("%s %d ", o, n)
		}
	}
	return fmt.Sprintf("%s: %s", run.State, text)
}

// until waits for that, for two hours.
func (c *clinic) until(what string, holds func() bool) {
	c.t.Helper()
	for range 7200 {
		if holds() {
			return
		}
		time.Sleep(time.Second)
	}
	c.t.Fatalf("after two hours still not: %s", what)
}

func (c *clinic) done(id string) func() bool {
	return func() bool { return c.show(id).State == journal.BulkDone }
}

// decided is how many of a run were decided on.
func (c *clinic) decided(id string) int64 {
	run := c.show(id)
	return run.Total - run.Counts[journal.BulkPlanned] - run.Counts[journal.BulkRefused]
}

// open is the id of a claim's open dead letter.
func (c *clinic) open(n int) string {
	c.t.Helper()
	items, _, err := c.review.List(c.t.Context(), journal.DeadLetterFilter{Query: claim(n)}, "", 1)
	if err != nil || len(items) != 1 {
		c.t.Fatalf("claim %d: %d are open (%v)", n, len(items), err)
	}
	return items[0].ID
}
