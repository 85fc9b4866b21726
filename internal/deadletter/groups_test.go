package deadletter_test

import (
	"strings"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestGroups: one cause, one group, the one with the most first; what the filter leaves out is not counted.
func TestGroups(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T, w *testkit.Fixture) {
		for _, oneClaim := range []string{"CLM-1-1", "CLM-1-2", "CLM-1-3"} {
			w.DieWaiting(tiss, oneClaim, "LoginInvalido: usuario "+oneClaim, 0)
		}
		w.DieWaiting(tiss, "CLM-2-1", "DUPLICATE_CLAIM", 0)
		groups, next, err := w.DeadLetters.Groups(t.Context(), journal.DeadLetterFilter{}, "", 0)
		if err != nil || len(groups) != 2 || next != "" {
			t.Fatalf("%d groups, then %q (%v)", len(groups), next, err)
		}
		want(t, "the most", groups[0].N, 3)
		want(t, "their sample", groups[0].Sample.Subject.ID, "CLM-1-3")
		want(t, "the other's sample", groups[1].Sample.Subject.ID, "CLM-2-1")
		first, next, err := w.DeadLetters.Groups(t.Context(), journal.DeadLetterFilter{}, "", 1)
		if err != nil || len(first) != 1 || next == "" {
			t.Fatalf("a page of one: %d, then %q (%v)", len(first), next, err)
		}
		second, _, err := w.DeadLetters.Groups(t.Context(), journal.DeadLetterFilter{}, next, 1)
		if err != nil || len(second) != 1 || second[0].Cause.ID != groups[1].Cause.ID {
			t.Fatalf("the page behind it: %+v (%v)", second, err)
		}
		one, _, err := w.DeadLetters.Groups(t.Context(), journal.DeadLetterFilter{Fingerprint: groups[0].Cause.ID}, "", 0)
		if err != nil || len(one) != 1 || one[0].N != 3 {
			t.Errorf("by fingerprint: %+v (%v)", one, err)
		}
		items, _, err := w.DeadLetters.List(t.Context(), journal.DeadLetterFilter{Fingerprint: groups[0].Cause.ID}, "", 0)
		if err != nil || len(items) != 3 {
			t.Errorf("%d dead letters of the cause (%v), want 3", len(items), err)
		}
	})
}

// TestListByAge: since is included, until is not.
func TestListByAge(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T, w *testkit.Fixture) {
		w.DieWaiting(tiss, "CLM-1-1", "DUPLICATE_CLAIM", 0)
		time.Sleep(time.Hour)
		at := time.Now()
		w.DieWaiting(tiss, "CLM-1-2", "DUPLICATE_CLAIM", 0)
		for f, id := range map[journal.DeadLetterFilter]string{{Since: at}: "CLM-1-2", {Until: at}: "CLM-1-1"} {
			items, _, err := w.DeadLetters.List(t.Context(), f, "", 0)
			if err != nil || len(items) != 1 || items[0].Subject.ID != id {
				t.Errorf("%+v: %+v (%v), want %s alone", f, items, err, id)
			}
		}
	})
}

// TestBadFilters: lists and groups refuse alike, each with its code.
func TestBadFilters(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T, w *testkit.Fixture) {
		now := time.Now()
		for code, filters := range map[deadletter.Code][]journal.DeadLetterFilter{
			deadletter.InvalidState:       {{State: "dead"}, {State: "superseded"}},
			deadletter.InvalidReason:      {{Reason: "BAD WEATHER"}, {Reason: "timeout"}},
			deadletter.InvalidFingerprint: {{Fingerprint: "abc"}, {Fingerprint: strings.Repeat("A", 16)}, {Fingerprint: strings.Repeat("a", 17)}},
			deadletter.InvalidPeriod:      {{Since: now, Until: now}, {Since: now, Until: now.Add(-time.Hour)}},
			deadletter.InvalidQuery:       {{Query: strings.Repeat("x", 201)}},
		} {
			for _, f := range filters {
				_, _, err := w.DeadLetters.List(t.Context(), f, "", 0)
				refused(t, "list", err, code)
				_, _, err = w.DeadLetters.Groups(t.Context(), f, "", 0)
				refused(t, "groups", err, code)
			}
		}
		_, _, err := w.DeadLetters.Groups(t.Context(), journal.DeadLetterFilter{Since: now}, "", 0)
		refused(t, "groups by age", err, deadletter.InvalidPeriod)
		for _, test := range []struct {
			cursor string
			limit  int
			code   deadletter.Code
		}{{"?", 0, deadletter.InvalidCursor}, {"", -1, deadletter.InvalidLimit}, {"", 201, deadletter.InvalidLimit}} {
			_, _, err = w.DeadLetters.List(t.Context(), journal.DeadLetterFilter{}, test.cursor, test.limit)
			refused(t, "list", err, test.code)
			_, _, err = w.DeadLetters.Groups(t.Context(), journal.DeadLetterFilter{}, test.cursor, test.limit)
			refused(t, "groups", err, test.code)
		}
	})
}
