package storetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/journal"
)

// drawRuns begins a bulk run, or changes one, or refuses a dead letter of one.
func (o *oracle) drawRuns(r *rapid.T, x *transaction) {
	if rapid.IntRange(0, 2).Draw(r, "begun") == 0 {
		f := o.drawFilter(r)
		f.State = ""
		x.Runs = append(x.Runs, journal.BulkRun{ID: fmt.Sprint(o.policy, "/", len(o.runs)+rapid.IntRange(0, 1).Draw(r, "id")), State: journal.BulkPreparing, Filter: f,
			Action: rapid.SampledFrom([]journal.BulkAction{journal.BulkRetry, journal.BulkDiscard}).Draw(r, "action"), Through: x.head.Record + rapid.Int64Range(-3, 3).Draw(r, "through"),
			Reason: text().Draw(r, "why"), By: text().Draw(r, "by"), Force: rapid.Bool().Draw(r, "force"), Fresh: rapid.Bool().Draw(r, "fresh"), Now: rapid.Bool().Draw(r, "now"),
			PerMinute: whole(r), CreatedAt: instant().Draw(r, "created")})
	}
	for i := range x.histories {
		if n := x.histories[i].Item; n != nil && n.Outcome == journal.BulkPlanned && rapid.Bool().Draw(r, "refused") {
			x.Items = append(x.Items, journal.BulkItemChange{Run: x.histories[i].Run.ID, DeadLetter: n.DeadLetter, From: n.Outcome,
				To: journal.BulkRefused, Code: text().Draw(r, "code"), ChangedAt: instant().Draw(r, "changed")})
		}
		if old := x.histories[i].Run; old != nil && len(x.Runs) == 0 && rapid.Bool().Draw(r, "changed") {
			n := *old
			n.Total, n.Counts = 0, nil
			n.State = rapid.SampledFrom([]journal.BulkState{journal.BulkPreparing, journal.BulkRunning, journal.BulkPaused, journal.BulkCancelled, journal.BulkDone}).Draw(r, "state")
			n.Hold, n.HeldAt, n.ChangedBy, n.ChangedAt = text().Draw(r, "hold"), instant().Draw(r, "held"), text().Draw(r, "by"), instant().Draw(r, "changed")
			n.EndedAt = instant().Draw(r, "ended")
			x.Runs = append(x.Runs, n)
		}
	}
}

// carryOn adds dead letters to runs of both.
func (o *oracle) carryOn(ctx context.Context, r *rapid.T) {
	all, _, err := o.memory.BulkRuns(ctx, "", 200)
	if err != nil {
		r.Fatal(err)
	}
	o.runs = []string{"none"}
	for i := range all {
		if strings.HasPrefix(all[i].ID, o.policy+"/") || i == 0 { // and one of another check
			o.runs = append(o.runs, all[i].ID)
		}
	}
	for range rapid.IntRange(0, 3).Draw(r, "steps") {
		id, at := rapid.SampledFrom(o.runs).Draw(r, "of"), instant().Draw(r, "when")
		salted := sameSalts()
		step := func(head journal.Head, g *journal.Gathering) *journal.Changes {
			return salted(head, g.Step(head, at, "busy", nil))
		}
		limit := rapid.SampledFrom([]int{1, 2, 100}).Draw(r, "gathered")
		want, _ := o.memory.GatherBulkItems(ctx, id, limit, step)
		done, err := o.store.GatherBulkItems(ctx, id, limit, step)
		same(r, fmt.Sprintf("whether all of %q are there", id), done, want, err)
	}
}

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
		recent := rapid.OneOf(rapid.Just(time.Time{}), o.instant()).Draw(r, "recent")
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
