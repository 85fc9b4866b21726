package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"retry-worker/internal/journal"
)

func pending(t *testing.T, s journal.Outbox, queue string, after int64, limit int) []journal.Message {
	t.Helper()
	m, err := s.Pending(t.Context(), queue, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func wantBacklog(t *testing.T, s journal.Outbox, want map[string]int64) {
	t.Helper()
	got, err := s.Backlog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "the backlog", got, want)
}

func testOutbox(t *testing.T, s Store) {
	wantBacklog(t, s, nil)
	const each = 30
	sent := map[string][]journal.Message{}
	for n := range 3 {
		add(t, s, func(x *transaction) {
			for i := range each / 3 {
				for _, queue := range []string{"a", "b"} {
					m := journal.Message{ID: fmt.Sprint(queue, n, i), Queue: queue, Key: "k", Type: "t", Body: `{"é":1}`, At: at(int64(n))}
					x.Outbox, sent[queue] = append(x.Outbox, m), append(sent[queue], m)
				}
			}
		})
	}
	wantBacklog(t, s, map[string]int64{"a": each, "b": each})
	for _, queue := range []string{"a", "b"} {
		var got []journal.Message
		after := int64(0)
		for {
			page := pending(t, s, queue, after, 7)
			for i := range page {
				if page[i].Sequence <= after {
					t.Fatalf("sequence %d comes after %d", page[i].Sequence, after)
				}
				after = page[i].Sequence
				page[i].Sequence = 0
			}
			if got = append(got, page...); len(page) < 7 {
				break
			}
		}
		wantSame(t, "what waits for "+queue, got, sent[queue])
	}
	testLetGo(t, s, each)
}

// testLetGo lets go of messages: with a record or without, twice, of some that never were, and beside new ones.
func testLetGo(t *testing.T, s Store, each int) {
	waiting := pending(t, s, "a", 0, 1000)
	gone := []int64{waiting[0].Sequence, waiting[2].Sequence}
	for range 2 {
		must(t, s, nil, func(x *transaction) { x.Published = slices.Concat(gone, []int64{1 << 60, -1, 0}) })
	}
	wantSame(t, "what waits", pending(t, s, "a", 0, 1000), append(waiting[1:2:2], waiting[3:]...))
	wantBacklog(t, s, map[string]int64{"a": int64(each) - 2, "b": int64(each)})
	var all []int64
	for _, queue := range []string{"a", "b"} {
		for _, m := range pending(t, s, queue, 0, 1000) {
			all = append(all, m.Sequence)
		}
	}
	add(t, s, func(x *transaction) {
		x.Published = all
		x.Outbox = []journal.Message{{ID: "new", Queue: "a", At: at(1)}}
	})
	wantBacklog(t, s, map[string]int64{"a": 1})
	last := pending(t, s, "a", 0, 10)
	if len(last) != 1 || last[0].ID != "new" || last[0].Sequence <= waiting[len(waiting)-1].Sequence {
		t.Errorf("%+v waits, want the new one behind all", last)
	}
	must(t, s, nil, func(x *transaction) { x.Published = []int64{last[0].Sequence} })
	add(t, s, func(x *transaction) { x.Outbox = []journal.Message{{ID: "newer", Queue: "a", At: at(1)}} })
	if again := pending(t, s, "a", 0, 10); len(again) != 1 || again[0].Sequence <= last[0].Sequence {
		t.Errorf("%+v waits: a sequence is never given again, not even in an empty outbox", again)
	}
	if none := pending(t, s, "a", 0, 0); len(none) != 0 {
		t.Errorf("none was asked for, %+v given", none)
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
