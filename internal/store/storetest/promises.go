package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

func asStoreError(err error, e **journal.StoreError) bool { return errors.As(err, e) }

func testEmpty(t *testing.T, s Store) {
	head, histories := recall(t, s, journal.Lookup{Subject: subject("CLM-0-1"), Identity: identity(), DeadLetter: "none"})
	wantSame(t, "the head of an empty journal", head, journal.Head{})
	wantSame(t, "the history of a subject that is not known", histories, make([]journal.History, 1))
	if st, found, err := s.Story(t.Context(), subject("CLM-0-1")); err != nil || found {
		t.Errorf("a subject that is not known has the story %+v (%v)", st, err)
	}
	if n, err := s.CountAttempts(t.Context(), subject("CLM-0-1")); err != nil || n != 0 {
		t.Errorf("a subject that is not known has %d attempts (%v)", n, err)
	}
	if p, err := s.PendingRetries(t.Context(), "", nil, 10); err != nil || len(p) != 0 {
		t.Errorf("an empty journal has the pending retries %v (%v)", p, err)
	}
}

// testInvalid breaks every rule that a store watches over, beside rows that are sound.
func testInvalid(t *testing.T, s Store) {
	known, sound := subject("CLM-1-1"), subject("CLM-1-2")
	first := identity()
	failure(t, s, known, first)
	head, _ := recall(t, s)
	before := story(t, s, known)
	for name, spoil := range map[string]func(c *journal.Changes){
		"an attempt that is there":           func(c *journal.Changes) { c.Attempts[0].Attempt.Number, c.Attempts[0].Attempt.Identity = 1, first },
		"a record that is there":             func(c *journal.Changes) { c.Attempts[0].Attempt.Record = 1 },
		"a subject that is known":            func(c *journal.Changes) { c.Subjects[0].Subject = known },
		"a key that is taken":                func(c *journal.Changes) { c.Subjects[0].Key = 1 },
		"a link that leaves a gap":           func(c *journal.Changes) { c.Link.Number++ },
		"a link that is there":               func(c *journal.Changes) { c.Link.Number-- },
		"a link whose records leave a gap":   func(c *journal.Changes) { c.Link.First++ },
		"a link with a digest too many":      func(c *journal.Changes) { c.Link.Digests = append(c.Link.Digests, journal.Digest{}) },
		"a link with another hash":           func(c *journal.Changes) { c.Link.Hash[0]++ },
		"an entry whose record is there too": func(c *journal.Changes) { c.Entries = append(c.Entries, c.Entries[0]) },
	} {
		_, err := transact(t.Context(), s, []journal.Lookup{{Subject: known}, {Subject: sound}}, func(x *transaction) {
			x.fail(0, known, identity())
			x.fail(1, sound, identity())
			x.entry(journal.Entry{Kind: journal.ReviewEntry, Subject: sound, At: at(1), Body: "{}"})
			x.Outbox = append(x.Outbox, journal.Message{ID: "1", Queue: "q", At: at(1)})
			x.changes()
			spoil(&x.Changes)
			x.Answered, x.sealed = []journal.Run{{First: 1, Last: 1}}, true
		})
		if err == nil {
			t.Fatalf("%s was saved", name)
		}
		t.Run(name, func(t *testing.T) {
			wantKind(t, err, journal.Invalid)
			now, histories := recall(t, s, journal.Lookup{Subject: known, Identity: first}, journal.Lookup{Subject: sound})
			wantSame(t, "the head after it", now, head)
			wantSame(t, "the history of a subject beside it", histories[1], journal.History{})
			if histories[0].SameAnswered {
				t.Error("what was answered is marked")
			}
			wantSame(t, "the story after it", story(t, s, known), before)
		})
	}
}

func testNoChanges(t *testing.T, s Store) {
	failure(t, s, subject("CLM-2-1"), identity())
	before, _ := recall(t, s)
	if err := s.Transact(t.Context(), nil, func(journal.Head, []journal.History) *journal.Changes { return nil }); err != nil {
		t.Fatal(err)
	}
	after, _ := recall(t, s)
	wantSame(t, "the head", after, before)
}

