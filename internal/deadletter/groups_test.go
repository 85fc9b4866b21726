package deadletter_test

import (
	"strings"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestBadFilters: lists and groups refuse alike, each with its code.
func TestBadFilters(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T, w *testkit.Fixture) {
		now := time.Now()
		for code, filters := range map[deadletter.Code][]journal.DeadLetterFilter{
			deadletter.InvalidState:       {{State: "dead"}, {State: "superseded"}},
			deadletter.InvalidSort:        {{Sort: "price"}},
			deadletter.InvalidReason:      {{Reason: "BAD WEATHER"}, {Reason: "timeout"}},
			deadletter.InvalidIDs:         {{IDs: "x"}, {IDs: ","}, {IDs: strings.Repeat("6ba7b810-9dad-41d1-80b4-00c04fd430c8,", 200) + "6ba7b810-9dad-41d1-80b4-00c04fd430c8"}},
			deadletter.InvalidContext:     {{Context: "Unimed SP"}, {Context: "=Unimed SP"}, {Context: "operadora="}, {Context: "a=\x00"}},
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
