package storetest

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

func pending(t *testing.T, s journal.Outbox, queue string, limit int) []journal.Message {
	t.Helper()
	m, err := s.Pending(t.Context(), queue, 0, limit)
	testkit.Must(t, err)
	return m
}

// testSequence: a message's number is never used again, not even in an empty outbox.
func testSequence(t *testing.T, s Store) {
	last := int64(0)
	for range 3 {
		must(t, s, nil, func(x *transaction) { x.Outbox = []journal.Message{{ID: "1", Queue: "a", At: at(1)}} })
		waiting := pending(t, s, "a", 10)
		if len(waiting) != 1 || waiting[0].Sequence <= last {
			t.Fatalf("%+v waits, want one message behind number %d", waiting, last)
		}
		last = waiting[0].Sequence
		must(t, s, nil, func(x *transaction) { x.Published = []int64{last} })
	}
}

// testTold: every record is published, also those of steps that a store takes by itself.
func testTold(t *testing.T, s Store) {
	w := newBulkWorld(t, s)
	w.j = journal.New(s, w.Now, tellAll, journal.NoHooks())
	testkit.RunJournal(t, w.j)
	for n := range 3 {
		w.die(named(n), int64(n+1))
	}
	w.begin("run-1")
	testkit.Must(t, w.j.RefuseBulkItem(t.Context(), "run-1", 1, "busy"))
	_, err := w.j.Purge(t.Context(), s, time.Hour, true)
	testkit.Must(t, err)
	if r, ok := s.(audit.Rebuilder); ok {
		testkit.Must(t, audit.Rebuild(t.Context(), r, at(9), false, tellAll, nil))
	}
	head, err := s.Head(t.Context())
	testkit.Must(t, err)
	all := pending(t, s, "told", 99)
	for i, m := range all {
		if m.ID != fmt.Sprint(i+1) {
			t.Errorf("record %s is told at place %d", m.ID, i+1)
		}
	}
	if int64(len(all)) != head.Record {
		t.Errorf("%d of %d records are told", len(all), head.Record)
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
	wantLease(t, s, "relay", "b", 0, false)        // b does not have it
	wantLease(t, s, "relay", "b", time.Hour, false)
	wantLease(t, s, "relay", "a", 0, true)
	wantLease(t, s, "relay", "a", 0, true) // nobody holds it
	wantLease(t, s, "relay", "b", time.Hour, true)
	wantLease(t, s, "relay", "a", time.Hour, false)
	if head, _ := recall(t, s); head.Link != 0 {
		t.Error("leases are in the ledger")
	}
}

// testLeaseAhead: a lease that lasts longer than its span comes from a wrong clock, and ends.
func testLeaseAhead(t *testing.T, s Store) {
	const span = 15 * time.Second
	wantLease(t, s, "relay", "a", 25*time.Hour, true)
	wantLease(t, s, "purge", "b", span, true)
	wantLease(t, s, "relay", "c", 0, false) // nobody can give back another's
	wantLease(t, s, "purge", "c", span, false)
	wantLease(t, s, "relay", "c", span, true)
	wantLease(t, s, "relay", "a", span, false)
	wantLease(t, s, "purge", "b", 25*time.Hour, true) // its own
}

// testAdmissions: counts add up by destination and minute, and old ones are forgotten. They are in no link.
func testAdmissions(t *testing.T, s Store) {
	const minute = 29_000_000
	add := func(all ...journal.Admission) {
		t.Helper()
		if err := s.AddAdmissions(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	add(journal.Admission{Destination: "tiss", Minute: minute, Count: 3}, journal.Admission{Destination: "unimed", Minute: minute, Count: 1})
	add(journal.Admission{Destination: "tiss", Minute: minute, Count: 4}, journal.Admission{Destination: "tiss", Minute: minute + 1, Count: 1})
	for since, want := range map[int64][]journal.Admission{
		minute: {{Destination: "tiss", Minute: minute, Count: 7}, {Destination: "unimed", Minute: minute, Count: 1},
			{Destination: "tiss", Minute: minute + 1, Count: 1}},
		minute + 1: {{Destination: "tiss", Minute: minute + 1, Count: 1}},
		minute + 2: nil,
	} {
		if got, err := s.Admissions(t.Context(), since); err != nil || !slices.Equal(got, want) {
			t.Errorf("since %d: %v (%v), want %v", since, got, err, want)
		}
	}
	last := journal.Admission{Destination: "tiss", Minute: minute + 1 + journal.AdmissionsKept, Count: 1}
	add(last)
	want := []journal.Admission{{Destination: "tiss", Minute: minute + 1, Count: 1}, last}
	if got, err := s.Admissions(t.Context(), 0); err != nil || !slices.Equal(got, want) {
		t.Errorf("kept are %v (%v), want %v", got, err, want)
	}
	const replicas, times = 4, 25
	var adding errgroup.Group
	for range replicas {
		adding.Go(func() error {
			var err error
			for n := range int64(times) {
				err = cmp.Or(err, s.AddAdmissions(t.Context(), []journal.Admission{
					{Destination: "tiss", Minute: 2*minute + n/5, Count: 1}, {Destination: "unimed", Minute: 2*minute + n/5, Count: 2},
				}))
			}
			return err
		})
	}
	if err := adding.Wait(); err != nil {
		t.Errorf("replicas add at once: %v", err)
	}
	sum := 0
	if all, err := s.Admissions(t.Context(), 2*minute); err != nil {
		t.Error(err)
	} else {
		for _, a := range all {
			sum += a.Count
		}
	}
	if sum != 3*replicas*times {
		t.Errorf("%d are counted, want %d", sum, 3*replicas*times)
	}
	if head, _ := recall(t, s); head.Link != 0 {
		t.Error("admissions are in the ledger")
	}
}

// testLeaseEnds waits for another's lease to end: by itself, and not before its time.
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