func testCancelled(t *testing.T, s Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := transact(ctx, s, []journal.Lookup{{Subject: subject("CLM-3-1")}}, func(x *transaction) { x.fail(0, subject("CLM-3-1"), identity()) })
	if err == nil {
		t.Fatal("a transaction was saved after its context had ended")
	}
	wantKind(t, err, journal.Unavailable)
	wantKind(t, s.Probe(ctx), journal.Unavailable)
	_, _, err = s.Story(ctx, subject("CLM-3-1"))
	wantKind(t, err, journal.Unavailable)
	// One that ends while the transaction is decided saves nothing either, and holds nobody up.
	during, cancel := context.WithCancel(t.Context())
	_, err = transact(during, s, []journal.Lookup{{Subject: subject("CLM-3-1")}}, func(x *transaction) {
		x.fail(0, subject("CLM-3-1"), identity())
		cancel()
	})
	if err == nil {
		t.Fatal("a transaction was saved whose context ended before its commit")
	}
	if head, _ := recall(t, s); head.Record != 0 {
		t.Errorf("the head is at record %d, want 0", head.Record)
	}
	failure(t, s, subject("CLM-3-1"), identity())
}

// testSame looks for each of many attempts of one subject by its identity.
func testSame(t *testing.T, s Store) {
	of := subject("CLM-4-1")
	const attempts = 300
	ids := make([]journal.Identity, attempts)
	for i := range ids {
		ids[i] = identity()
		failure(t, s, of, ids[i])
	}
	must(t, s, []journal.Lookup{{Subject: of}}, func(x *transaction) { // revisions of the eighth, the ninth's first
		for revision := int64(1); revision <= 2; revision++ {
			x.attempt(x.histories[0].Key, of, journal.Attempt{Number: 8, Revision: revision, Episode: 1, Identity: ids[7], Error: fmt.Sprint("revision ", revision)})
		}
	})
	for i, id := range ids {
		_, histories := recall(t, s, journal.Lookup{Subject: of, Identity: id}, journal.Lookup{Subject: subject("CLM-4-2"), Identity: id})
		h := &histories[0]
		switch {
		case h.Same == nil || h.Same.Number != int64(i)+1 || h.Same.Identity != id:
			t.Fatalf("attempt %d was found as %+v", i+1, h.Same)
		case h.Last == nil || h.Last.Number != attempts || h.Attempts != attempts:
			t.Fatalf("the last attempt is %+v, the number of attempts %d, want %d", h.Last, h.Attempts, attempts)
		case i == 7 && (h.Same.Revision != 2 || h.Same.Error != "revision 2"):
			t.Fatalf("the eighth attempt was found in revision %d, want 2", h.Same.Revision)
		case histories[1].Same != nil:
			t.Fatal("another subject's attempt was found")
		}
	}
	if _, histories := recall(t, s, journal.Lookup{Subject: of, Identity: identity()}); histories[0].Same != nil {
		t.Errorf("an identity that is not known was found at attempt %d", histories[0].Same.Number)
	}
	if _, histories := recall(t, s, journal.Lookup{Subject: of}); histories[0].Same != nil {
		t.Errorf("no identity was found at attempt %d", histories[0].Same.Number)
	}
	if n, err := s.CountAttempts(t.Context(), of); err != nil || n != attempts {
		t.Errorf("counted %d attempts (%v), want %d: revisions are none", n, err, attempts)
	}
}

