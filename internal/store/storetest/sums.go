package storetest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

func figure(policy string, slot int64, name journal.FigureName, bucket, value int64) journal.Figure {
	return journal.Figure{Policy: policy, Slot: slot, Name: name, Bucket: bucket, Value: value}
}

// add saves sums, beside a record, for there is no transaction without.
func add(t *testing.T, s journal.Store, build func(x *transaction)) {
	t.Helper()
	must(t, s, nil, func(x *transaction) {
		x.entry(journal.Entry{Kind: journal.ReviewEntry, At: at(0), Body: "{}"})
		build(x)
	})
}

func wantFigures(t *testing.T, s journal.Statistics, from int64, want ...journal.Figure) {
	t.Helper()
	got, err := s.Figures(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "the figures", got, want)
}

func testFigures(t *testing.T, s Store) {
	wantFigures(t, s, 0)
	add(t, s, func(x *transaction) {
		x.Figures = []journal.Figure{figure("a", 7, "took", 100, 1), figure("a", 7, "took", 250, 2), figure("b", 7, "took", 100, 4), figure("a", 8, "took", 100, 8),
			figure("a", 0, "dead_letters_open", 0, 3), figure("a", 7, "took", 100, 16)}
	})
	add(t, s, func(x *transaction) {
		x.Figures = []journal.Figure{figure("a", 7, "took", 100, 32), figure("a", 0, "dead_letters_open", 0, -3), figure("a", 9, "decisions", 0, 1<<40)}
	})
	open, last := figure("a", 0, "dead_letters_open", 0, 0), []journal.Figure{figure("a", 8, "took", 100, 8), figure("a", 9, "decisions", 0, 1<<40)}
	all := []journal.Figure{figure("a", 7, "took", 100, 49), figure("a", 7, "took", 250, 2), figure("b", 7, "took", 100, 4), last[0], last[1]}
	for from, want := range map[int64][]journal.Figure{-1: all, 0: all, 7: all, 8: last, 9: last[1:], 10: nil} {
		wantFigures(t, s, from, append([]journal.Figure{open}, want...)...)
	}
}

func cause(id, policy string, first, last, failures int64) journal.Fingerprint {
	return journal.Fingerprint{ID: id, Policy: policy, Reason: "TIMEOUT", Classification: decision.Transient, Pattern: "timeout after #",
		FirstSeen: at(first), LastSeen: at(last), Failures: failures, Retried: 2 * failures, Exhausted: 3 * failures, Permanent: 4 * failures, Recovered: 5 * failures}
}

func testFingerprints(t *testing.T, s Store) {
	add(t, s, func(x *transaction) {
		x.Fingerprints = []journal.Fingerprint{cause("1", "a", 10, 20, 1), cause("2", "b", 10, 10, 2), cause("3", "a", 10, 10, 1), cause("1", "a", 15, 15, 1)}
	})
	add(t, s, func(x *transaction) { x.Fingerprints = []journal.Fingerprint{cause("1", "a", 5, 15, 4)} }) // a clock that lags behind
	add(t, s, func(x *transaction) {
		later := cause("2", "b", 30, 40, 4)
		later.Pattern = "what is there stays"
		x.Fingerprints = []journal.Fingerprint{later, cause("3", "a", 12, 30, 0)}
	})
	first, second, third := cause("1", "a", 5, 20, 6), cause("2", "b", 10, 40, 6), cause("3", "a", 10, 30, 1)
	for _, tt := range []struct {
		policy string
		limit  int
		want   []journal.Fingerprint
	}{{"", 9, []journal.Fingerprint{first, second, third}}, {"a", 9, []journal.Fingerprint{first, third}}, {"b", 9, []journal.Fingerprint{second}},
		{"", 1, []journal.Fingerprint{first}}, {"", 0, nil}, {"c", 9, nil}} {
		got, err := s.Fingerprints(t.Context(), tt.policy, tt.limit)
		if err != nil {
			t.Fatal(err)
		}
		wantSame(t, "the fingerprints of policy "+tt.policy, got, tt.want)
	}
}

// testOpenersAdd has two openers add to the same sums and the same outbox: at once where that may be, otherwise
// one after the other.
func testOpenersAdd(t *testing.T, d Database) {
	const openers, rounds = 2, 40
	var group sync.WaitGroup
	run := func(s Store, opener int64) {
		for n := range int64(rounds) {
			_, err := transact(t.Context(), s, nil, func(x *transaction) {
				x.entry(journal.Entry{Kind: journal.ReviewEntry, At: at(0), Body: "{}"})
				x.Figures = []journal.Figure{figure("a", 1, "decisions", n%2, 1), figure("a", 0, "dead_letters_open", 0, 1)}
				x.Fingerprints = []journal.Fingerprint{cause("1", "a", 100-opener, 100+opener, 1)}
				x.Outbox = []journal.Message{{ID: identity().String(), Queue: "q", At: at(n)}}
			})
			if err != nil {
				t.Errorf("opener %d failed: %v", opener, err)
			}
		}
	}
	var open []Store
	for n := range int64(openers) {
		s := d.open(t)
		if open = append(open, s); !d.Exclusive {
			group.Go(func() { run(s, n) })
			continue
		}
		run(s, n)
		if n < openers-1 {
			closed(t, s)
			open = nil
		}
	}
	group.Wait()
	s := open[0]
	wantFigures(t, s, 1, figure("a", 0, "dead_letters_open", 0, openers*rounds), figure("a", 1, "decisions", 0, openers*rounds/2), figure("a", 1, "decisions", 1, openers*rounds/2))
	got, err := s.Fingerprints(t.Context(), "", 9)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, "the fingerprint", got, []journal.Fingerprint{cause("1", "a", 99, 101, openers*rounds)})
	messages, err := s.Pending(t.Context(), "q", 0, 1000)
	if err != nil || len(messages) != openers*rounds || !slices.IsSortedFunc(messages, bySequence) {
		t.Errorf("%d messages wait in order or not (%v), want %d", len(messages), err, openers*rounds)
	}
	for i, s := range open {
		if held, err := s.Lease(t.Context(), "relay", named(i), time.Minute); err != nil || held != (i == 0) {
			t.Errorf("opener %d has the lease: %t (%v)", i, held, err)
		}
	}
	for _, s := range open {
		closed(t, s)
	}
}

func bySequence(a, b journal.Message) int { return int(a.Sequence - b.Sequence) }
