package review_test

import (
	"strings"
	"testing"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

// TestGroups: one cause, one group, the one with the most first; what the filter leaves out is not counted.
func TestGroups(t *testing.T) {
	play(t, func(w *world) {
		for _, claim := range []string{"CLM-1-1", "CLM-1-2", "CLM-1-3"} {
			w.dead(tiss, claim, 0, "Senha incorreta para o usuario "+claim)
		}
		w.dead(tiss, "CLM-2-1", 0, "DUPLICATE_CLAIM")
		groups, next, err := w.Groups(t.Context(), journal.DeadLetterFilter{}, "", 0)
		if err != nil || len(groups) != 2 || next != "" {
			t.Fatalf("%d groups, then %q (%v)", len(groups), next, err)
		}
		want(t, "the most", groups[0].N, 3)
		want(t, "their sample", groups[0].Sample.Subject.ID, "CLM-1-3")
		want(t, "the other's sample", groups[1].Sample.Subject.ID, "CLM-2-1")
		first, next, err := w.Groups(t.Context(), journal.DeadLetterFilter{}, "", 1)
		if err != nil || len(first) != 1 || next == "" {
			t.Fatalf("a page of one: %d, then %q (%v)", len(first), next, err)
		}
		second, _, err := w.Groups(t.Context(), journal.DeadLetterFilter{}, next, 1)
		if err != nil || len(second) != 1 || second[0].Cause.ID != groups[1].Cause.ID {
			t.Fatalf("the page behind it: %+v (%v)", second, err)
		}
		one, _, err := w.Groups(t.Context(), journal.DeadLetterFilter{Fingerprint: groups[0].Cause.ID}, "", 0)
		if err != nil || len(one) != 1 || one[0].N != 3 {
			t.Errorf("by fingerprint: %+v (%v)", one, err)
		}
		items, _, err := w.List(t.Context(), journal.DeadLetterFilter{Fingerprint: groups[0].Cause.ID}, "", 0)
		if err != nil || len(items) != 3 {
			t.Errorf("%d dead letters of the cause (%v), want 3", len(items), err)
		}
	})
}

// TestListByAge: since is included, until is not.
func TestListByAge(t *testing.T) {
	play(t, func(w *world) {
		w.dead(tiss, "CLM-1-1", 0, "DUPLICATE_CLAIM")
		time.Sleep(time.Hour)
		at := time.Now()
		w.dead(tiss, "CLM-1-2", 0, "DUPLICATE_CLAIM")
		for f, id := range map[journal.DeadLetterFilter]string{{Since: at}: "CLM-1-2", {Until: at}: "CLM-1-1"} {
			items, _, err := w.List(t.Context(), f, "", 0)
			if err != nil || len(items) != 1 || items[0].Subject.ID != id {
				t.Errorf("%+v: %+v (%v), want %s alone", f, items, err, id)
			}
		}
	})
}

// TestBadFilters: lists and groups refuse alike, each with its code.
func TestBadFilters(t *testing.T) {
	play(t, func(w *world) {
		now := time.Now()
		for code, filters := range map[review.Code][]journal.DeadLetterFilter{
			review.InvalidState:       {{State: "dead"}},
			review.InvalidReason:      {{Reason: "BAD WEATHER"}},
			review.InvalidFingerprint: {{Fingerprint: "abc"}, {Fingerprint: strings.Repeat("A", 16)}, {Fingerprint: strings.Repeat("a", 17)}},
			review.InvalidPeriod:      {{Since: now, Until: now}, {Since: now, Until: now.Add(-time.Hour)}},
			review.InvalidQuery:       {{Query: strings.Repeat("x", 201)}},
		} {
			for _, f := range filters {
				_, _, err := w.List(t.Context(), f, "", 0)
				wantRefusal(t, "list", err, code)
				_, _, err = w.Groups(t.Context(), f, "", 0)
				wantRefusal(t, "groups", err, code)
			}
		}
		_, _, err := w.Groups(t.Context(), journal.DeadLetterFilter{Since: now}, "", 0)
		wantRefusal(t, "groups by age", err, review.InvalidPeriod)
		_, _, err = w.Groups(t.Context(), journal.DeadLetterFilter{}, "?", 0)
		wantRefusal(t, "groups behind nothing", err, review.InvalidCursor)
		_, _, err = w.Groups(t.Context(), journal.DeadLetterFilter{}, "", 201)
		wantRefusal(t, "too many groups", err, review.InvalidLimit)
	})
}
