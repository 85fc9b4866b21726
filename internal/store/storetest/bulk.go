package storetest

import (
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// bulkWorld is a journal over a store under test, with dead letters and bulk runs.
type bulkWorld struct {
	*testkit.Fixture
	t *testing.T
	s Store
	j *journal.Journal
}

func newBulkWorld(t *testing.T, s Store) *bulkWorld {
	f := testkit.New(t, testkit.Over(s), testkit.At(at(0)))
	return &bulkWorld{f, t, s, f.Journal}
}

// die fails a claim for good, perhaps not for the first time, and returns its dead letter.
func (w *bulkWorld) die(id string, job int64) string {
	w.t.Helper()
	r, err := w.analyze(id, job, "DUPLICATE_CLAIM", 0)
	if err != nil || r.Attempt == nil || r.Attempt.DeadLetter == "" {
		w.t.Fatalf("%s did not die: %+v (%v)", id, r, err)
	}
	return r.Attempt.DeadLetter
}

// analyze fails a claim in a job, a second after whatever came before.
func (w *bulkWorld) analyze(id string, job int64, text string, retries int) (journal.Recorded, error) {
	w.t.Helper()
	w.Advance(time.Second)
	a := w.Analysis(decision.DefaultPolicy, id, text, retries)
	a.JobKey, a.ElementInstanceKey = job, job
	a.Failure.Context = decision.Context{{Variable: "guia", Type: decision.ContextText, Value: id},
		{Variable: "valor", Type: decision.ContextMoney, Value: "10.50"}}
	return w.j.Analyze(w.t.Context(), a)
}

func (w *bulkWorld) step(verb journal.BulkVerb, r journal.BulkRun) {
	w.t.Helper()
	_, err := w.j.Bulk(w.t.Context(), &journal.BulkStep{Verb: verb, Run: r, Items: testkit.Open(w.t, w.s, r.Filter, r.Through), By: "ana"})
	if err != nil {
		w.t.Fatalf("%s: %v", verb, err)
	}
}

// begin starts a run that discards everything that is open.
func (w *bulkWorld) begin(id string) {
	w.t.Helper()
	head, err := w.s.Head(w.t.Context())
	testkit.Must(w.t, err)
	w.step(journal.BulkStart, journal.BulkRun{ID: id, Through: head.Record,
		BulkCommand: journal.BulkCommand{Action: journal.BulkDiscard, Reason: "corrigido", PerMinute: 60}})
}

func (w *bulkWorld) decide(run, id, letter string, discard bool) error {
	_, err := w.j.Review(w.t.Context(), &journal.Review{Subject: subject(id), DeadLetter: letter, Discard: discard, RetryOptions: journal.RetryOptions{Force: !discard}, Reason: "corrigido", By: "ana", Run: run})
	return err
}

// want compares the outcomes of a run's remaining items, in order, and the run's counts. One more item was expunged.
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
	if err != nil || !found || r.Total != int64(len(outcomes))+1 {
		w.t.Fatalf("%s the run is %+v (%v)", when, r, err)
	}
	wantSame(w.t, "the counts "+when, r.Counts, counts)
}