// testAgain runs a transaction again as the journal does after a commit of which nobody knows.
func testAgain(t *testing.T, s Store) {
	lookups := make([]journal.Lookup, 40)
	for i := range lookups {
		lookups[i] = journal.Lookup{Subject: subject(named(i)), Identity: identity()}
	}
	for range 3 {
		must(t, s, lookups, func(x *transaction) {
			for i := range lookups {
				if x.histories[i].Same == nil {
					x.fail(i, lookups[i].Subject, lookups[i].Identity)
				}
			}
		})
	}
	if head, _ := recall(t, s); head.Record != 40 || head.Link != 1 || head.Subject != 40 {
		t.Errorf("the head is at link %d, record %d, subject %d; want 1, 40, 40", head.Link, head.Record, head.Subject)
	}
	for _, l := range lookups {
		if st := story(t, s, l.Subject); len(st.Attempts) != 1 || len(st.Episodes) != 1 {
			t.Fatalf("%s has %d attempts and %d episodes, want 1 and 1", l.Subject.ID, len(st.Attempts), len(st.Episodes))
		}
	}
}

// testAnswered marks runs, and marks them again as the journal does after an ambiguous commit.
func testAnswered(t *testing.T, s Store) {
	of := subject("CLM-5-1")
	ids := make([]journal.Identity, 12)
	for i := range ids {
		ids[i] = identity()
		failure(t, s, of, ids[i])
	}
	runs := []journal.Run{{First: 2, Last: 4}, {First: 7, Last: 7}, {First: 10, Last: 11}}
	for range 2 {
		must(t, s, nil, func(x *transaction) { x.Answered = runs })
	}
	for i, id := range ids {
		record := int64(i) + 1
		want := slices.ContainsFunc(runs, func(r journal.Run) bool { return r.First <= record && record <= r.Last })
		if _, h := recall(t, s, journal.Lookup{Subject: of, Identity: id}); h[0].Same == nil || h[0].SameAnswered != want {
			t.Errorf("record %d is answered: %t, want %t", record, h[0].SameAnswered, want)
		}
	}
	if head, _ := recall(t, s); head.Link != int64(len(ids)) {
		t.Errorf("the ledger has %d links, want %d: marks are no link", head.Link, len(ids))
	}
}

// testAnsweredEarlier marks the first revision only: its late answer was taken when another worker had made
// the second.
func testAnsweredEarlier(t *testing.T, s Store) {
	of, id := subject("CLM-6-1"), identity()
	failure(t, s, of, id)
	must(t, s, []journal.Lookup{{Subject: of}}, func(x *transaction) {
		x.attempt(x.histories[0].Key, of, journal.Attempt{Number: 1, Revision: 1, Episode: 1, Identity: id})
	})
	must(t, s, nil, func(x *transaction) { x.Answered = []journal.Run{{First: 1, Last: 1}} })
	_, h := recall(t, s, journal.Lookup{Subject: of, Identity: id})
	if h[0].Same == nil || h[0].Same.Revision != 1 || !h[0].SameAnswered {
		t.Errorf("the attempt was found in %+v, answered %t; want revision 1, answered", h[0].Same, h[0].SameAnswered)
	}
}

