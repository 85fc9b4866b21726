package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// bulkWorld is a journal over a store, with claims that have died, and bulk runs.
type bulkWorld struct {
	t *testing.T
	s Store
	j *journal.Journal

	mu  sync.Mutex
	now time.Time
}

func newBulkWorld(t *testing.T, s Store) *bulkWorld {
	w := &bulkWorld{t: t, s: s, now: at(0)}
	w.j = testkit.StartJournal(t, s, w.tick)
	return w
}

// tick is the time, a second later than before.
func (w *bulkWorld) tick() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(time.Second)
	return w.now
}

func (w *bulkWorld) setClock(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = now
}

// die has a claim fail for good, once more where it did before; it returns its dead letter.
func (w *bulkWorld) die(id string, job int64) string {
	w.t.Helper()
	r, err := w.analyze(id, job)
	if err != nil || r.Attempt == nil || r.Attempt.DeadLetter == "" {
		w.t.Fatalf("%s did not die: %+v (%v)", id, r, err)
	}
	return r.Attempt.DeadLetter
}

func (w *bulkWorld) analyze(id string, job int64) (journal.Recorded, error) {
	w.t.Helper()
	return w.analyzeOf(id, job, "DUPLICATE_CLAIM", 0)
}

func (w *bulkWorld) analyzeOf(id string, job int64, text string, retries int64) (journal.Recorded, error) {
	w.t.Helper()
	p := decisiontest.TISSSubmission()
	f, rejection := p.Read(decision.Variables{ID: decision.Text(id), Error: decision.Text(text), RetryCount: decision.Value(fmt.Sprint(retries))})
	if rejection != nil {
		w.t.Fatal(rejection)
	}
	f.Context = decision.Context{{Variable: "guia", Type: decision.ContextText, Value: id},
		{Variable: "valor", Type: decision.ContextMoney, Value: "10.50"}}
	a := &journal.Analysis{Subject: subject(id), JobKey: job, ElementInstanceKey: job, ProcessInstanceKey: 3, Rule: decision.RNBIL005, Policy: p, Failure: &f,
		Error: text, ReceivedAt: at(0)}
	a.Identity = journal.IdentityOf(a)
	return w.j.Analyze(w.t.Context(), a)
}

