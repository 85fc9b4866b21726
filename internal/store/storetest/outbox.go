package storetest

import (
	"testing"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

func pending(t *testing.T, s journal.Outbox, queue string, after int64, limit int) []journal.Message {
	t.Helper()
	m, err := s.Pending(t.Context(), queue, after, limit)
	testkit.Must(t, err)
	return m
}

// testSequence: a message's number is never given again, not even in an empty outbox.
func testSequence(t *testing.T, s Store) {
	last := int64(0)
	for range 3 {
		add(t, s, func(x *transaction) { x.Outbox = []journal.Message{{ID: "1", Queue: "a", At: at(1)}} })
		waiting := pending(t, s, "a", 0, 10)
		if len(waiting) != 1 || waiting[0].Sequence <= last {
			t.Fatalf("%+v waits, want one message behind number %d", waiting, last)
		}
		last = waiting[0].Sequence
		must(t, s, nil, func(x *transaction) { x.Published = []int64{last} })
	}
}

func wantLease(t *testing.T, s journal.Outbox, name, holder string, span time.Duration, want bool) {
	t.Helper()
	if held, err := s.Lease(t.Context(), name, holder, span); err != nil || held != want {
		t.Errorf("%s asks for the lease %s for %s: %t (%v), want %t", holder, name, span, held, err, want)
	}
}

func testLeases(t *testing.T, s Store) {
	wantLease(t, s, "relay", "a", time.Hour, true)
	wantLease(t, s, "relay", "a", time.Hour, true)
	wantLease(t, s, "relay", "b", time.Hour, false)
	wantLease(t, s, "purge", "b", time.Hour, true) // another name is another lease
	wantLease(t, s, "relay", "b", 0, false)        // it is not b's to give
	wantLease(t, s, "relay", "b", time.Hour, false)
	wantLease(t, s, "relay", "a", 0, true)
	wantLease(t, s, "relay", "a", 0, true) // nobody holds it
	wantLease(t, s, "relay", "b", time.Hour, true)
	wantLease(t, s, "relay", "a", time.Hour, false)
	if head, _ := recall(t, s); head.Link != 0 {
		t.Error("leases are in the ledger")
	}
}

// testLeaseEnds waits for another's lease to end: not before its time, and by itself.
func testLeaseEnds(t *testing.T, s Store) {
	const span, rounding = 200 * time.Millisecond, 2 * time.Millisecond
	began := time.Now()
	wantLease(t, s, "relay", "a", span, true)
	for {
		held, err := s.Lease(t.Context(), "relay", "b", time.Hour)
		waited := time.Since(began)
		switch {
		case err != nil:
			t.Fatal(err)
		case held && waited < span-rounding:
			t.Fatalf("b has a's lease after %s, want %s at least", waited, span)
		case held:
			wantLease(t, s, "relay", "a", time.Hour, false)
			return
		case waited > time.Minute:
			t.Fatalf("a's lease of %s has not ended after %s", span, waited)
		}
	}
}