func testDeadLetters(t *testing.T, s Store) {
	of, other := subject("CLM-7-1"), subject("CLM-7-2")
	id := identity()
	letter := func(key int64, name string, state journal.DeadLetterState) journal.KeyedDeadLetter {
		return journal.KeyedDeadLetter{Key: key, DeadLetter: journal.DeadLetter{ID: name, State: state, Episode: 1, Record: 1, Outcome: decision.PermanentError, CreatedAt: at(0), ChangedAt: at(1)}}
	}
	must(t, s, []journal.Lookup{{Subject: of}, {Subject: other}}, func(x *transaction) {
		mine, theirs := x.key(0, of), x.key(1, other)
		x.attempt(mine, of, journal.Attempt{Number: 1, Episode: 1, Identity: id, DeadLetter: "old"})
		x.Episodes = append(x.Episodes,
			journal.KeyedEpisode{Key: mine, Episode: journal.Episode{Number: 1, State: journal.Superseded}},
			journal.KeyedEpisode{Key: mine, Episode: journal.Episode{Number: 2, State: journal.Dead, DeadLetter: "new"}},
			journal.KeyedEpisode{Key: theirs, Episode: journal.Episode{Number: 1, State: journal.Recovered}})
		x.DeadLetters = append(x.DeadLetters, letter(mine, "old", journal.DeadLetterOpen), letter(mine, "new", journal.DeadLetterOpen), letter(theirs, "theirs", journal.DeadLetterOpen))
	})
	must(t, s, []journal.Lookup{{Subject: of}}, func(x *transaction) {
		x.DeadLetters = append(x.DeadLetters, letter(x.histories[0].Key, "old", journal.DeadLetterDiscarded))
		x.entry(journal.Entry{Kind: journal.ReviewEntry, Subject: of, At: at(2), Body: "{}"})
	})
	for _, tt := range []struct {
		of          journal.Subject
		asked, want string
	}{{of, "", "new"}, {of, "new", "new"}, {of, "old", "old"}, {of, "theirs", ""}, {of, "nobody's", ""}, {other, "", ""}, {other, "theirs", "theirs"}, {other, "old", ""}} {
		_, h := recall(t, s, journal.Lookup{Subject: tt.of, Identity: id, DeadLetter: tt.asked})
		got := ""
		if d := h[0].DeadLetter; d != nil {
			got = d.ID
		}
		if got != tt.want {
			t.Errorf("%s was asked for dead letter %q and told %q, want %q", tt.of.ID, tt.asked, got, tt.want)
		}
		if tt.of == of && h[0].SameDeadLetter != journal.DeadLetterDiscarded {
			t.Errorf("the same attempt's dead letter is %q, want discarded", h[0].SameDeadLetter)
		}
	}
}

func testPending(t *testing.T, s Store) {
	type row struct {
		policy string
		at     int64
		state  journal.State
	}
	rows := []row{{"a", 50, journal.Scheduled}, {"b", 10, journal.Reprocessing}, {"a", 10, journal.Scheduled}, {"a", 10, journal.Recovered},
		{"b", 10, journal.Scheduled}, {"a", -5, journal.Scheduled}, {"a", 99, journal.Dead}, {"b", 30, journal.Discarded}}
	for i, r := range rows {
		of := journal.Subject{Tenant: "t", Policy: r.policy, ID: named(i)}
		must(t, s, []journal.Lookup{{Subject: of}}, func(x *transaction) {
			x.fail(0, of, identity())
			x.Episodes[0].Episode.State, x.Episodes[0].Episode.NextRetryTime, x.Episodes[0].Episode.Retries = r.state, at(r.at), int64(i)
		})
	}
	for _, tt := range []struct {
		policy string
		want   []int64
	}{{"", []int64{5, 1, 2, 4, 0}}, {"a", []int64{5, 2, 0}}, {"b", []int64{1, 4}}, {"c", nil}} {
		for limit := 1; limit <= 6; limit++ {
			var got []int64
			var after *journal.PendingRetry
			for {
				page, err := s.PendingRetries(t.Context(), tt.policy, after, limit)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range page {
					got = append(got, p.RetryCount)
					if r := rows[p.RetryCount]; p.Subject.ID != named(int(p.RetryCount)) || !p.NextRetryTime.Equal(at(r.at)) || p.State != r.state || p.Key == 0 {
						t.Errorf("found %+v of %+v", p, r)
					}
				}
				if len(page) < limit {
					break
				}
				after = &page[limit-1]
			}
			wantSame(t, fmt.Sprintf("the order of policy %q in pages of %d", tt.policy, limit), got, tt.want)
		}
	}
}

