package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// pages reads records page by page, and fails where a page is too long or a record out of order.
func pages(t *testing.T, s journal.Archive, f journal.RecordFilter, limit int) []journal.Record {
	t.Helper()
	var all []journal.Record
	for after := int64(0); ; {
		page, err := s.Records(t.Context(), f, after, limit)
		if err != nil {
			t.Fatalf("records behind %d could not be read: %v", after, err)
		}
		if len(page) > limit {
			t.Fatalf("%d records came, %d were asked for", len(page), limit)
		}
		for i := range page {
			if n := recordOf(&page[i]); n <= after {
				t.Fatalf("record %d comes after %d", n, after)
			} else {
				after = n
			}
		}
		if all = append(all, page...); len(page) < limit {
			return all
		}
	}
}

func recordOf(r *journal.Record) int64 {
	if r.Attempt != nil {
		return r.Attempt.Record
	}
	return r.Entry.Record
}

func numbersOf(records []journal.Record) (all []int64) {
	for i := range records {
		all = append(all, recordOf(&records[i]))
	}
	return all
}

// wantDigests fails where a record is not what the ledger vouches for.
func wantDigests(t *testing.T, s journal.Archive, records []journal.Record) {
	t.Helper()
	links, err := s.Links(t.Context(), 0, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	vouched := map[int64]journal.Digest{}
	for _, l := range links {
		for i, d := range l.Digests {
			vouched[l.First+int64(i)] = d
		}
	}
	for _, r := range records {
		var got journal.Digest
		if r.Attempt != nil {
			got = journal.DigestAttempt(r.Subject, r.Attempt)
		} else {
			got = journal.DigestEntry(r.Entry)
		}
		if got != vouched[recordOf(&r)] {
			t.Errorf("record %d is not what the ledger vouches for", recordOf(&r))
		}
	}
}

func testLinks(t *testing.T, s Store) {
	if head, err := s.Head(t.Context()); err != nil || head != (journal.Head{}) {
		t.Errorf("an empty ledger ends at %+v (%v)", head, err)
	}
	var want []journal.Link
	for n := range 10 {
		c := must(t, s, []journal.Lookup{{Subject: subject(named(n))}}, func(x *transaction) {
			x.fail(0, subject(named(n)), identity())
			for range n {
				x.entry(journal.Entry{Kind: journal.ReviewEntry, At: at(0), Body: "{}"})
			}
		})
		want = append(want, c.Link)
	}
	must(t, s, nil, func(x *transaction) { x.Answered = []journal.Run{{First: 1, Last: 1}} }) // no link
	for _, limit := range []int{1, 3, 5, 10, 11} {
		var got []journal.Link
		for after := int64(0); ; {
			page, err := s.Links(t.Context(), after, limit)
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, page...); len(page) < limit {
				break
			}
			after = page[limit-1].Number
		}
		wantSame(t, fmt.Sprintf("the ledger in pages of %d", limit), got, want)
	}
	head, err := s.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if known, _ := recall(t, s); head != known {
		t.Errorf("a reader has the ledger end at %+v, a writer at %+v", head, known)
	}
	chain(t, want, head)
	wantDigests(t, s, pages(t, s, journal.RecordFilter{}, 4))
	if none, err := s.Links(t.Context(), 0, 0); err != nil || len(none) != 0 {
		t.Errorf("no link was asked for, %d came (%v)", len(none), err)
	}
}

// testRecordsOf tells subjects apart that share all but one part of their names.
func testRecordsOf(t *testing.T, s Store) {
	var all []journal.Subject
	for _, tenant := range []string{"<default>", "a"} {
		for _, policy := range []string{"tiss-submission", "other"} {
			for _, id := range []string{"CLM-1-1", "CLM-1-2"} {
				all = append(all, journal.Subject{Tenant: tenant, Policy: policy, ID: id})
			}
		}
	}
	want := map[journal.Subject][]int64{}
	for round := range 3 {
		for i, of := range all {
			must(t, s, []journal.Lookup{{Subject: of}}, func(x *transaction) {
				want[of] = append(want[of], x.fail(0, of, identity()).Record)
				if (i+round)%2 == 0 {
					want[of] = append(want[of], x.record())
					x.entry(journal.Entry{Kind: journal.OutcomeEntry, Subject: of, At: at(0), Body: "{}"})
				}
				want[journal.Subject{}] = append(want[journal.Subject{}], want[of][len(want[of])-len(x.Link.Digests):]...)
			})
		}
		add(t, s, func(x *transaction) { want[journal.Subject{}] = append(want[journal.Subject{}], x.record()-1) }) // of nobody
	}
	for of, numbers := range want {
		for _, limit := range []int{1, 2, 3, 4, 5, 100} {
			got := pages(t, s, journal.RecordFilter{Subject: of}, limit)
			wantSame(t, fmt.Sprintf("the records of %+v in pages of %d", of, limit), numbersOf(got), numbers)
			for i := range got {
				if of != (journal.Subject{}) && got[i].Subject != of {
					t.Errorf("record %d of %+v is said to be of %+v", numbers[i], of, got[i].Subject)
				}
			}
			wantDigests(t, s, got)
		}
	}
	for _, of := range []journal.Subject{{Tenant: "a"}, {ID: "CLM-1-1"}, {Tenant: "b", Policy: "other", ID: "CLM-1-1"}} {
		if got := pages(t, s, journal.RecordFilter{Subject: of}, 5); len(got) != 0 {
			t.Errorf("%+v has the records %v", of, numbersOf(got))
		}
	}
	if none, err := s.Records(t.Context(), journal.RecordFilter{}, 0, 0); err != nil || len(none) != 0 {
		t.Errorf("no record was asked for, %d came (%v)", len(none), err)
	}
}

