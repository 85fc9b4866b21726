package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"retry-worker/internal/journal"
)

func purge(t *testing.T, s journal.Purger, through int64, limit, want int) {
	t.Helper()
	if n, err := s.Purge(t.Context(), through, limit); err != nil || n != want {
		t.Fatalf("of the records up to %d, at most %d, %d were purged (%v), want %d", through, limit, n, err, want)
	}
}

// testPurgeLeaves purges step by step what was recorded of three subjects.
func testPurgeLeaves(t *testing.T, s Store) {
	long, short, told := subject("CLM-LONG-1"), subject("CLM-SHORT-1"), subject("CLM-TOLD-1")
	one := func(of journal.Subject, build func(x *transaction, key int64)) {
		must(t, s, []journal.Lookup{{Subject: of}}, func(x *transaction) { build(x, x.key(0, of)) })
	}
	in := func(x *transaction, key int64, of journal.Subject, number int64, e journal.Episode, d ...journal.DeadLetter) {
		a := x.attempt(key, of, journal.Attempt{Number: number, Episode: e.Number, Identity: identity(), DeadLetter: e.DeadLetter})
		x.Episodes = append(x.Episodes, journal.KeyedEpisode{Key: key, Episode: e})
		for _, d := range d {
			if d.Record == 0 {
				d.Record = a.Record
			}
			x.DeadLetters = append(x.DeadLetters, journal.KeyedDeadLetter{Key: key, DeadLetter: d})
		}
	}
	one(long, func(x *transaction, key int64) { // record 1
		in(x, key, long, 1, journal.Episode{Number: 1, State: journal.Superseded}, journal.DeadLetter{ID: "settled", State: journal.DeadLetterSuperseded, Episode: 1})
	})
	one(long, func(x *transaction, key int64) { // record 2: a person began the ladder anew with it
		in(x, key, long, 2, journal.Episode{Number: 2, State: journal.Superseded}, journal.DeadLetter{ID: "reprocessed", State: journal.DeadLetterReprocessing, Episode: 2})
	})
	one(short, func(x *transaction, key int64) { // record 3: nobody dealt with it
		in(x, key, short, 1, journal.Episode{Number: 1, State: journal.Dead, DeadLetter: "open"}, journal.DeadLetter{ID: "open", State: journal.DeadLetterOpen, Episode: 1})
	})
	one(told, func(x *transaction, key int64) { // record 4
		in(x, key, told, 1, journal.Episode{Number: 1, State: journal.Scheduled, NextRetryTime: at(9)})
	})
	one(long, func(x *transaction, key int64) { // record 5
		in(x, key, long, 3, journal.Episode{Number: 3, State: journal.Reprocessing, DeadLetter: "reprocessed", NextRetryTime: at(9)})
	})
	one(told, func(x *transaction, key int64) { // record 6: the process gave up by itself
		x.DeadLetters = append(x.DeadLetters, journal.KeyedDeadLetter{Key: key, DeadLetter: journal.DeadLetter{ID: "told", State: journal.DeadLetterOpen, Episode: 1, Record: x.record()}})
		x.entry(journal.Entry{Kind: journal.OutcomeEntry, Subject: told, At: at(0), Body: "{}"})
		x.Episodes = append(x.Episodes, journal.KeyedEpisode{Key: key, Episode: journal.Episode{Number: 1, State: journal.Dead, DeadLetter: "told"}})
	})
	want := func(step string, of journal.Subject, what ...string) {
		t.Helper()
		st := story(t, s, of)
		var got []string
		for _, e := range st.Episodes {
			got = append(got, fmt.Sprint("episode ", e.Number))
		}
		for _, a := range st.Attempts {
			got = append(got, fmt.Sprint("attempt ", a.Number))
		}
		for _, d := range st.DeadLetters {
			got = append(got, "letter "+d.ID)
		}
		for _, e := range st.Entries {
			got = append(got, fmt.Sprint("entry ", e.Record))
		}
		wantSame(t, of.ID+" after "+step, got, what)
	}
	purge(t, s, 1, 9, 1)
	want("its first attempt", long, "episode 2", "episode 3", "attempt 2", "attempt 3", "letter reprocessed")
	purge(t, s, 4, 9, 3)
	want("its second attempt", long, "episode 3", "attempt 3", "letter reprocessed")
	want("its only attempt", short)
	want("its only attempt", told, "episode 1", "letter told", "entry 6")
	if _, h := recall(t, s, journal.Lookup{Subject: told}); h[0].Episode.State != journal.Dead || h[0].DeadLetter == nil || h[0].Last != nil {
		t.Errorf("what is remembered of a subject with nothing but an outcome is %+v", h[0])
	}
	if n, err := s.PendingRetries(t.Context(), "", nil, 9); err != nil || len(n) != 1 || n[0].Subject != long {
		t.Errorf("the pending retries are %+v (%v)", n, err)
	}
	purge(t, s, 1<<60, 9, 2)
	want("all", long)
	want("all", told)
	if n, err := s.PendingRetries(t.Context(), "", nil, 9); err != nil || len(n) != 0 {
		t.Errorf("the pending retries are %+v (%v)", n, err)
	}
	if head, h := recall(t, s, journal.Lookup{Subject: short, DeadLetter: "open"}); head.Record != 6 || head.Subject != 3 || h[0].Key != 0 {
		t.Errorf("the head is at record %d, subject %d, and a subject that is purged has the key %d", head.Record, head.Subject, h[0].Key)
	}
	one(short, func(x *transaction, key int64) { // the same dead letter may be born again
		in(x, key, short, 1, journal.Episode{Number: 1, State: journal.Dead, DeadLetter: "open"}, journal.DeadLetter{ID: "open", State: journal.DeadLetterOpen, Episode: 1})
	})
	want("it began anew", short, "episode 1", "attempt 1", "letter open")
}

