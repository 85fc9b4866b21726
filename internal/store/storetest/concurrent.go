package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

const (
	writers = 8
	rounds  = 25
)

// testConcurrent records failures from many goroutines, some of the same subjects. Every fifth transaction is
// refused: the others must form one sequence without a gap.
func testConcurrent(t *testing.T, s Store) {
	testkit.Must(t, race(t, s, func(w, round int) bool { return (w+round)%5 == 0 }))
	shared, want := story(t, s, subject("CLM-SHARED-1")), writers*rounds*4/5
	if n := Verify(t, s); n != int64(2*want) {
		t.Errorf("%d records are there, want %d", n, 2*want)
	}
	if len(shared.Attempts) != want || shared.Episodes[0].Retries != int64(want) {
		t.Fatalf("the subject that all write has %d attempts in %+v, want %d", len(shared.Attempts), shared.Episodes, want)
	}
	for i, a := range shared.Attempts {
		if a.Number != int64(i)+1 {
			t.Fatalf("attempt %d is numbered %d", i+1, a.Number)
		}
	}
}

// race runs the writers; transactions that spoilt names must be refused.
func race(t *testing.T, s Store, spoilt func(writer, round int) bool) error {
	var group errgroup.Group
	for w := range writers {
		group.Go(func() error {
			for round := range rounds {
				if err := raceOnce(t.Context(), s, w, spoilt(w, round)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func raceOnce(ctx context.Context, s Store, w int, spoil bool) error {
	mine := subject(named(w))
	lookups := []journal.Lookup{{Subject: mine, Identity: identity()}, {Subject: subject("CLM-SHARED-1"), Identity: identity()}}
	err := transact(ctx, s, lookups, func(x *transaction) {
		x.fail(0, lookups[0].Identity)
		x.fail(1, lookups[1].Identity)
		if spoil {
			c := x.seal()
			c.Records[0].Record, c.Records[1].Record = 1, 1
		}
	})
	switch {
	case !spoil:
		return err
	case err == nil:
		return errors.New("two attempts with one record were saved")
	}
	return nil
}

// testReaders reads while others write: a transaction's attempts, episode and entries appear together.
func testReaders(t *testing.T, s Store) {
	of := subject("CLM-READ-1")
	done := make(chan struct{})
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for seen := 0; ; {
				st, _, err := s.Story(t.Context(), of)
				switch n := len(st.Attempts); {
				case err != nil:
					t.Errorf("reading beside a writer failed: %v", err)
					return
				case n < seen:
					t.Errorf("%d attempts are there after %d were", n, seen)
					return
				case len(st.Entries) != n, n > 0 && st.Episodes[0].Retries != int64(n):
					t.Errorf("%d attempts are there with %d entries and the episodes %+v", n, len(st.Entries), st.Episodes)
					return
				default:
					seen = n
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for range 40 {
		must(t, s, []journal.Lookup{{Subject: of}}, func(x *transaction) {
			before := x.histories[0].Attempts
			if n := int64(len(story(t, s, of).Attempts)); n != before {
				t.Errorf("a reader finds %d attempts within the transaction, want %d", n, before)
			}
			x.fail(0, identity())
			x.entries = append(x.entries, journal.Entry{Kind: journal.RejectionEntry, Subject: of, At: at(0), Body: `{"a":1}`})
		})
	}
	close(done)
	group.Wait()
	if n := len(story(t, s, of).Attempts); n != 40 {
		t.Errorf("%d attempts were saved, want 40", n)
	}
}