// written saves records with these instants in one link that is written at another.
func written(t *testing.T, s journal.Store, link int64, instants ...int64) {
	t.Helper()
	must(t, s, []journal.Lookup{{Subject: subject("CLM-1-1")}}, func(x *transaction) {
		key := x.key(0, subject("CLM-1-1"))
		for i, ms := range instants {
			if i%2 == 0 {
				x.histories[0].Attempts++
				x.attempt(key, subject("CLM-1-1"), journal.Attempt{Number: x.histories[0].Attempts, Episode: 1, Identity: identity(), ReceivedAt: at(ms),
					Decision: decision.Decision{Outcome: decision.Retry, AnalysedAt: at(ms)}})
			} else {
				x.entry(journal.Entry{Kind: journal.OutcomeEntry, Subject: subject("CLM-1-1"), At: at(ms), Body: "{}"})
			}
		}
		x.Link.At = at(link)
		x.Link, x.sealed = x.Link.After(x.head), true
	})
}

// testRecordsWithin asks for periods where clocks differ by minutes, so that instants are not in order, and
// where a policy's precision puts an attempt's instant before its link's.
func testRecordsWithin(t *testing.T, s Store) {
	const minute = 60_000
	links := []int64{0, 5 * minute, 1 * minute, 6 * minute, 2 * minute, 3 * minute, 9 * minute}
	var instants []int64
	for i, ms := range links {
		of := []int64{ms, ms - 1, ms, ms - ms%minute + int64(i)}[:1+i%4]
		written(t, s, ms, of...)
		instants = append(instants, of...)
	}
	bounds := []time.Time{{}, at(-1), at(0), at(1), at(minute - 1), at(minute), at(minute).Add(time.Microsecond), at(2 * minute), at(3*minute - 1),
		at(5 * minute), at(6 * minute), at(9*minute - 1), at(9 * minute), at(9*minute + 1), time.UnixMilli(1), at(1 << 40)}
	for _, since := range bounds {
		for _, until := range bounds {
			var want []int64
			for i, ms := range instants {
				if !at(ms).Before(since) && (until.IsZero() || at(ms).Before(until)) {
					want = append(want, int64(i)+1)
				}
			}
			for _, limit := range []int{1, 2, 5, 100} {
				for _, of := range []journal.Subject{{}, subject("CLM-1-1")} {
					f := journal.RecordFilter{Since: since, Until: until, Subject: of}
					if got := numbersOf(pages(t, s, f, limit)); !slices.Equal(got, want) {
						t.Fatalf("from %s until %s, in pages of %d, of %q, there are the records %v, want %v", since, until, limit, of.ID, got, want)
					}
				}
			}
		}
	}
}

func testLastBefore(t *testing.T, s Store) {
	wantLastBefore := func(before time.Time, want int64) {
		t.Helper()
		if n, err := s.LastRecordBefore(t.Context(), before); err != nil || n != want {
			t.Errorf("the last record before %s is %d (%v), want %d", before, n, err, want)
		}
	}
	wantLastBefore(at(1<<40), 0)
	written(t, s, 10, 10, 10)
	written(t, s, 30, 30)
	written(t, s, 20, 20, 20, 20) // by a clock that lags behind
	written(t, s, 40, 5)          // what counts is when the link was written
	for ms, want := range map[int64]int64{5: 0, 10: 0, 11: 2, 20: 2, 21: 2, 30: 2, 31: 6, 40: 6, 41: 7, 1 << 40: 7} {
		wantLastBefore(at(ms), want)
	}
	wantLastBefore(time.Time{}, 0)
	wantLastBefore(at(10).Add(time.Microsecond), 2)
}