// testPurgeCut ends a purge's context: nothing is half purged, and the next goes on.
func testPurgeCut(t *testing.T, s Store) {
	for i := range 20 {
		failure(t, s, subject(named(i)), identity())
	}
	ctx, cancel := context.WithCancel(t.Context())
	purge(t, s, 15, 4, 4)
	cancel()
	n, err := s.Purge(ctx, 15, 4)
	if err == nil || n != 0 {
		t.Fatalf("%d records were purged after the context had ended (%v)", n, err)
	}
	wantKind(t, err, journal.Unavailable)
	for _, want := range []int{4, 4, 3, 0} {
		purge(t, s, 15, 4, want)
	}
	if left := numbersOf(pages(t, s, journal.RecordFilter{}, 3)); !slices.Equal(left, []int64{16, 17, 18, 19, 20}) {
		t.Errorf("the records %v are left", left)
	}
}

// testPurgeBeside purges while many write, of the same subjects too: no record may lose its subject.
func testPurgeBeside(t *testing.T, s Store) {
	done := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		for {
			head, err := s.Head(t.Context())
			if err == nil {
				_, err = s.Purge(t.Context(), head.Record, 9)
			}
			if err != nil {
				ended <- err
				return
			}
			select {
			case <-done:
				ended <- nil
				return
			default:
			}
		}
	}()
	links, err := race(t, s, func(int, int) bool { return false })
	close(done)
	if purged := <-ended; err != nil || purged != nil {
		t.Fatal(err, purged)
	}
	head, _ := recall(t, s)
	chain(t, links, head)
	left := pages(t, s, journal.RecordFilter{}, 50)
	wantDigests(t, s, left)
	for i := range left {
		if n := recordOf(&left[i]); n != head.Record-int64(len(left)-1-i) {
			t.Fatalf("record %d is at place %d of %d that are left, the last is %d", n, i, len(left), head.Record)
		}
	}
	for _, id := range []string{"CLM-SHARED-1", named(0), named(1)} {
		st := story(t, s, subject(id))
		if len(st.Attempts) > 0 && len(st.Episodes) != 1 || len(st.Attempts) == 0 && len(st.Episodes) > 0 {
			t.Errorf("%s has %d attempts in the episodes %+v", id, len(st.Attempts), st.Episodes)
		}
	}
}
