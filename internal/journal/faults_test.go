package journal_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

func TestStoreGoesDownAndComesBack(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.memory.SetDown(true)
		// Two of the same claim: the second waits for the next transaction, and is told as well.
		answers := b.ask(t.Context(), failure(claim(1), 1), failure(claim(2), 2), failure(claim(2), 3))
		for i, c := range answers {
			if a := <-c; !errors.Is(a.err, journal.ErrUnavailable) || a.after != 500*time.Millisecond {
				t.Errorf("call %d: %v after %s, want unavailable after 500 ms", i, a.err, a.after)
			}
		}
		b.wantSizes(1, 1, 1)
		if !slices.Equal(b.open, []bool{false}) || !errors.Is(b.reasons[0], journal.ErrUnavailable) {
			t.Fatalf("told %v, %v", b.open, b.reasons)
		}
		if a := <-b.ask(t.Context(), failure(claim(3), 4))[0]; !errors.Is(a.err, journal.ErrUnavailable) || a.after != 0 {
			t.Errorf("while down: %v after %s, want unavailable at once", a.err, a.after)
		}
		b.wantSizes(1, 1, 1) // nobody tried

		impatient, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if b.journal.Await(impatient) {
			t.Error("the gate is open while the store is down")
		}
		b.memory.SetDown(false)
		began := time.Now()
		if !b.journal.Await(t.Context()) || time.Since(began) > 250*time.Millisecond {
			t.Errorf("open again after %s", time.Since(began))
		}
		synctest.Wait() // the hook is told next
		if !slices.Equal(b.open, []bool{false, true}) || b.reasons[1] != nil {
			t.Errorf("told %v, %v", b.open, b.reasons)
		}
		b.recorded(b.ask(t.Context(), failure(claim(1), 1))[0])
		if !b.journal.Await(t.Context()) {
			t.Error("the gate does not stay open")
		}
	})
}

// TestNobodyWaitsAnyMore: the job of an analysis that the store kept waiting was given to another replica, which may have
// answered it. What comes late is not recorded.
func TestNobodyWaitsAnyMore(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		b.memory.Fail(1, testkit.Fault{Kind: journal.Ambiguous, Hang: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if a := <-b.ask(ctx, failure(claim(1), 1))[0]; !errors.Is(a.err, context.DeadlineExceeded) {
			t.Errorf("%v, want no answer in time", a.err)
		}
		if time.Sleep(time.Minute); b.memory.End().Record != 0 {
			t.Error("it is recorded all the same")
		}
	})
}

// deadly is a failure at the limit.
func deadly(id string, job int64) *journal.Analysis {
	a := failure(id, job)
	a.Failure.RetryCount = 5
	return a
}

// plainStore fails with an error that says nothing of its kind.
type plainStore struct {
	*testkit.Memory
	tries int
}

func (s *plainStore) Transact(context.Context, []journal.Lookup, func(journal.Head, []journal.History) *journal.Changes) error {
	s.tries++
	return errPlain
}

func (s *plainStore) Probe(context.Context) error { return errPlain }

var errPlain = errors.New("no reason given")

// TestErrorWithoutKindIsUnavailable, and the reason can be found in what the caller gets.
func TestErrorWithoutKindIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &plainStore{Memory: testkit.NewMemory()}
		j := testkit.StartJournal(t, store, time.Now)
		_, err := j.Analyze(t.Context(), failure(claim(1), 1))
		if !errors.Is(err, journal.ErrUnavailable) || !errors.Is(err, errPlain) || store.tries != 3 {
			t.Errorf("%v after %d tries", err, store.tries)
		}
	})
}

// TestFlappingJournal: a store that takes probes and no batch is asked ever more rarely, or jobs would go round
// between engine and worker.
func TestFlappingJournal(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		opened := 0
		for began := time.Now(); time.Since(began) < 5*time.Minute; opened++ {
			if !b.journal.Await(t.Context()) {
				t.Fatal("the journal did not open again")
			}
			b.memory.Fail(3, testkit.Fault{Kind: journal.Unavailable})
			if a := <-b.ask(t.Context(), failure(claim(opened), int64(opened)))[0]; a.err == nil {
				t.Fatal("the commit that should fail did not")
			}
		}
		if opened < 10 || opened > 30 {
			t.Errorf("it opened %d times in five minutes, want some, and ever more rarely", opened)
		}
		b.memory.Heal()
		time.Sleep(time.Minute)
		if a := <-b.ask(t.Context(), failure(claim(1000), 1000))[0]; a.err != nil {
			t.Errorf("whole again: %v", a.err)
		}
	})
}
