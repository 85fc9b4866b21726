package journal_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestUnheardCommitIsDoneOnce: whether a commit happened is not known, whatever it is of. It is in the journal once, and who
// asked for it gets what it came to.
func TestUnheardCommitIsDoneOnce(t *testing.T) {
	for name, doubt := range map[string]func(b *bench, two *journal.Journal){
		"done, and another replica wrote since": func(b *bench, two *journal.Journal) {
			b.memory.Fail(1, testkit.Fault{Kind: journal.Ambiguous, After: true})
			b.writesBeside(two)
		},
		"not done, and another replica wrote since": func(b *bench, two *journal.Journal) {
			b.memory.Fail(1, testkit.Fault{Kind: journal.Ambiguous})
			b.writesBeside(two)
		},
		"done, and the store is away": func(b *bench, _ *journal.Journal) {
			b.memory.Fail(1, testkit.Fault{Kind: journal.Ambiguous, After: true})
			b.meanwhile = func() {
				b.memory.SetDown(true)
				time.Sleep(time.Minute)
				b.memory.SetDown(false)
			}
		},
		"not done by three tries": func(b *bench, _ *journal.Journal) {
			b.memory.Fail(3, testkit.Fault{Kind: journal.Ambiguous})
			b.meanwhile = func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBench(t, func(t *testing.T, b *bench) {
				one, two := b.journal, b.replica(time.Now)
				b.doubted = func(what string, call func() error) {
					b.memory.Heal()
					doubt(b, two)
					before, done := b.memory.End().Record, make(chan error, 1)
					go func() { done <- call() }()
					synctest.Wait() // it pauses before its second try
					b.meanwhile()
					if err := <-done; err != nil {
						t.Errorf("%s: %v", what, err)
					}
					if n := b.memory.End().Record - before - b.beside; n != 1 {
						t.Errorf("%s: %d records, want 1", what, n)
					}
				}
				b.playDoubted(one)
			})
		})
	}
}

// writesBeside has another replica write while a call is in doubt.
func (b *bench) writesBeside(other *journal.Journal) {
	b.beside = 1
	b.meanwhile = func() {
		_, err := other.Analyze(b.Context(), failure(claim(1000+int(b.memory.End().Record)), 9))
		testkit.Must(b.T, err)
	}
}

// playDoubted does everything once, each of it in doubt.
func (b *bench) playDoubted(j *journal.Journal) {
	t, ctx := b.T, b.Context()
	var r journal.Recorded
	b.doubted("analysis", func() (err error) { r, err = j.Analyze(ctx, deadly(claim(1), 1)); return })
	if r.How != journal.Fresh || r.Attempt.Number != 1 {
		t.Errorf("the analysis is %s attempt %d, want the first, fresh", r.How, r.Attempt.Number)
	}
	of, letter := failure(claim(1), 1).Subject, r.Attempt.DeadLetter
	b.doubted("rejection", func() error {
		return j.Reject(ctx, &journal.RejectedJob{Subject: of, Rejection: &decision.Rejection{Code: decision.InvalidRetryCount}})
	})
	b.doubted("review job", func() error {
		d, err := j.ReviewSeen(ctx, &journal.ReviewJob{Subject: of, DeadLetter: letter, JobKey: 7})
		if d.ReviewJobKey != 7 || d.State != journal.DeadLetterOpen {
			t.Errorf("the dead letter is %+v", d)
		}
		return err
	})
	for _, verb := range []journal.NoteVerb{journal.Comment, journal.Assign, journal.DiscardLater, journal.Undo} {
		b.doubted("note", func() error {
			_, err := j.Note(ctx, &journal.Note{Subject: of, DeadLetter: letter, Verb: verb, Text: "teste", By: "ana"})
			return err
		})
	}
	for _, verb := range []journal.BulkVerb{journal.BulkStart, journal.BulkPause, journal.BulkResume} {
		b.doubted("bulk run", func() error {
			run, err := j.Bulk(ctx, &journal.BulkStep{Verb: verb, Run: aRun("run"), By: "ana"})
			if run.ID != "run" {
				t.Errorf("%s leads to %+v", verb, run)
			}
			return err
		})
	}
	b.doubted("decision of a bulk run", func() error {
		done, err := j.Review(ctx, &journal.Review{Subject: of, DeadLetter: letter, RetryOptions: journal.RetryOptions{Force: true}, Reason: "teste", By: "ana", Run: "run"})
		if n := retries(b.memory, of); n != 6 || done.State != journal.DeadLetterReprocessing {
			t.Errorf("goes on with %d as %s, want 6", n, done.State)
		}
		return err
	})
	b.doubted("delivery", func() error { return j.Delivered(ctx, onlyAnswer(t, b.memory), true) })
	b.doubted("outcome", func() error {
		c, err := j.Conclude(ctx, &journal.Outcome{Subject: of, Success: true})
		if !c.Changed || c.Episode.State != journal.Recovered {
			t.Errorf("the outcome changed %t, the episode is %s", c.Changed, c.Episode.State)
		}
		return err
	})
	if want := []string{"tiss-submission recovered"}; !slices.Equal(b.recovered, want) {
		t.Errorf("told of %v, want %v", b.recovered, want)
	}
	b.doubted("arrival", func() error {
		return j.Hold(ctx, &journal.Arrival{Subject: of, JobKey: 8, ProcessInstanceKey: 8, Destination: "portal", Policy: tiss})
	})
	b.doubted("departure", func() error {
		went, err := j.Depart(ctx, &journal.Departure{Subject: of, JobKey: 8, Kind: destination.Test})
		if !went {
			t.Error("it is said not to have gone")
		}
		return err
	})
	b.doubted("destination", func() error {
		return j.RecordDestination(ctx, "portal", journal.DestinationBody{Version: 1, State: &destination.State{}})
	})
	for _, class := range []decision.ErrorClassification{decision.Permanent, ""} {
		b.doubted("teaching", func() error { return j.Teach(ctx, tiss.Name, "cause", journal.Teaching{Class: class, Reason: "teste"}) })
	}
}

// TestUnheardDecisionIsDeliveredInVain: by the time that somebody knows that a decision was recorded, the dead letter is open
// again, and another process waits. It is not decided on once more.
func TestUnheardDecisionIsDeliveredInVain(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		one, two := b.journal, b.replica(time.Now)
		r, err := one.Analyze(t.Context(), deadly(claim(1), 1))
		testkit.Must(t, err)
		of, letter := failure(claim(1), 1).Subject, r.Attempt.DeadLetter
		_, err = one.ReviewSeen(t.Context(), &journal.ReviewJob{Subject: of, DeadLetter: letter, JobKey: 7})
		testkit.Must(t, err)
		b.memory.Fail(1, testkit.Fault{Kind: journal.Ambiguous, After: true})
		said := make(chan error, 1)
		go func() {
			_, err := one.Review(t.Context(), &journal.Review{Subject: of, DeadLetter: letter, RetryOptions: journal.RetryOptions{Force: true}, Reason: "teste", By: "ana"})
			said <- err
		}()
		synctest.Wait()
		testkit.Must(t, two.Delivered(t.Context(), onlyAnswer(t, b.memory), false))
		_, err = two.ReviewSeen(t.Context(), &journal.ReviewJob{Subject: of, DeadLetter: letter, JobKey: 8})
		testkit.Must(t, err)
		testkit.Must(t, <-said)
		if told, _, err := b.memory.Story(t.Context(), of); err != nil || told.DeadLetters[0].State != journal.DeadLetterOpen {
			t.Errorf("the dead letter is %+v (%v), want it open", told.DeadLetters, err)
		}
	})
}