func testStory(t *testing.T, s Store) {
	of := subject("CLM-10-1")
	for n := range 3 {
		must(t, s, []journal.Lookup{{Subject: of}}, func(x *transaction) {
			a := x.fail(0, of, identity())
			x.Episodes[0].Episode.Number = int64(n) + 1
			x.DeadLetters = append(x.DeadLetters, journal.KeyedDeadLetter{Key: x.histories[0].Key, DeadLetter: journal.DeadLetter{ID: fmt.Sprint(9 - n), Record: a.Record, State: journal.DeadLetterOpen}})
			x.entry(journal.Entry{Kind: journal.OutcomeEntry, Subject: of, At: at(int64(-n)), Body: "{}"})
		})
	}
	must(t, s, []journal.Lookup{{Subject: of}}, func(x *transaction) {
		x.attempt(x.histories[0].Key, of, journal.Attempt{Number: 1, Revision: 1, Episode: 1, Identity: identity()})
	})
	st := story(t, s, of)
	var got []string
	for _, e := range st.Episodes {
		got = append(got, fmt.Sprint("episode ", e.Number))
	}
	for _, a := range st.Attempts {
		got = append(got, fmt.Sprint("attempt ", a.Record, " ", a.Number, ".", a.Revision))
	}
	for _, d := range st.DeadLetters {
		got = append(got, "letter "+d.ID)
	}
	for _, e := range st.Entries {
		got = append(got, fmt.Sprint("entry ", e.Record))
	}
	wantSame(t, "the story", got, []string{"episode 1", "episode 2", "episode 3", "attempt 1 1.0", "attempt 3 2.0", "attempt 5 3.0", "attempt 7 1.1",
		"letter 9", "letter 8", "letter 7", "entry 2", "entry 4", "entry 6"})
}

func testNobody(t *testing.T, s Store) {
	must(t, s, nil, func(x *transaction) {
		for range 3 {
			x.entry(journal.Entry{Kind: journal.RejectionEntry, At: at(0), Body: "{}"})
		}
		x.entry(journal.Entry{Kind: journal.RejectionEntry, At: at(0), Subject: subject("CLM-11-1"), Body: `{"rejection":"INVALID_RETRY_COUNT"}`})
	})
	st, found, err := s.Story(t.Context(), subject("CLM-11-1"))
	if err != nil || !found || len(st.Entries) != 1 || len(st.Attempts) != 0 {
		t.Errorf("a subject that was only rejected has the story %+v (%v)", st, err)
	}
	if head, _ := recall(t, s); head.Record != 4 || head.Subject != 0 {
		t.Errorf("the head is at record %d, subject %d, want 4, 0", head.Record, head.Subject)
	}
}

func testProbe(t *testing.T, s Store) {
	failure(t, s, subject("CLM-12-1"), identity())
	before, _ := recall(t, s)
	for range 3 {
		if err := s.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	after, _ := recall(t, s)
	wantSame(t, "the head", after, before)
}

// testLarge saves more rows at once than any statement takes, of which some subjects are known.
func testLarge(t *testing.T, s Store) {
	for _, size := range []int{1, 7, 8, 9, 15, 16, 17, 33, 256} {
		lookups := make([]journal.Lookup, size)
		for i := range lookups {
			lookups[i] = journal.Lookup{Subject: subject(named(i)), Identity: identity()}
		}
		must(t, s, lookups, func(x *transaction) {
			for i := range lookups {
				x.fail(i, lookups[i].Subject, lookups[i].Identity)
			}
		})
		_, histories := recall(t, s, lookups...)
		for i := range histories {
			if h := &histories[i]; h.Same == nil || h.Same.Identity != lookups[i].Identity || h.Last.Decision.SubjectID != lookups[i].Subject.ID {
				t.Fatalf("of %d subjects, the one at %d has the history %+v", size, i, h)
			}
		}
	}
}

func testClosed(t *testing.T, s Store) {
	failure(t, s, subject("CLM-13-1"), identity())
	if err := s.Close(); err != nil {
		t.Fatalf("closing failed: %v", err)
	}
	_, err := transact(t.Context(), s, nil, func(*transaction) {})
	wantKind(t, err, journal.Unavailable)
	wantKind(t, s.Probe(t.Context()), journal.Unavailable)
	_, _, err = s.Story(t.Context(), subject("CLM-13-1"))
	wantKind(t, err, journal.Unavailable)
}
