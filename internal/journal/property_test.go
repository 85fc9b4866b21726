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

// TestInvariants of what is kept, after every call.
func TestInvariants(t *testing.T) {
	inBubble(t, func(t *rapid.T) {
		w := newWorld()
		defer w.end()
		for _, c := range lives(1, 40).Draw(t, "calls") {
			w.set(w.now.Add(c.Wait))
			before, head := w.story(&c), w.memory.End()
			got, r := w.do(&c)
			after := w.story(&c)
			appendOnly(t, &before, &after)
			switch {
			case r.How == journal.Replayed || got == "unchanged":
				if !reflect.DeepEqual(before, after) || head != w.memory.End() {
					t.Fatalf("%+v: %s, and yet something changed", c, got)
				}
			case got == "rejected":
				after.Entries = after.Entries[:len(after.Entries)-1]
				if !reflect.DeepEqual(before.Episodes, after.Episodes) || len(before.Attempts) != len(after.Attempts) {
					t.Fatalf("%+v: rejected, and yet the subject changed", c)
				}
			}
			if opened := len(after.Episodes) > len(before.Episodes); opened && r.How != journal.Fresh && (c.Kind != "review" || !c.Force || !c.Fresh) {
				t.Fatalf("%+v: %s opened an episode", c, got)
			}
			if r.Decision.ShouldRetry() && !r.Decision.NextRetryTime.After(w.now) {
				t.Fatalf("%+v: scheduled at %s, which is not ahead of %s", c, r.Decision.NextRetryTime, w.now)
			}
			consistent(t, &after)
			if c.Answer && r.Attempt != nil {
				w.journal.Answered(&r)
				time.Sleep(2 * time.Second)
			}
		}
		if err := verifyLedger(w.memory); err != nil {
			t.Fatal(err)
		}
		if n := len(eventsOf(w.memory)); n != attemptsOf(t, w) {
			t.Fatalf("%d messages in the outbox for %d attempts", n, attemptsOf(t, w))
		}
	})
}

// eventsOf are the messages that are no answers.
func eventsOf(m *testkit.Memory) []journal.Message {
	return slices.DeleteFunc(m.Outbox(), func(o journal.Message) bool { return o.Queue == journal.ReviewQueue })
}

func attemptsOf(t *rapid.T, w *world) int {
	n := 0
	for i := range ids {
		n += len(w.story(&call{ID: i}).Attempts)
	}
	return n
}

// appendOnly: attempts, entries and ended episodes stay as they are.
func appendOnly(t *rapid.T, before, after *journal.Story) {
	if len(after.Attempts) < len(before.Attempts) || !reflect.DeepEqual(before.Attempts, after.Attempts[:len(before.Attempts):len(before.Attempts)]) && len(before.Attempts) > 0 {
		t.Fatalf("attempts were changed")
	}
	if len(after.Entries) < len(before.Entries) || !slices.Equal(before.Entries, after.Entries[:len(before.Entries)]) {
		t.Fatalf("entries were changed")
	}
	for i, e := range before.Episodes {
		if !e.State.Open() && e != after.Episodes[i] {
			t.Fatalf("an ended episode was changed: %+v, then %+v", e, after.Episodes[i])
		}
	}
}

// consistent: what a story says of a subject fits together.
func consistent(t *rapid.T, s *journal.Story) {
	episodesFit(t, s)
	attemptsFit(t, s)
	lettersFit(t, s)
}

func episodesFit(t *rapid.T, s *journal.Story) {
	for i, e := range s.Episodes {
		open, last := e.State.Open(), i == len(s.Episodes)-1
		waits := e.State == journal.Scheduled || e.State == journal.Reprocessing
		switch {
		case e.Number != int64(i)+1:
			t.Fatalf("episode %d has number %d", i+1, e.Number)
		case open && !last:
			t.Fatalf("episode %d is open beside a newer one", e.Number)
		case open != e.ClosedAt.IsZero():
			t.Fatalf("episode %d is %s and closed at %s", e.Number, e.State, e.ClosedAt)
		case waits == e.NextRetryTime.IsZero():
			t.Fatalf("episode %d is %s with the next retry at %s", e.Number, e.State, e.NextRetryTime)
		case !open && e.DeadLetter != "" || (e.State == journal.Dead || e.State == journal.Reprocessing) && e.DeadLetter == "":
			t.Fatalf("episode %d is %s with the dead letter %q", e.Number, e.State, e.DeadLetter)
		case e.FirstFailure.IsZero() || e.FirstFailure.After(e.OpenedAt):
			t.Fatalf("episode %d was opened at %s, its first failure at %s", e.Number, e.OpenedAt, e.FirstFailure)
		}
	}
}

