package testkit_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

var (
	at    = time.Date(2025, 1, 12, 10, 0, 0, 0, time.UTC)
	claim = journal.Subject{Tenant: "<default>", Policy: "tiss-submission", ID: "CLM-1-1"}
)

// attempt of a subject, with the number n.
func attempt(s journal.Subject, n int64) journal.Entry {
	return journal.EntryOf(s, &journal.Attempt{Number: n, Episode: 1, Identity: journal.Identity{byte(n)}, ReceivedAt: at,
		Decision: decision.Decision{Outcome: decision.Retry, NextRetryTime: at.Add(time.Hour), AnalysedAt: at, FirstFailure: at}})
}

// first makes the changes that tell of a subject for the first time.
func first(s journal.Subject) func(journal.Head, []journal.History) *journal.Changes {
	return func(head journal.Head, _ []journal.History) *journal.Changes {
		c, err := journal.Append(head, at, []journal.Lookup{{Subject: s}}, make([]journal.History, 1), attempt(s, 1))
		if err != nil {
			panic(err)
		}
		return c
	}
}

func save(t *testing.T, m *testkit.Memory, decide func(journal.Head, []journal.History) *journal.Changes, lookups ...journal.Lookup) error {
	t.Helper()
	return m.Transact(t.Context(), lookups, decide)
}

func kind(t *testing.T, err error) journal.Kind {
	t.Helper()
	var e *journal.StoreError
	if !errors.As(err, &e) {
		t.Fatalf("%v is no StoreError", err)
	}
	return e.Kind
}

