package storetest

import (
	"context"
	"testing"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// testInvalid breaks every rule that a store enforces, next to valid rows.
func testInvalid(t *testing.T, s Store) {
	known, sound := subject("CLM-1-1"), subject("CLM-1-2")
	first := identity()
	failure(t, s, known, first)
	head, _ := recall(t, s)
	before := story(t, s, known)
	for name, spoil := range map[string]func(c *journal.Changes){
		"a record that is there":              func(c *journal.Changes) { c.Records[0].Record = 1 },
		"a record of a subject without a key": func(c *journal.Changes) { c.Records[0].Key = 0 },
		"a subject that is known":             func(c *journal.Changes) { c.Subjects[1].Subject = known },
		"a link that leaves a gap":            func(c *journal.Changes) { c.Link.Number++ },
		"a link that is there":                func(c *journal.Changes) { c.Link.Number-- },
		"a link whose records leave a gap":    func(c *journal.Changes) { c.Link.First++ },
		"a link with a digest too many":       func(c *journal.Changes) { c.Link.Digests = append(c.Link.Digests, journal.Digest{}) },
		"a link with another hash":            func(c *journal.Changes) { c.Link.Hash[0]++ },
		"a record that is there twice":        func(c *journal.Changes) { c.Records[2].Record = c.Records[1].Record },
	} {
		err := transact(t.Context(), s, []journal.Lookup{{Subject: known}, {Subject: sound}}, func(x *transaction) {
			x.fail(0, identity())
			x.fail(1, identity())
			x.entries = append(x.entries, journal.Entry{Kind: journal.RejectionEntry, Subject: sound, At: at(1), Body: `{"a":1}`})
			x.Outbox = append(x.Outbox, journal.Message{ID: "1", Queue: "q", At: at(1)})
			x.Link.Answered = []journal.Run{{First: 1, Last: 1}}
			spoil(x.seal())
		})
		if err == nil {
			t.Fatalf("%s was saved", name)
		}
		t.Run(name, func(t *testing.T) {
			WantKind(t, err, journal.Invalid)
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

func testHolds(t *testing.T, s Store) {
	var links [2]journal.Link
	for i := range links {
		must(t, s, []journal.Lookup{{Subject: subject("CLM-4-1")}}, func(x *transaction) {
			x.fail(0, identity())
			links[i] = x.seal().Link
		})
	}
	other, next := links[0], links[1]
	other.Hash, next.Number = links[1].Hash, 3
	for _, l := range []journal.Link{links[0], links[1], other, next} {
		want := l.Hash == links[0].Hash || l.Number == 2
		if held, err := s.Holds(t.Context(), &l); err != nil || held != want {
			t.Errorf("the ledger has link %d with the hash %s: %t, want %t (%v)", l.Number, l.Hash, held, want, err)
		}
	}
}

func testCancelled(t *testing.T, s Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := transact(ctx, s, []journal.Lookup{{Subject: subject("CLM-3-1")}}, func(x *transaction) { x.fail(0, identity()) })
	WantKind(t, err, journal.Unavailable)
	WantKind(t, s.Probe(ctx), journal.Unavailable)
	_, _, err = s.Story(ctx, subject("CLM-3-1"))
	WantKind(t, err, journal.Unavailable)
	// A context that ends while the transaction is decided saves nothing either, and does not block.
	during, cancel := context.WithCancel(t.Context())
	err = transact(during, s, []journal.Lookup{{Subject: subject("CLM-3-1")}}, func(x *transaction) {
		x.fail(0, identity())
		cancel()
	})
	if err == nil {
		t.Fatal("a transaction was saved whose context ended before its commit")
	}
	testkit.Must(t, s.Probe(t.Context()))
	head, _ := recall(t, s)
	key := s.IdentityKey()
	wantSame(t, "the head", head, key.Start())
	failure(t, s, subject("CLM-3-1"), identity())
}

// testAnswered has two replicas record the answers they gave, as each gathered them: their runs overlap, come in any
// order, and some are of a later delivery than the recorded one.
func testAnswered(t *testing.T, s Store) {
	of, ids := subject("CLM-5-1"), make([]journal.Identity, 12)
	for i := range ids {
		ids[i] = identity()
		failure(t, s, of, ids[i])
	}
	for _, runs := range [][]journal.Run{{{First: 2, Last: 5}}, {{First: 3, Last: 3}, {First: 3, Last: 3, Until: 70}}, {{First: 3, Last: 3, Until: 60}},
		{{First: 8, Last: 8}}, {{First: 7, Last: 10}, {First: 7, Last: 7}}} {
		must(t, s, nil, func(x *transaction) { x.Link.Answered = runs })
	}
	for i, id := range ids {
		record, until := int64(i+1), int64(0)
		if record == 3 {
			until = 70
		}
		_, h := recall(t, s, journal.Lookup{Subject: of, Identity: id})
		if want := record >= 2 && record <= 5 || record >= 7 && record <= 10; h[0].SameAnswered != want || h[0].SameUntil != until {
			t.Errorf("record %d: answered %t until %d, want %t until %d", record, h[0].SameAnswered, h[0].SameUntil, want, until)
		}
	}
	Verify(t, s)
	if r, is := s.(audit.Rebuilder); is {
		testkit.Must(t, audit.Rebuild(t.Context(), r, at(9), false, nil, nil))
		if _, h := recall(t, s, journal.Lookup{Subject: of, Identity: ids[4]}); !h[0].SameAnswered {
			t.Error("record 5 is answered no more once the journal is rebuilt")
		}
		Verify(t, s)
	}
}

// testLarge saves more rows at once than a statement can take; some subjects are known.
func testLarge(t *testing.T, s Store) {
	for _, size := range []int{1, 7, 8, 9, 15, 16, 17, 33, 256} {
		lookups := make([]journal.Lookup, size)
		for i := range lookups {
			lookups[i] = journal.Lookup{Subject: subject(named(i)), Identity: identity()}
		}
		must(t, s, lookups, func(x *transaction) {
			for i := range lookups {
				x.fail(i, lookups[i].Identity)
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
	testkit.Must(t, s.Close())
	err := transact(t.Context(), s, nil, func(*transaction) {})
	WantKind(t, err, journal.Unavailable)
	WantKind(t, s.Probe(t.Context()), journal.Unavailable)
	_, _, err = s.Story(t.Context(), subject("CLM-13-1"))
	WantKind(t, err, journal.Unavailable)
}