func attemptsFit(t *rapid.T, s *journal.Story) {
	number, revisions, scheduled, counts := int64(0), map[int64]int64{}, map[int64]int64{}, map[int64]int64{}
	for _, a := range s.Attempts {
		d := &a.Decision
		if a.Revision == 0 {
			if number++; a.Number != number {
				t.Fatalf("attempt %d has number %d", number, a.Number)
			}
			if a.AnalysedCount < counts[a.Episode] {
				t.Fatalf("attempt %d goes back from count %d to %d", a.Number, counts[a.Episode], a.AnalysedCount)
			}
			if _, known := counts[a.Episode]; !known {
				scheduled[a.Episode] = a.AnalysedCount // made before
			}
			counts[a.Episode] = a.AnalysedCount
			if d.ShouldRetry() {
				scheduled[a.Episode]++
			}
		} else if revisions[a.Number]++; a.Revision != revisions[a.Number] {
			t.Fatalf("revision %d of attempt %d has number %d", revisions[a.Number], a.Number, a.Revision)
		}
		if d.ShouldRetry() && (d.NextRetryTime.Sub(d.AnalysedAt) != d.Backoff.Delay || d.RetryCount != a.AnalysedCount+1) {
			t.Fatalf("attempt %d: %s after the analysis, backoff %s; count %d, then %d", a.Number, d.NextRetryTime.Sub(d.AnalysedAt), d.Backoff.Delay, a.AnalysedCount, d.RetryCount)
		}
		if d.NextRetryTime.Sub(d.FirstFailure) > total && d.ShouldRetry() {
			t.Fatalf("attempt %d: the retry at %s is later than %s after the first failure at %s", a.Number, d.NextRetryTime, total, d.FirstFailure)
		}
		if d.ShouldRetry() != (a.DeadLetter == "") {
			t.Fatalf("attempt %d: %s with the dead letter %q", a.Number, d.Outcome, a.DeadLetter)
		}
	}
	for _, e := range s.Episodes {
		if e.Scheduled != scheduled[e.Number] || e.Retries < counts[e.Number] {
			t.Fatalf("episode %d says %d scheduled and %d retries; its attempts %d and %d", e.Number, e.Scheduled, e.Retries, scheduled[e.Number], counts[e.Number])
		}
	}
}

func lettersFit(t *rapid.T, s *journal.Story) {
	living := 0
	for _, d := range s.DeadLetters {
		switch {
		case (d.Answer != 0) != (d.Delivery == journal.DeliveryPending) && d.Delivery != journal.DeliveryTaken:
			t.Fatalf("a dead letter's delivery is %q, its answer on the way %d", d.Delivery, d.Answer)
		case d.State == journal.DeadLetterOpen && (d.Answer != 0 || d.Delivery == journal.DeliveryTaken):
			t.Fatalf("an open dead letter's delivery is %q", d.Delivery)
		case d.ReviewJobKey == 0 && d.Answer != 0:
			t.Fatal("an answer is on its way to nobody")
		}
		if d.State != journal.DeadLetterOpen && d.State != journal.DeadLetterReprocessing {
			continue
		}
		living++
		e := s.Episodes[len(s.Episodes)-1]
		if e.DeadLetter != d.ID || (e.State == journal.Dead) != (d.State == journal.DeadLetterOpen) {
			t.Fatalf("a dead letter is %s, the episode %s with %q", d.State, e.State, e.DeadLetter)
		}
	}
	if living > 1 {
		t.Fatalf("%d dead letters wait for somebody", living)
	}
}

// total is the time limit of the policy that is played.
const total = 48 * time.Hour

// faults that leave a transaction its third try.
var faults = rapid.SampledFrom([]testkit.Fault{
	{Kind: journal.Unavailable}, {Kind: journal.Ambiguous}, {Kind: journal.Ambiguous, After: true},
	{Kind: journal.Unavailable, Hang: true}, {Kind: journal.Ambiguous, After: true, Hang: true}, {Twice: true},
})

// cut is a life in pieces of up to eight calls.
var cut = rapid.Custom(func(t *rapid.T) [][]call {
	var groups [][]call
	for life := lives(1, 40).Draw(t, "calls"); len(life) > 0; {
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

// countsOf are the numbers of dead letters.
func countsOf(t *rapid.T, m *testkit.Memory) []deadletter.Count {
	counts, err := m.DeadLetterCounts(context.Background())
	if err != nil {
		t.Fatal(err)
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
		s.Attempts[i].Record, s.Attempts[i].Took, s.Attempts[i].Salt = 0, 0, ""
	}
	for i := range s.DeadLetters {
		s.DeadLetters[i].Record = 0
		s.DeadLetters[i].Answer = min(s.DeadLetters[i].Answer, 1)
	}
	for i := range s.Entries {
		s.Entries[i].Record, s.Entries[i].Salt = 0, ""
	}
	// A rejection has no identity: after an ambiguous commit it may be there twice.
	s.Entries = slices.CompactFunc(s.Entries, func(a, b journal.Entry) bool { return a == b && a.Kind == journal.RejectionEntry })
	return s
}
