package deadletter_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestGroups compares groups, page by page, with a list of all dead letters, which it groups itself.
func TestGroups(t *testing.T) {
	testkit.Bubble(t, func(t *testing.T, w *testkit.Fixture) {
		texts := []string{"INVALID_PATIENT_DATA", "TIMEOUT", badPassword, "DUPLICATE_CLAIM", "erro estranho"}
		for n := range 60 {
			retries := 1
			if n%3 == 0 {
				retries = 5 // given up at the limit, by another team
			}
			if text := texts[n%len(texts)]; retries == 5 || text != "TIMEOUT" && text != "erro estranho" {
				w.Die(tiss, claim(n), text, retries)
			}
			w.Advance(time.Duration(n*7%11) * time.Minute)
		}
		for _, f := range []journal.DeadLetterFilter{{}, {State: deadletter.AllStates}, {Policy: tiss, Query: "invalid"}} {
			want := grouped(t, w, f)
			got, cursor := []deadletter.Group(nil), ""
			for page := 0; page == 0 || cursor != ""; page++ {
				some, next, err := w.DeadLetters.Groups(t.Context(), f, cursor, 2)
				testkit.Must(t, err)
				got, cursor = append(got, some...), next
			}
			if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w || len(got) == 0 {
				t.Errorf("%+v is grouped as\n%s, want\n%s", f, g, w)
			}
		}
		_, next, err := w.DeadLetters.Groups(t.Context(), journal.DeadLetterFilter{}, "", 1)
		testkit.Must(t, err)
		_, _, err = w.DeadLetters.List(t.Context(), journal.DeadLetterFilter{}, next, 1)
		refused(t, "a list by the cursor of groups", err, "invalid_cursor")
		for _, f := range []journal.DeadLetterFilter{{Team: "ti"}, {State: deadletter.AllStates}} {
			_, _, err = w.DeadLetters.Groups(t.Context(), f, next, 1)
			refused(t, "groups by the cursor of others", err, "invalid_cursor")
		}
		for _, bad := range []string{next[1:], next + "A", next + "\n", "x"} {
			_, _, err = w.DeadLetters.Groups(t.Context(), journal.DeadLetterFilter{}, bad, 1)
			refused(t, "groups by a cursor that was changed", err, "invalid_cursor")
		}
	})
}

// grouped groups the dead letters of a filter one by one.
func grouped(t *testing.T, w *testkit.Fixture, f journal.DeadLetterFilter) []deadletter.Group {
	t.Helper()
	f.Sort = deadletter.ByAge
	all, next, err := w.DeadLetters.List(t.Context(), f, "", deadletter.MostItems)
	testkit.Must(t, err)
	if next != "" {
		t.Fatal("there are more dead letters than a page has")
	}
	groups, teams := map[string]deadletter.Group{}, map[string]map[decision.Team]int{}
	for i := range all { // the oldest first
		d := &all[i]
		g, known := groups[d.Fingerprint]
		if !known {
			causes, err := w.Store.Causes(t.Context(), journal.CauseFilter{}, nil, 99)
			testkit.Must(t, err)
			at := slices.IndexFunc(causes, func(c journal.Cause) bool { return c.ID == d.Fingerprint })
			c := &causes[at]
			g.Cause = journal.Fingerprint{ID: c.ID, Policy: c.Policy, Reason: c.Reason, Classification: c.Classification, Pattern: c.Pattern}
			g.Fingerprint, g.Policy, g.Oldest, teams[d.Fingerprint] = c.ID, c.Policy, d.CreatedAt, map[decision.Team]int{}
		}
		g.N, g.Cents, g.Newest, g.Last, g.Sample = g.N+1, g.Cents+d.Cents, d.CreatedAt, d.Record, *d
		teams[d.Fingerprint][d.Team]++
		groups[d.Fingerprint] = g
	}
	for id, g := range groups {
		of := teams[id]
		g.Teams = slices.SortedFunc(maps.Keys(of), func(a, b decision.Team) int { return cmp.Or(of[b]-of[a], cmp.Compare(a, b)) })
		groups[id] = g
	}
	return slices.SortedFunc(maps.Values(groups), func(a, b deadletter.Group) int {
		return cmp.Or(int(b.N-a.N), cmp.Compare(a.Cause.ID, b.Cause.ID))
	})
}
