package journal_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestOrdersAreFollowed: what a person ordered stands until a state follows it. One that was on its way does not, nor does an
// order take the place of the one before.
func TestOrdersAreFollowed(t *testing.T) {
	f := testkit.New(t)
	record := func(b journal.DestinationBody) {
		testkit.Must(t, f.Journal.RecordDestination(t.Context(), "portal", b))
	}
	state := func(version, follows int64, want ...destination.Verb) {
		t.Helper()
		record(journal.DestinationBody{Version: version, State: &destination.State{Phase: destination.Down}, Follows: follows})
		var verbs []destination.Verb
		_, err := f.Memory.Held(t.Context(), func(s *journal.KeyedState) {
			for _, o := range s.Destination.Orders {
				verbs = append(verbs, o.Verb)
			}
		})
		testkit.Must(t, err)
		if !slices.Equal(verbs, want) {
			t.Errorf("version %d: %v are to be followed, want %v", version, verbs, want)
		}
	}
	for _, verb := range []destination.Verb{destination.HoldClaims, destination.SendCanary} {
		record(journal.DestinationBody{Command: &destination.Order{Verb: verb, Reason: "maintenance", By: "ana"}})
	}
	end := f.Memory.End().Record
	state(1, 0, destination.HoldClaims, destination.SendCanary)
	state(2, end-1, destination.SendCanary)
	state(3, end)
}

// TestStateOfAnotherIsNotOnesOwn: what became of a commit is not known, and another replica has recorded a state since. Whoever
// tried is told so, or two replicas would act on two states.
func TestStateOfAnotherIsNotOnesOwn(t *testing.T) {
	onBench(t, func(t *testing.T, b *bench) {
		one, two := b.journal, b.replica(time.Now)
		state := func(phase destination.Phase) journal.DestinationBody {
			return journal.DestinationBody{Version: 1, State: &destination.State{Phase: phase}}
		}
		b.memory.Fail(1, testkit.Fault{Kind: journal.Ambiguous})
		said := make(chan error, 1)
		go func() { said <- one.RecordDestination(t.Context(), "portal", state(destination.Down)) }()
		synctest.Wait()
		testkit.Must(t, two.RecordDestination(t.Context(), "portal", state(destination.Testing)))
		if err := <-said; !errors.Is(err, journal.ErrStale) {
			t.Errorf("%v, want ErrStale", err)
		}
	})
}
