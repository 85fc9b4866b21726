package storetest

import (
	"context"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/journal"
)

// compareAll holds everything against the oracle's.
func (o *oracle) compareAll(ctx context.Context, r *rapid.T) {
	o.both.mu.Lock()
	defer o.both.mu.Unlock()
	o.compareLetters(ctx, r)
	o.compareBulk(ctx, r)
	o.compareSums(ctx, r)
	o.compareOutbox(ctx, r)
	o.compareNotices(ctx, r)
	o.comparePending(ctx, r)
	o.compareHeld(ctx, r)
	for _, of := range o.subjects {
		o.compare(ctx, r, of)
	}
	o.compareRecords(ctx, r)
	head, err := o.store.Head(ctx)
	same(r, "the ledger's head", head, o.memory.End(), err)
	after, limit := rapid.Int64Range(-1, head.Link).Draw(r, "after link"), rapid.IntRange(0, 9).Draw(r, "limit")
	want, _ := o.memory.Links(ctx, after, limit)
	got, err := o.store.Links(ctx, after, limit)
	same(r, "links", got, want, err)
	before := o.bound(r, "before")
	wantLast, _ := o.memory.LastRecordBefore(ctx, before)
	last, err := o.store.LastRecordBefore(ctx, before)
	same(r, "the last record before", last, wantLast, err)
}

func same(r *rapid.T, what string, got, want any, err error) {
	if err != nil {
		r.Fatalf("%s could not be read: %v", what, err)
	}
	if d := difference(got, want); d != "" {
		r.Fatalf("%s differ (- want, + got):\n%s", what, d)
	}
}

func (o *oracle) compareSums(ctx context.Context, r *rapid.T) {
	from := journal.SlotOf(o.now) - rapid.Int64Range(-1, 6).Draw(r, "from slot")
	wantFigures, _ := o.memory.Figures(ctx, from)
	figures, err := o.store.Figures(ctx, from)
	same(r, "the figures", figures, wantFigures, err)
	policy, limit := rapid.SampledFrom([]string{"", o.policy, "none"}).Draw(r, "policy"), rapid.IntRange(0, 9).Draw(r, "limit")
	weeks := []int64{journal.WeekOf(o.now) - journal.WeekSlots, journal.WeekOf(o.now)}
	var wantLearnt, learnt []journal.LearntFigure
	wantHead, _ := o.memory.Learnt(ctx, weeks, func(f *journal.LearntFigure) { wantLearnt = append(wantLearnt, *f) })
	head, err := o.store.Learnt(ctx, weeks, func(f *journal.LearntFigure) { learnt = append(learnt, *f) })
	same(r, "what is learnt from", learnt, wantLearnt, err)
	same(r, "its head", head, wantHead, nil)
	f, after := journal.CauseFilter{Policy: policy, Taught: rapid.Bool().Draw(r, "taught")}, (*journal.Fingerprint)(nil)
	for range 3 { // page after page
		want, _ := o.memory.Causes(ctx, f, after, limit)
		got, err := o.store.Causes(ctx, f, after, limit)
		if same(r, "the causes", got, want, err); len(want) == 0 {
			break
		}
		after = &want[len(want)-1].Fingerprint
	}
}

// compareNotices holds what teams are told of against the oracle's.
func (o *oracle) compareNotices(ctx context.Context, r *rapid.T) {
	team, top := rapid.SampledFrom(oracleTeams[1:]).Draw(r, "team"), rapid.IntRange(0, 3).Draw(r, "top")
	older := []time.Time{o.now, o.bound(r, "older"), o.bound(r, "older")}
	wantOpen, _ := o.memory.OpenDeadLetters(ctx, team, top, older...)
	open, err := o.store.OpenDeadLetters(ctx, team, top, older...)
	same(r, "what is open of "+string(team), open, wantOpen, err)
	after := rapid.Int64Range(0, o.memory.End().Record).Draw(r, "after")
	want, _ := o.memory.NewDeadLetters(ctx, team, after, top)
	got, err := o.store.NewDeadLetters(ctx, team, after, top)
	same(r, fmt.Sprint("what is new of ", team, " after ", after), got, want, err)
}

// compareOutbox looks at each queue that a message waits for.
func (o *oracle) compareOutbox(ctx context.Context, r *rapid.T) {
	wantBacklog, _ := o.memory.Backlog(ctx)
	backlog, err := o.store.Backlog(ctx)
	same(r, "the backlog", backlog, wantBacklog, err)
	queues := []string{"none"}
	for _, m := range o.memory.Outbox() {
		queues = append(queues, m.Queue)
	}
	queue, after, limit := rapid.SampledFrom(queues).Draw(r, "queue"), rapid.Int64Range(0, 99).Draw(r, "after"), rapid.IntRange(0, 9).Draw(r, "limit")
	want, _ := o.memory.Pending(ctx, queue, after, limit)
	got, err := o.store.Pending(ctx, queue, after, limit)
	same(r, "the outbox", got, want, err)
}

func (o *oracle) compareRecords(ctx context.Context, r *rapid.T) {
	for range 4 {
		f := journal.RecordFilter{Subject: rapid.SampledFrom(append(o.subjects, journal.Subject{})).Draw(r, "of")}
		f.Since, f.Until = o.bound(r, "since"), o.bound(r, "until")
		after := rapid.Int64Range(-1, o.memory.End().Record).Draw(r, "after")
		limit := rapid.IntRange(1, 9).Draw(r, "limit")
		for range 3 {
			want, _ := o.memory.Records(ctx, f, after, limit)
			got, err := o.store.Records(ctx, f, after, limit)
			same(r, "the records", got, want, err)
			if len(want) < limit {
				break
			}
			after = recordOf(&want[limit-1])
		}
	}
}

// bound of a period: often none, or one that records lie on.
func (o *oracle) bound(r *rapid.T, what string) time.Time {
	ago := rapid.SampledFrom([]time.Duration{-1, 0, 0, time.Microsecond, time.Millisecond, time.Hour, 47 * time.Hour, 94 * time.Hour}).Draw(r, what)
	if ago < 0 {
		return time.Time{}
	}
	return o.now.Add(-ago)
}
