package deadletter_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestPlanReadsTheQuery: a bounded text, and words.
func TestPlanReadsTheQuery(t *testing.T) {
	for query, want := range map[string]string{
		"":                           "|",
		" \t":                        "|",
		"CLM-1":                      "CLM-1|clm-1",
		"Guia (já existe), \"ok\"":   "Guia (já existe), \"ok\"|guia já existe ok",
		"a b c d e f g h i j":        "a b c d e f g h i j|a b c d e f g h",
		"\xff\x00":                   "\uFFFD\uFFFD|\uFFFD\uFFFD",
		strings.Repeat("é", 150):     strings.Repeat("é", 100) + "|" + strings.Repeat("é", 100),
		strings.Repeat("(", 1<<20):   strings.Repeat("(", 200) + "|",
		"x" + strings.Repeat(" ", 9): "x|x",
	} {
		p, err := deadletter.NewQuery(journal.DeadLetterFilter{Query: query}, "", 10)
		testkit.Must(t, err)
		if got := p.Search + "|" + strings.Join(p.Words, " "); got != want {
			t.Errorf("%.60q is read as %q, want %q", query, got, want)
		}
	}
}

// TestCursorsOfOthersAreRefused: one that was changed, cut or made up, and one of another list.
func TestCursorsOfOthersAreRefused(t *testing.T) {
	f := journal.DeadLetterFilter{State: deadletter.AllStates}
	p, err := deadletter.NewQuery(f, "", 5)
	testkit.Must(t, err)
	letters := p.Cursor(journal.Place{Record: 7})
	changed := []byte(letters)
	changed[3] ^= 1
	for _, bad := range []string{string(changed), letters[1:], letters + "A", letters + "=", "x", "0", strings.Repeat("A", 22),
		"' OR 1=1", strings.Repeat("x", 1<<20), "\x00", letters + "\n"} {
		if _, err := deadletter.NewQuery(f, bad, 5); !errors.Is(err, deadletter.ErrBadCursor) {
			t.Errorf("the cursor %.40q is answered with %v", bad, err)
		}
	}
	at := time.Date(2025, 1, 12, 10, 0, 0, 0, time.UTC)
	for _, other := range []journal.DeadLetterFilter{{}, {State: "all", Team: "ti"}, {State: "all", Query: "x"}, {State: "all", Policy: "ti"},
		{State: "all", Fingerprint: "ti"}, {State: "all", Since: at}, {State: "all", Until: at}, {State: "all", Sort: "age"}} {
		if _, err := deadletter.NewQuery(other, letters, 5); !errors.Is(err, deadletter.ErrBadCursor) {
			t.Errorf("a cursor of another list than %+v is answered with %v", other, err)
		}
	}
}

// TestAnAgeHasAnotherInstantOnEachPage: the cursor of a list by an age, such as 3d, leads to the next page although the
// age means a later instant there.
func TestAnAgeHasAnotherInstantOnEachPage(t *testing.T) {
	now := time.Date(2025, 1, 12, 10, 0, 0, 0, time.UTC)
	query := func(now time.Time, name, cursor string) *deadletter.Query {
		fields := deadletter.Fields(func(n string) string { return map[string]string{name: "3d"}[n] })
		f, err := deadletter.ParseFilter(fields, time.UTC, now)
		testkit.Must(t, err)
		q, err := deadletter.NewQuery(f, cursor, 5)
		if err != nil {
			t.Errorf("the next page by %s: %v", name, err)
		}
		return q
	}
	for _, name := range []string{"since", "until", "followUp"} {
		query(now.Add(time.Second), name, query(now, name, "").Cursor(journal.Place{Record: 7}))
	}
}

// TestBadFilters: lists and groups refuse alike, each with its code.
func TestBadFilters(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T, w *testkit.Fixture) {
		now := time.Now()
		for code, filters := range map[journal.Code][]journal.DeadLetterFilter{
			"invalid_state":       {{State: "dead"}, {State: "superseded"}},
			"invalid_sort":        {{Sort: "price"}},
			"invalid_reason":      {{Reason: "BAD WEATHER"}, {Reason: "timeout"}},
			"invalid_ids":         {{IDs: "x"}, {IDs: ","}, {IDs: strings.Repeat("6ba7b810-9dad-41d1-80b4-00c04fd430c8,", 200) + "6ba7b810-9dad-41d1-80b4-00c04fd430c8"}},
			"invalid_context":     {{Context: "Unimed SP"}, {Context: "=Unimed SP"}, {Context: "operadora="}, {Context: "a=\x00"}},
			"invalid_assignee":    {{Assignee: "ana\x00"}, {Assignee: "\xff"}},
			"invalid_fingerprint": {{Fingerprint: "abc"}, {Fingerprint: strings.Repeat("A", 16)}, {Fingerprint: strings.Repeat("a", 17)}},
			"invalid_period":      {{Since: now, Until: now}, {Since: now, Until: now.Add(-time.Hour)}},
			"invalid_query":       {{Query: strings.Repeat("x", 201)}},
		} {
			for _, f := range filters {
				_, _, err := w.DeadLetters.List(t.Context(), f, "", 1)
				refused(t, "list", err, code)
				_, _, err = w.DeadLetters.Groups(t.Context(), f, "", 1)
				refused(t, "groups", err, code)
			}
		}
		_, _, err := w.DeadLetters.List(t.Context(), journal.DeadLetterFilter{}, "?", 1)
		refused(t, "list", err, "invalid_cursor")
		_, _, err = w.DeadLetters.Groups(t.Context(), journal.DeadLetterFilter{}, "?", 1)
		refused(t, "groups", err, "invalid_cursor")
		_, _, err = w.DeadLetters.Runs(t.Context(), "?", 1)
		refused(t, "runs", err, "invalid_cursor")
	})
}