// wait has a process wait for a decision on a dead letter.
func (w *bulkWorld) wait(id, letter string) {
	w.t.Helper()
	if _, err := w.j.ReviewSeen(w.t.Context(), &journal.ReviewJob{Subject: subject(id), DeadLetter: letter, JobKey: 11}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *bulkWorld) step(verb journal.BulkVerb, r journal.BulkRun) journal.BulkRun {
	w.t.Helper()
	r, err := w.j.Bulk(w.t.Context(), &journal.BulkStep{Verb: verb, Run: r, By: "ana"})
	if err != nil {
		w.t.Fatalf("%s: %v", verb, err)
	}
	return r
}

// begin starts a run over everything that is open, and gathers it.
func (w *bulkWorld) begin(id string, action journal.BulkAction) {
	w.t.Helper()
	head, err := w.s.Head(w.t.Context())
	testkit.Must(w.t, err)
	r := journal.BulkRun{ID: id, Action: action, Through: head.Record, Reason: "corrigido", PerMinute: 60, Force: action == journal.BulkRetry}
	w.step(journal.BulkStart, r)
	w.gather(id, 2)
}

func (w *bulkWorld) gather(id string, limit int) {
	w.t.Helper()
	for done := false; !done; {
		var err error
		if done, err = w.j.GatherBulkItems(w.t.Context(), w.s, id, limit, "in_other_run"); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *bulkWorld) decide(run, id, letter string, discard bool) error {
	_, err := w.j.Review(w.t.Context(), &journal.Review{Subject: subject(id), DeadLetter: letter, Discard: discard, Force: !discard, Reason: "corrigido", By: "ana", Run: run})
	return err
}

// deliver tells what became of every answer that is on its way.
func (w *bulkWorld) deliver(taken bool) {
	w.t.Helper()
	all, err := w.s.Pending(w.t.Context(), journal.ReviewQueue, 0, 100)
	testkit.Must(w.t, err)
	for i := range all {
		a, err := journal.ReadAnswer(&all[i])
		if err == nil {
			err = w.j.Delivered(w.t.Context(), a, taken)
		}
		testkit.Must(w.t, err)
	}
}

// want holds the run's items, in their order, against outcomes; its counts must say the same, and lost what is purged.
func (w *bulkWorld) want(when, run string, outcomes ...journal.BulkOutcome) {
	w.t.Helper()
	items, err := w.s.BulkItems(w.t.Context(), run, "", 0, 100)
	testkit.Must(w.t, err)
	counts, got := map[journal.BulkOutcome]int64{}, []journal.BulkOutcome{}
	for _, i := range items {
		got = append(got, i.Outcome)
		counts[i.Outcome]++
	}
	wantSame(w.t, "the outcomes "+when, got, outcomes)
	r, found, err := w.s.BulkRun(w.t.Context(), run)
	if err != nil || !found || r.Total != int64(len(outcomes)) {
		w.t.Fatalf("%s the run is %+v (%v)", when, r, err)
	}
	wantSame(w.t, "the counts "+when, r.Counts, counts)
}

// testBulkOutcomes carries dead letters of a run to every end there is.
func testBulkOutcomes(t *testing.T, s Store) {
	w := newBulkWorld(t, s)
	var letters []string
	ids := []string{"CLM-1-1", "CLM-2-1", "CLM-3-1", "CLM-4-1", "CLM-5-1", "CLM-6-1"}
	for i, id := range ids {
		letters = append(letters, w.die(id, int64(i+1)))
		w.wait(id, letters[i])
	}
	w.begin("run-1", journal.BulkRetry)
	p, d, n := journal.BulkPlanned, journal.BulkDecided, journal.BulkNobody
	w.want("before anything", "run-1", p, p, p, p, p, p)
	for i := range ids[:5] {
		testkit.Must(t, w.decide("run-1", ids[i], letters[i], false))
	}
	w.want("once five are decided", "run-1", d, d, d, d, d, p)
	item, _, err := s.DeadLetter(t.Context(), letters[0])
	if err != nil || item.Run != "run-1" {
		t.Errorf("the dead letter is of the run %q (%v)", item.Run, err)
	}
	one, err := s.BulkItems(t.Context(), "run-1", d, 0, 1)
	if err != nil || len(one) != 1 || one[0].Subject != subject(ids[0]) || !one[0].DecidedAt.Equal(item.Review.At) || !one[0].ChangedAt.Equal(item.Review.At) {
		t.Errorf("the first that is decided is %+v (%v), want that of %s", one, err, item.Review.At)
	}
	w.deliver(true)
	w.want("once they are taken", "run-1", journal.BulkTaken, journal.BulkTaken, journal.BulkTaken, journal.BulkTaken, journal.BulkTaken, p)
	testkit.Must(t, w.j.RefuseBulkItem(t.Context(), "run-1", 6, "max_retries_exceeded"))
	testkit.Must(t, w.j.RefuseBulkItem(t.Context(), "run-1", 5, "max_retries_exceeded"))
	for i, want := range []bool{true, false} { // the audit tells who decided
		st := story(t, s, subject(ids[5*i]))
		if got := slices.ContainsFunc(st.Entries, func(e journal.Entry) bool { return strings.Contains(e.Body, `"bulkRun":"run-1"`) }); got != want {
			t.Errorf("the audit of %s names the run: %t", ids[5*i], got)
		}
	}
	if _, err := w.j.Conclude(t.Context(), &journal.Outcome{Subject: subject(ids[0]), Success: true}); err != nil {
		t.Fatal(err)
	}
	w.die(ids[1], 102)
	w.want("once two ended", "run-1", journal.BulkRecovered, journal.BulkDeadAgain, journal.BulkTaken, journal.BulkTaken, journal.BulkTaken, journal.BulkRefused)
	w.step(journal.BulkFinish, journal.BulkRun{ID: "run-1"})
	w.die(ids[2], 103)
	w.want("after its end", "run-1", journal.BulkRecovered, journal.BulkDeadAgain, journal.BulkDeadAgain, journal.BulkTaken, journal.BulkTaken, journal.BulkRefused)

	w.begin("run-2", journal.BulkRetry) // the sixth, and what died again
	again, err := s.BulkItems(t.Context(), "run-2", "", 0, 9)
	if err != nil || len(again) != 3 || again[0].DeadLetter != letters[5] {
		t.Fatalf("the second run has %+v (%v)", again, err)
	}
	testkit.Must(t, w.decide("run-2", ids[5], letters[5], false))
	w.deliver(false)
	w.want("where nobody waits", "run-2", n, p, p)
	testkit.Must(t, w.decide("", ids[5], letters[5], true))
	w.want("where a person decides anew", "run-2", n, p, p)
	w.step(journal.BulkCancel, journal.BulkRun{ID: "run-2"})
	var state *journal.BulkStateError
	if err := w.decide("run-2", ids[1], again[1].DeadLetter, true); !errors.As(err, &state) || state.State != journal.BulkCancelled {
		t.Errorf("a run that is cancelled decides: %v", err)
	}
	w.begin("run-3", journal.BulkDiscard)
	if err := w.decide("run-3", ids[1], again[1].DeadLetter, true); err != nil { // no process waits for it
		t.Fatal(err)
	}
	w.wait(ids[2], again[2].DeadLetter)
	testkit.Must(t, w.decide("run-3", ids[2], again[2].DeadLetter, true))
	w.want("where they are discarded", "run-3", n, d)
	w.deliver(true)
	w.want("where the process took that", "run-3", n, journal.BulkDiscarded)
}

// testBulkAtOnce gathers runs that overlap at once, while others decide: no dead letter is planned twice.
func testBulkAtOnce(t *testing.T, s Store) {
	const letters, runs = 60, 3
	w := newBulkWorld(t, s)
	ids := make([]string, letters)
	for i := range ids {
		ids[i] = w.die(fmt.Sprintf("CLM-%d-1", i), int64(i+1))
	}
	for n := range runs {
		w.step(journal.BulkStart, journal.BulkRun{ID: fmt.Sprint("run-", n), Action: journal.BulkDiscard, Through: 1 << 40, Reason: "x", PerMinute: 1})
	}
	var group sync.WaitGroup
	failed := make(chan error, 100)
	for n := range 2 * runs { // each by two at once
		group.Go(func() { failed <- w.gatherAll(t.Context(), fmt.Sprint("run-", n/2)) })
	}
	group.Go(func() {
		for i := 0; i < letters; i += 3 {
			if err := w.decide("", fmt.Sprintf("CLM-%d-1", i), ids[i], true); err != nil {
				failed <- err
			}
		}
	})
	group.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			t.Error(err)
		}
	}
	planned := map[string]string{}
	for n := range runs {
		id := fmt.Sprint("run-", n)
		items, err := s.BulkItems(t.Context(), id, "", 0, 2*letters)
		if err != nil || len(items) < letters-letters/3 {
			t.Fatalf("%s has %d (%v)", id, len(items), err)
		}
		counts, seen := map[journal.BulkOutcome]int64{}, map[string]bool{}
		for i, item := range items {
			if counts[item.Outcome]++; item.Number != int64(i+1) || seen[item.DeadLetter] {
				t.Errorf("%s has %s at %d as number %d, seen before: %t", id, item.DeadLetter, i+1, item.Number, seen[item.DeadLetter])
			}
			seen[item.DeadLetter] = true
			if other := planned[item.DeadLetter]; item.Outcome == journal.BulkPlanned && other != "" {
				t.Errorf("%s is planned by %s and by %s", item.DeadLetter, other, id)
			} else if item.Outcome == journal.BulkPlanned {
				planned[item.DeadLetter] = id
			} else if item.Code != "busy" {
				t.Errorf("%s is %s for %q", item.DeadLetter, item.Outcome, item.Code)
			}
		}
		r, _, err := s.BulkRun(t.Context(), id)
		if err != nil || r.State != journal.BulkRunning || r.Total != int64(len(items)) {
			t.Errorf("%s is %+v (%v)", id, r, err)
		}
		wantSame(t, "the counts of "+id, r.Counts, counts)
	}
	if len(planned) < letters-letters/3 {
		t.Errorf("%d are planned by some run, want at least those that nobody decided on", len(planned))
	}
	tallies, _, err := s.DeadLetterTallies(t.Context(), journal.DeadLetterFilter{}, 0, time.Time{})
	if err != nil || len(tallies) != 1 || !tallies[0].Busy || tallies[0].N != letters-letters/3 {
		t.Errorf("what is open still is summed up as %+v (%v)", tallies, err)
	}
}

func (w *bulkWorld) gatherAll(ctx context.Context, run string) error {
	for {
		if done, err := w.j.GatherBulkItems(ctx, w.s, run, 7, "busy"); err != nil || done {
			return err
		}
	}
}
