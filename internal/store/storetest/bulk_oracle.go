package storetest

import (
	"context"
	"fmt"

	"pgregory.net/rapid"

	"retry-worker/internal/journal"
)

// compareBulk holds bulk runs, their items and tallies against the oracle's.
func (o *oracle) compareBulk(ctx context.Context, r *rapid.T) {
	cursor, limit := "", rapid.SampledFrom([]int{1, 3, 200}).Draw(r, "runs")
	for {
		want, next, _ := o.memory.BulkRuns(ctx, cursor, limit)
		got, goesOn, err := o.store.BulkRuns(ctx, cursor, limit)
		same(r, "the bulk runs", got, want, err)
		if cursor = next; goesOn != next {
			r.Fatalf("the bulk runs go on at %q, want %q", goesOn, next)
		}
		if limit == 1 || next == "" { // one page of many
			break
		}
	}
	active, _ := o.memory.ActiveBulkRuns(ctx)
	got, err := o.store.ActiveBulkRuns(ctx)
	same(r, "the runs that have not ended", got, active, err)
	for _, id := range o.runs {
		o.compareRun(ctx, r, id)
	}
	for range 2 {
		f := o.drawFilter(r)
		through := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, o.memory.End().Record+1)).Draw(r, "through")
		recent := o.bound(r, "recent")
		want, wantUpTo, _ := o.memory.DeadLetterTallies(ctx, f, through, recent)
		tallies, upTo, err := o.store.DeadLetterTallies(ctx, f, through, recent)
		same(r, fmt.Sprintf("the tallies under %+v up to %d", f, through), tallies, want, err)
		same(r, "how far the tallies go", upTo, wantUpTo, nil)
	}
}

func (o *oracle) compareRun(ctx context.Context, r *rapid.T, id string) {
	want, known, _ := o.memory.BulkRun(ctx, id)
	got, found, err := o.store.BulkRun(ctx, id)
	same(r, "a bulk run", got, want, err)
	if found != known {
		r.Fatalf("the bulk run %q was found: %t, want %t", id, found, known)
	}
	outcome := rapid.SampledFrom(append(journal.BulkOutcomes(), "", "", "")).Draw(r, "outcome")
	after, limit := rapid.Int64Range(-1, 3).Draw(r, "after"), rapid.IntRange(0, 9).Draw(r, "limit")
	items, _ := o.memory.BulkItems(ctx, id, outcome, after, limit)
	gotItems, err := o.store.BulkItems(ctx, id, outcome, after, limit)
	same(r, fmt.Sprintf("the items of %q", id), gotItems, items, err)
}
