package storetest

import (
	"context"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// compareLetters holds lists of dead letters, each of them, and their counts against the oracle's.
func (o *oracle) compareLetters(ctx context.Context, r *rapid.T) {
	want, _ := o.memory.DeadLetterCounts(ctx)
	counts, err := o.store.DeadLetterCounts(ctx)
	same(r, "the counts of dead letters", counts, want, err)
	wantAsked, _ := o.memory.DeadLettersAsked(ctx, 2)
	asked, err := o.store.DeadLettersAsked(ctx, 2)
	same(r, "what is asked about", asked, wantAsked, err)
	o.compareGroups(ctx, r)
	for _, of := range []string{"", "valor=0.01"} {
		for _, until := range []time.Time{o.now.Add(2 * time.Hour), {}} {
			due, _ := o.memory.DeadLettersDue(ctx, of, o.now, until)
			got, err := o.store.DeadLettersDue(ctx, of, o.now, until)
			same(r, "what is due", got, due, err)
		}
	}
	for range 4 {
		f := o.drawFilter(r)
		limit := rapid.SampledFrom([]int{1, 2, 7, 200}).Draw(r, "letters")
		all, err := walk(ctx, o.memory, f, deadletter.MostItems)
		if err != nil {
			r.Fatal(err)
		}
		got, err := walk(ctx, o.store, f, limit)
		same(r, fmt.Sprintf("the dead letters under %+v", f), got, all, err)
		for i := range all {
			item, found, err := o.store.DeadLetter(ctx, all[i].ID)
			same(r, "a dead letter", item, all[i], err)
			if !found {
				r.Fatalf("dead letter %q was not found", all[i].ID)
			}
		}
	}
}

func (o *oracle) drawFilter(r *rapid.T) journal.DeadLetterFilter {
	queries := []string{"", "", "", "timeout", "GATEWAY timeout:", "já", "já guia", "r1", "100%", "%", "_", "'", "none such"}
	for _, of := range o.subjects {
		cut := []rune(of.ID)
		queries = append(queries, string(cut[:rapid.IntRange(0, len(cut)).Draw(r, "cut")]))
	}
	ids, causes, contexts := []string{"", "", "", "", "none"}, []string{"", "", "", "none"}, []string{"", "", "", "valor=0.01", "valor=184200.00", "none=0.01"}
	known, _, err := o.memory.DeadLetterPage(context.Background(), journal.DeadLetterFilter{State: "all", Policy: o.policy}, "", 9)
	testkit.Must(o.t, err)
	for i := range known {
		queries, causes = append(queries, known[i].ID), append(causes, known[i].Fingerprint)
		ids = append(ids, known[i].ID, known[i].ID+","+known[rapid.IntRange(0, i).Draw(r, "other")].ID)
		for _, c := range known[i].Context {
			contexts = append(contexts, c.Variable+"="+c.Value)
		}
	}
	f := journal.DeadLetterFilter{
		State:       rapid.SampledFrom([]string{"all", "all", "", "open", "reprocessing", "discarded", "recovered", "superseded"}).Draw(r, "of state"),
		Policy:      rapid.SampledFrom([]string{"", o.policy, o.policy, "none"}).Draw(r, "of policy"),
		Team:        rapid.SampledFrom(oracleTeams).Draw(r, "of team"),
		Reason:      rapid.SampledFrom([]decision.Reason{"", "", "DUPLICATE_CLAIM", "none"}).Draw(r, "of reason"),
		Sort:        rapid.SampledFrom(append(deadletter.Sorts(), "")).Draw(r, "sort"),
		Query:       rapid.SampledFrom(queries).Draw(r, "query"),
		Fingerprint: rapid.SampledFrom(causes).Draw(r, "of cause"),
		IDs:         rapid.SampledFrom(ids).Draw(r, "ids"),
		Context:     rapid.SampledFrom(contexts).Draw(r, "of context"),
	}
	if rapid.IntRange(0, 2).Draw(r, "aged") == 0 {
		f.Since, f.Until = o.bound(r, "since"), o.bound(r, "until")
	}
	return f
}

// walk is everything that the filter lets through, page by page.
func walk(ctx context.Context, s deadletter.Reader, f journal.DeadLetterFilter, limit int) (all []deadletter.Item, err error) {
	cursor := ""
	for {
		page, next, err := s.DeadLetterPage(ctx, f, cursor, limit)
		if err != nil {
			return all, err
		}
		if len(page) > limit {
			return all, fmt.Errorf("a page holds %d, at most %d were asked for", len(page), limit)
		}
		all = append(all, page...)
		switch {
		case next == "":
			return all, nil
		case next == cursor:
			return all, fmt.Errorf("the cursor %s leads to itself", cursor)
		}
		cursor = next
	}
}

// compareGroups holds the causes of dead letters against the oracle's, page by page.
func (o *oracle) compareGroups(ctx context.Context, r *rapid.T) {
	for range 3 {
		f := o.drawFilter(r)
		f.Since, f.Until = time.Time{}, time.Time{}
		limit, cursor := rapid.SampledFrom([]int{1, 2, 200}).Draw(r, "groups"), ""
		for {
			want, next, _ := o.memory.DeadLetterGroups(ctx, f, cursor, limit)
			got, goesOn, err := o.store.DeadLetterGroups(ctx, f, cursor, limit)
			same(r, fmt.Sprintf("the causes under %+v", f), got, want, err)
			if goesOn != next {
				r.Fatalf("the causes under %+v go on at %q, want %q", f, goesOn, next)
			}
			if cursor = next; next == "" {
				break
			}
		}
	}
}
