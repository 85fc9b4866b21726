package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

func purge(t *testing.T, s journal.Purger, through int64, limit, want int) {
	t.Helper()
	if n, err := s.Purge(t.Context(), through, limit, testkit.PurgeAt(at(9))); err != nil || n != want {
		t.Fatalf("of the records up to %d, at most %d, %d were purged (%v), want %d", through, limit, n, err, want)
	}
}

// testPurgeLeaves purges step by step what was recorded of three subjects; what is left must be what the records say each
// time.
func testPurgeLeaves(t *testing.T, s Store) {
	w := newBulkWorld(t, s)
	first := w.die("CLM-LONG-1", 1)  // record 1
	second := w.die("CLM-LONG-1", 2) // record 2
	only := w.die("CLM-SHORT-1", 3)  // record 3
	w.Await(second)                  // record 4
	third := w.die("CLM-LONG-1", 5)  // record 5: the process of the second gets its answer
	w.Deliver(true)                  // record 6
	short := subject("CLM-SHORT-1")
	want := func(step string, of journal.Subject, attempts int, letters ...string) {
		t.Helper()
		st := story(t, s, of)
		var got []string
		for _, id := range []string{first, second, only, third} {
			if item, found, err := s.DeadLetter(t.Context(), id); err != nil {
				t.Fatal(err)
			} else if found && item.Subject == of {
				got = append(got, id)
			}
		}
		wantSame(t, "the dead letters of "+of.ID+" after "+step, got, letters)
		if len(st.Attempts) != attempts {
			t.Errorf("after %s %s has %d attempts, want %d", step, of.ID, len(st.Attempts), attempts)
		}
		Verify(t, s)
	}
	long := subject("CLM-LONG-1")
	want("nothing", long, 3, first, second, third)
	purge(t, s, 1, 9, 1)
	want("its first attempt", long, 2, second, third)
	purge(t, s, 3, 9, 2)
	want("its second attempt", long, 1, third)
	want("its only attempt", short, 0)
	if _, h := recall(t, s, journal.Lookup{Subject: long}); h[0].Attempts != 3 || h[0].DeadLetter == nil || h[0].DeadLetter.ID != third {
		t.Errorf("what is remembered of a subject that goes on is %+v", h[0])
	}
	purge(t, s, 5, 9, 2)
	want("its last attempt", long, 0, third)
	if _, h := recall(t, s, journal.Lookup{Subject: long}); h[0].Attempts != 3 || h[0].Episode.State != journal.Dead || h[0].DeadLetter == nil || h[0].Last == nil || h[0].Last.Error != "duplicate_claim" {
		t.Errorf("what is remembered of a subject with nothing but a delivery is %+v", h[0])
	}
	purge(t, s, 6, 9, 1)
	want("all", long, 0)
	if _, h := recall(t, s, journal.Lookup{Subject: short, DeadLetter: only}); h[0].Key != 0 {
		t.Errorf("a subject that is purged has the key %d", h[0].Key)
	}
	if again := w.die("CLM-SHORT-1", 3); again != only { // the same dead letter may be born again
		t.Errorf("it is born again as %s, want %s", again, only)
	}
	want("it began anew", short, 1, only)
	purge(t, s, 1<<60, 99, 5) // the words on four purges, and that
	Verify(t, s)
}

// testPurgedCause purges an attempt and, later, what came of it: the cause stays what it was.
func testPurgedCause(t *testing.T, s Store) {
	w := newBulkWorld(t, s)
	if r, err := w.analyze("CLM-CAUSE-1", 1, "the portal hums", 5); err != nil || r.Attempt.DeadLetter == "" { // record 1
		t.Fatalf("at its limit it is %+v (%v)", r, err)
	}
	_, err := w.j.Conclude(t.Context(), &journal.Outcome{Subject: subject("CLM-CAUSE-1"), Success: true}) // record 2
	testkit.Must(t, err)
	for through := range int64(3) { // the words on the first purge go with the third
		purge(t, s, through+1, 9, 1)
	}
	causes, err := s.Causes(t.Context(), journal.CauseFilter{Policy: "tiss-submission"}, nil, 9)
	if err != nil || len(causes) != 1 || causes[0].Reason != decision.ReasonUnknown || causes[0].Recovered != 1 {
		t.Errorf("the causes are %+v (%v), expected the one that nothing is known of, recovered once", causes, err)
	}
	Verify(t, s)
}

// testPurgeCut ends a purge's context: nothing is half purged, and the next goes on.
func testPurgeCut(t *testing.T, s Store) {
	for i := range 20 {
		failure(t, s, subject(named(i)), identity())
	}
	ctx, cancel := context.WithCancel(t.Context())
	purge(t, s, 15, 4, 4)
	cancel()
	n, err := s.Purge(ctx, 15, 4, testkit.PurgeAt(at(9)))
	if err == nil || n != 0 {
		t.Fatalf("%d records were purged after the context had ended (%v)", n, err)
	}
	wantKind(t, err, journal.Unavailable)
	for _, want := range []int{4, 4, 3, 0} {
		purge(t, s, 15, 4, want)
	}
	records, err := s.Records(t.Context(), journal.RecordFilter{}, 0, 99)
	testkit.Must(t, err)
	var left []int64
	for i := range records {
		left = append(left, records[i].Number())
	}
	if !slices.Equal(left, []int64{16, 17, 18, 19, 20, 21, 22, 23, 24}) {
		t.Errorf("the records %v are left", left)
	}
}

// testPurgeBeside purges while many write, of the same subjects too: no record may lose its subject.
func testPurgeBeside(t *testing.T, s Store) {
	written := make(chan error, 1)
	go func() { written <- race(t, s, func(int, int) bool { return false }) }()
	for writing := true; writing; {
		head, err := s.Head(t.Context())
		testkit.Must(t, err)
		_, err = s.Purge(t.Context(), head.Record, 9, testkit.PurgeAt(at(9)))
		testkit.Must(t, err)
		select {
		case err := <-written:
			testkit.Must(t, err)
			writing = false
		default:
		}
	}
	Verify(t, s)
	for _, id := range []string{"CLM-SHARED-1", named(0), named(1)} {
		st := story(t, s, subject(id))
		if len(st.Attempts) > 0 && len(st.Episodes) != 1 {
			t.Errorf("%s has %d attempts in the episodes %+v", id, len(st.Attempts), fmt.Sprint(st.Episodes))
		}
	}
}
