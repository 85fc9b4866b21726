package journal_test

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// eventsOf are the messages that are no answers.
func eventsOf(m *testkit.Memory) []journal.Message {
	return slices.DeleteFunc(m.Outbox(), func(o journal.Message) bool { return o.Queue == journal.ReviewQueue })
}

// faults that leave a transaction its third try.
var faults = rapid.SampledFrom([]testkit.Fault{
	{Kind: journal.Unavailable}, {Kind: journal.Ambiguous}, {Kind: journal.Ambiguous, After: true},
	{Kind: journal.Unavailable, Hang: true}, {Kind: journal.Ambiguous, After: true, Hang: true}, {Twice: true},
})

// cut is a life in pieces of up to eight calls.
var cut = rapid.Custom(func(t *rapid.T) [][]call {
	var groups [][]call
	for life := lives(1, 120).Draw(t, "calls"); len(life) > 0; {
		n := min(rapid.IntRange(1, 8).Draw(t, "group"), len(life))
		groups, life = append(groups, life[:n]), life[n:]
	}
	return groups
})

// TestGatheringDoesNotMatter: the same calls get the same answers and leave the same behind, one by one, in
// whatever batches, and with transactions that fail or whose commit is ambiguous.
func TestGatheringDoesNotMatter(t *testing.T) {
	inBubble(t, func(t *rapid.T) {
		alone, together := newWorld(), newWorld()
		defer alone.end()
		defer together.end()
		groups := cut.Draw(t, "groups")
		for _, group := range groups {
			group = sendable(group)
			alone.set(alone.now.Add(group[0].Wait))
			together.set(alone.now)
			together.memory.Heal()
			group = alone.see(group, together)
			for _, f := range rapid.SliceOfN(faults, 0, 2).Draw(t, "faults") {
				together.memory.Fail(1, f)
			}
			want := alone.oneByOne(group)
			got := together.atOnce(group)
			if !slices.Equal(got, want) {
				t.Fatalf("%+v\nis        %q\nshould be %q", group, got, want)
			}
		}
		for i := range ids {
			if got, want := comparable(together.story(&call{ID: i})), comparable(alone.story(&call{ID: i})); !reflect.DeepEqual(got, want) {
				t.Fatalf("leaves        %+v\nshould leave %+v", got, want)
			}
		}
		if a, b := countsOf(t, alone.memory), countsOf(t, together.memory); !slices.Equal(a, b) {
			t.Fatalf("%v dead letters, should be %v", b, a)
		}
		for _, w := range []*world{alone, together} {
			if err := verifyLedger(w.memory); err != nil {
				t.Fatal(err)
			}
		}
		if a, b := len(eventsOf(alone.memory)), len(eventsOf(together.memory)); a != b {
			t.Fatalf("%d messages, should be %d", b, a)
		}
	})
}

// see has the review jobs come that the group's reviews are about, to both worlds.
func (w *world) see(group []call, other *world) []call {
	for i := range group {
		if c := &group[i]; c.Kind == "review" && c.Seen {
			c.Kind = "seen"
			w.do(c)
			other.do(c)
			c.Kind, c.Seen = "review", false
		}
	}
	return group
}

// countsOf are the numbers of dead letters, whose records are numbered in another order.
func countsOf(t *rapid.T, m *testkit.Memory) []deadletter.Count {
	counts, err := m.DeadLetterCounts(context.Background(), journal.DeadLetterFilter{State: deadletter.AllStates})
	if err != nil {
		t.Fatal(err)
	}
	for i := range counts {
		counts[i].Last = 0
	}
	return counts
}

func (w *world) oneByOne(group []call) []string {
	var answers []string
	var recorded []journal.Recorded
	for i := range group {
		answer, r := w.do(&group[i])
		answers, recorded = append(answers, answer), append(recorded, r)
	}
	w.take(group, recorded)
	return answers
}

// atOnce has the group wait together while a transaction runs; a subject's calls keep their order.
func (w *world) atOnce(group []call) []string {
	w.memory.Delay(time.Second)
	defer w.memory.Delay(0)
	answers, recorded := make([]string, len(group)), make([]journal.Recorded, len(group))
	var all sync.WaitGroup
	for i := range group {
		all.Go(func() { answers[i], recorded[i] = w.do(&group[i]) })
		synctest.Wait()
	}
	all.Wait()
	w.take(group, recorded)
	return answers
}

// take has the engine take answers, and lets that be written.
func (w *world) take(group []call, recorded []journal.Recorded) {
	for i := range group {
		if group[i].Answer && recorded[i].Attempt != nil {
			w.journal.Answered(&recorded[i])
		}
	}
	time.Sleep(20 * time.Second) // a fault that is left may strike it
}

// sendable leaves out what is done to a dead letter that the group itself changes: whoever does it has not seen it yet.
func sendable(group []call) []call {
	var kept []call
	seen := map[int]bool{}
	for _, c := range group {
		if (c.Kind == "analyze" || c.Kind == "outcome") || !seen[c.ID] {
			kept = append(kept, c)
		}
		seen[c.ID] = true
	}
	return kept
}

// comparable is a story without the numbers that depend on what else was recorded.
func comparable(s journal.Story) journal.Story {
	for i := range s.Attempts {
		s.Attempts[i].Record, s.Attempts[i].Took = 0, 0
	}
	for i := range s.DeadLetters {
		s.DeadLetters[i].Record = 0
		s.DeadLetters[i].Answer = min(s.DeadLetters[i].Answer, 1)
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		e.Record, e.Key, e.Body = 0, 0, string(e.Told())
	}
	return s
}
