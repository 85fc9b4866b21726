package storetest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

func figure(policy string, slot int64, name journal.FigureName, bucket, value int64) journal.Figure {
	return journal.Figure{Policy: policy, Slot: slot, Name: name, Bucket: bucket, Value: value}
}

// add saves sums, beside a record, for there is no transaction without.
func add(t *testing.T, s journal.Store, build func(x *transaction)) {
	t.Helper()
	must(t, s, nil, func(x *transaction) {
		x.entry(journal.Entry{Kind: journal.RejectionEntry, At: at(0), Body: `{"a":1}`})
		build(x)
	})
}

func wantFigures(t *testing.T, s journal.Statistics, from int64, want ...journal.Figure) {
	t.Helper()
	got, err := s.Figures(t.Context(), from)
	testkit.Must(t, err)
	wantSame(t, "the figures", got, want)
}

func cause(id, policy string, first, last, failures int64) journal.Fingerprint {
	return journal.Fingerprint{ID: id, Policy: policy, Reason: "TIMEOUT", Classification: decision.Transient, Pattern: "timeout after #",
		FirstSeen: at(first), LastSeen: at(last), Failures: failures, Retried: 2 * failures, Exhausted: 3 * failures, Permanent: 4 * failures, Recovered: 5 * failures}
}

// testOpenersAdd has two openers add to the same sums and the same outbox: at once where that may be, otherwise
// one after the other.
func testOpenersAdd(t *testing.T, d Database) {
	const openers, rounds = 2, 40
	var group sync.WaitGroup
	run := func(s Store, opener int64) {
		for n := range int64(rounds) {
			_, err := transact(t.Context(), s, nil, func(x *transaction) {
				x.entry(journal.Entry{Kind: journal.RejectionEntry, At: at(0), Body: `{"a":1}`})
				x.Figures = []journal.Figure{figure("a", 1, "decisions", n%2, 1)}
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
	wantFigures(t, s, 1, figure("a", 1, "decisions", 0, openers*rounds/2), figure("a", 1, "decisions", 1, openers*rounds/2))
	got, err := s.Fingerprints(t.Context(), "", 9)
	testkit.Must(t, err)
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
