package storetest

import (
	"errors"
	"slices"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// testLetterGroups: dead letters of one cause are one group, wherever numbers differ; it moves with them, and goes.
func testLetterGroups(t *testing.T, s Store) {
	const total = 240
	of := func(n int) int { return n % 90 }
	buried(t, s, of, total)
	type sum struct {
		n           int64
		first, last int
		teams       map[decision.Team]int64
	}
	for _, f := range []journal.DeadLetterFilter{{}, {State: "all"}, {State: "discarded"}, {State: "all", Policy: "failed-job"}, {Team: "ti"}, {State: "all", Reason: "TIME_LIMIT"},
		{State: "all", Query: "GATEWAY timeout"}, {State: "all", Query: "gateway", Policy: "whatsapp-message", Team: "ti"}, {Query: "none such"}, {Policy: "none"}} {
		want := map[string]*sum{}
		for n := range total {
			name, a, d := letterNumber(n, of(n))
			plan, err := f.Groups("", 1)
			if err != nil {
				t.Fatal(err)
			}
			cause := journal.FingerprintOf(name.Policy, &a)
			if d.Record = int64(n + 1); !plan.Passes(&d, name.Policy, cause.ID) || plan.Searches && !plan.Finds(&cause) {
				continue
			}
			g := want[cause.ID]
			if g == nil {
				g = &sum{first: n, teams: map[decision.Team]int64{}}
				want[cause.ID] = g
			}
			g.n, g.last = g.n+1, n
			g.teams[d.Team]++
		}
		got := groups(t, s, f, 4)
		if len(got) != len(want) || !slices.IsSortedFunc(got, func(a, b journal.DeadLetterGroup) int { return int(b.N - a.N) }) {
			t.Errorf("%+v: %d groups are listed, want %d, those with the most first", f, len(got), len(want))
		}
		for i := range got {
			g, w := &got[i], want[got[i].Cause.ID]
			if w == nil {
				t.Errorf("%+v: a cause that there is none of: %+v", f, g)
				continue
			}
			_, _, newest := letterNumber(w.last, of(w.last))
			if g.N != w.n || !g.First.Equal(at(int64(w.first))) || !g.Last.Equal(at(int64(w.last))) || g.Sample.ID != newest.ID || g.Cause.Pattern == "" ||
				g.Cause.Policy != g.Sample.Subject.Policy || len(g.Teams) != len(w.teams) || w.teams[g.Teams[0]] < w.teams[g.Teams[len(g.Teams)-1]] {
				t.Errorf("%+v: %+v, want %d from %d to %d", f, g, w.n, w.first, w.last)
			}
		}
	}
	testGroupCursors(t, s)
	head, _ := recall(t, s)
	for done := 0; done < int(head.Record); done += 100 {
		purge(t, s, head.Record, 100, min(100, int(head.Record)-done))
	}
	if got := groups(t, s, journal.DeadLetterFilter{State: "all"}, 9); len(got) != 0 {
		t.Errorf("after a purge of all there are the groups %+v", got)
	}
}

// groups are all of a filter, page by page.
func groups(t *testing.T, s journal.DeadLetterReader, f journal.DeadLetterFilter, limit int) (all []journal.DeadLetterGroup) {
	t.Helper()
	for cursor, more := "", true; more; more = cursor != "" {
		page, next, err := s.DeadLetterGroups(t.Context(), f, cursor, limit)
		if err != nil || len(page) > limit || next != "" && next == cursor {
			t.Fatalf("a page of %d, then %q (%v)", len(page), next, err)
		}
		all, cursor = append(all, page...), next
	}
	return all
}

// testGroupCursors: one of another list, or of none, is refused, and so are bounds of the age.
func testGroupCursors(t *testing.T, s Store) {
	f := journal.DeadLetterFilter{State: "all"}
	_, next, err := s.DeadLetterGroups(t.Context(), f, "", 2)
	if err != nil || next == "" {
		t.Fatal(next, err)
	}
	_, letters, err := s.DeadLetterPage(t.Context(), f, "", 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"x", letters, next[1:], next + "A", next + "\n", "\x00"} {
		if _, _, err := s.DeadLetterGroups(t.Context(), f, bad, 2); !errors.Is(err, journal.ErrBadCursor) {
			t.Errorf("the cursor %.40q is answered with %v", bad, err)
		}
		if _, _, err := s.BulkRuns(t.Context(), bad, 2); !errors.Is(err, journal.ErrBadCursor) {
			t.Errorf("the cursor %.40q of runs is answered with %v", bad, err)
		}
	}
	if _, _, err := s.DeadLetterGroups(t.Context(), journal.DeadLetterFilter{}, next, 2); !errors.Is(err, journal.ErrBadCursor) {
		t.Errorf("a cursor of another list is answered with %v", err)
	}
	for _, aged := range []journal.DeadLetterFilter{{Since: at(0)}, {Until: at(0)}, {State: "none"}} {
		if _, _, err := s.DeadLetterGroups(t.Context(), aged, "", 2); !errors.Is(err, journal.ErrBadFilter) {
			t.Errorf("%+v is answered with %v", aged, err)
		}
	}
}