// TestRefusesWhatDoesNotFit: a real store's constraints, and the ledger's.
func TestRefusesWhatDoesNotFit(t *testing.T) {
	for name, spoil := range map[string]func(c *journal.Changes){
		"a digest too many":       func(c *journal.Changes) { c.Link.Digests = append(c.Link.Digests, journal.Digest{}) },
		"a gap in the links":      func(c *journal.Changes) { c.Link.Number++ },
		"a gap in the records":    func(c *journal.Changes) { c.Link.First++ },
		"another hash":            func(c *journal.Changes) { c.Link.Hash[0]++ },
		"a record that is wrong":  func(c *journal.Changes) { c.Records[0].Entry.Record++ },
		"a subject that is known": func(c *journal.Changes) { c.Subjects[0].Subject = claim },
		"a key that is not next":  func(c *journal.Changes) { c.Subjects[0].Key++ },
		"rows of nobody":          func(c *journal.Changes) { c.Records[0].Key = 9 },
		"dead letters of nobody": func(c *journal.Changes) {
			c.DeadLetters = append(c.DeadLetters, journal.KeyedDeadLetter{Key: 9})
		},
		"a marked subject": func(c *journal.Changes) { c.Subjects[0].Subject.ID = "CLM-" + testkit.Unstorable + "-1" },
	} {
		m := testkit.NewMemory()
		if err := save(t, m, first(claim)); err != nil {
			t.Fatal(err)
		}
		head := m.End()
		err := save(t, m, func(head journal.Head, _ []journal.History) *journal.Changes {
			c := first(journal.Subject{ID: "CLM-2-1"})(head, nil)
			spoil(c)
			return c
		})
		if err == nil || kind(t, err) != journal.Invalid || m.End() != head || len(m.Subjects()) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
	m := testkit.NewMemory()
	err := save(t, m, first(claim), journal.Lookup{Subject: claim}, journal.Lookup{Subject: claim})
	if err == nil || kind(t, err) != journal.Invalid {
		t.Errorf("a subject that is looked up twice: %v", err)
	}
}

func TestCopiesInAndOut(t *testing.T) {
	m := testkit.NewMemory()
	var c *journal.Changes
	if err := save(t, m, func(h journal.Head, hs []journal.History) *journal.Changes { c = first(claim)(h, hs); return c }); err != nil {
		t.Fatal(err)
	}
	want, _, _ := m.Story(t.Context(), claim)
	c.Records[0].Entry.Body, c.Link.Digests[0] = "changed", journal.Digest{}
	got, _, _ := m.Story(t.Context(), claim)
	got.Attempts[0].Error, got.Episodes[0].Retries = "changed", 9
	m.Ledger()[0].Digests[0] = journal.Digest{}
	err := save(t, m, func(_ journal.Head, hs []journal.History) *journal.Changes {
		hs[0].Last.Error, hs[0].Same.Error = "changed", "changed"
		return nil
	}, journal.Lookup{Subject: claim, Identity: journal.Identity{1}})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := m.Story(t.Context(), claim); !reflect.DeepEqual(got, want) || (m.Ledger()[0].Digests[0] == journal.Digest{}) {
		t.Errorf("what is kept was changed from outside: %+v", got)
	}
}

func TestReader(t *testing.T) {
	m := testkit.NewMemory()
	if _, known, err := m.Story(t.Context(), claim); known || err != nil {
		t.Error("an empty store tells a story")
	}
	subjects := []journal.Subject{claim, {Policy: "other", ID: "CLM-1-1"}, {Tenant: "b", Policy: "tiss-submission", ID: "CLM-1-1"}}
	for _, s := range subjects {
		if err := save(t, m, first(s)); err != nil {
			t.Fatal(err)
		}
	}
	// Three of the same instant, two at a time: in the order of their keys, none twice.
	page, err := m.PendingRetries(t.Context(), "", nil, 2)
	if err != nil || len(page) != 2 || page[0].Key != 1 || page[1].Key != 2 {
		t.Fatalf("first page %+v, %v", page, err)
	}
	if page, _ = m.PendingRetries(t.Context(), "", &page[1], 2); len(page) != 1 || page[0].Subject != subjects[2] {
		t.Errorf("second page %+v", page)
	}
	if page, _ = m.PendingRetries(t.Context(), "other", nil, 9); len(page) != 1 || page[0].Key != 2 || page[0].State != journal.Scheduled {
		t.Errorf("of a policy %+v", page)
	}
	if page, _ = m.PendingRetries(t.Context(), "", nil, 0); len(page) != 0 {
		t.Errorf("none was asked for: %+v", page)
	}
}

func TestFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := testkit.NewMemory()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		m.Fail(1, testkit.Fault{})
		m.Fail(1, testkit.Fault{Kind: journal.Ambiguous, After: true})
		m.Fail(1, testkit.Fault{Hang: true})
		if err := save(t, m, first(claim)); kind(t, err) != journal.Unavailable || m.End().Record != 0 || err.Error() == "" {
			t.Error("the first is to fail before saving")
		}
		if err := save(t, m, first(claim)); kind(t, err) != journal.Ambiguous || m.End().Record != 1 {
			t.Error("the second is to fail after saving")
		}
		began := time.Now()
		if err := m.Transact(short, nil, first(claim)); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Error("the third is to hang")
		}
		m.SetDown(true)
		_, _, err := m.Story(t.Context(), claim)
		_, err2 := m.CountAttempts(t.Context(), claim)
		_, err3 := m.PendingRetries(t.Context(), "", nil, 1)
		for _, err := range []error{err, err2, err3, m.Probe(t.Context()), save(t, m, first(claim))} {
			if err == nil || kind(t, err) != journal.Unavailable {
				t.Errorf("down: %v", err)
			}
		}
		m.SetDown(false)
		if err := m.Probe(t.Context()); err != nil {
			t.Error(err)
		}
		if err := m.Probe(short); kind(t, err) != journal.Unavailable {
			t.Error("a probe outlives its context")
		}
		m.Delay(time.Minute)
		m.Fail(1, testkit.Fault{Twice: true})
		calls := 0
		began = time.Now()
		if err := save(t, m, func(journal.Head, []journal.History) *journal.Changes { calls++; return nil }); err != nil || calls != 2 || time.Since(began) != time.Minute {
			t.Errorf("decided %d times, %v", calls, err)
		}
		if n := len(m.Transactions()); n != 5 {
			t.Errorf("%d transactions", n)
		}
	})
}

func TestStart(t *testing.T) {
	m := testkit.NewMemory()
	p := decisiontest.TISSSubmission()
	f, _ := p.Read(decision.Variables{ID: `"CLM-1-1"`, Error: `"TIMEOUT"`})
	j := testkit.StartJournal(t, m, func() time.Time { return at })
	r, err := j.Analyze(t.Context(), &journal.Analysis{Subject: claim, Policy: p, Failure: &f, ReceivedAt: at})
	if err != nil || r.How != journal.Fresh {
		t.Errorf("%s, %v", r.How, err)
	}
}
