package storetest

import (
	"context"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// instant of a record.
func (o *oracle) instant() *rapid.Generator[time.Time] {
	if o.wild {
		return instant()
	}
	return soon()
}

// drawWritten is a link's instant, whose hash is over the time as it is, and not as it is stored.
func (o *oracle) drawWritten(r *rapid.T) time.Time {
	if o.wild {
		return time.UnixMilli(rapid.Int64Range(1, 1<<47).Draw(r, "written"))
	}
	return soon().Draw(r, "written")
}

// drawSums adds to figures and fingerprints, some of them twice, and lets go of messages, some of which are gone.
func (o *oracle) drawSums(r *rapid.T, x *transaction) {
	small := func(what string) int64 { return rapid.Int64Range(-3, 3).Draw(r, what) }
	for range rapid.IntRange(0, 3).Draw(r, "figures") {
		x.figure(figure(o.policy, small("slot"), journal.FigureName(text().Draw(r, "name")), small("bucket"), whole(r)>>16))
	}
	for range rapid.IntRange(0, 3).Draw(r, "fingerprints") {
		id := rapid.IntRange(0, 2).Draw(r, "cause")
		f := cause(fmt.Sprint(o.checks, "-", id), o.policy, 0, 0, rapid.Int64Range(0, 3).Draw(r, "failures"))
		f.Reason, f.Classification, f.Pattern = decision.Reason(fmt.Sprint("R", id)), decision.Unknown, patterns[id]
		f.FirstSeen, f.LastSeen = o.instant().Draw(r, "first seen"), o.instant().Draw(r, "last seen")
		x.cause(f)
	}
	if rapid.Bool().Draw(r, "published") {
		x.Published = rapid.SliceOfN(rapid.Int64Range(0, o.sent+1), 0, 5).Draw(r, "sequences")
	}
	o.sent += int64(len(x.Outbox))
}

// figure adds to a figure, each of which is told once.
func (x *transaction) figure(f journal.Figure) {
	for i := range x.Figures {
		value := x.Figures[i].Value
		if x.Figures[i].Value = f.Value; x.Figures[i] == f {
			x.Figures[i].Value += value
			return
		}
		x.Figures[i].Value = value
	}
	x.Figures = append(x.Figures, f)
}

// compareAll holds everything that is not of one subject against the oracle's.
func (o *oracle) compareAll(ctx context.Context, r *rapid.T) {
	o.compareLetters(ctx, r)
	o.compareBulk(ctx, r)
	o.compareSums(ctx, r)
	o.compareOutbox(ctx, r)
	o.compareRecords(ctx, r)
	head, err := o.store.Head(ctx)
	same(r, "the ledger's head", head, o.memory.End(), err)
	after, limit := rapid.Int64Range(-1, head.Link).Draw(r, "after link"), rapid.IntRange(0, 9).Draw(r, "limit")
	want, _ := o.memory.Links(ctx, after, limit)
	got, err := o.store.Links(ctx, after, limit)
	same(r, "links", got, want, err)
	before := soon().Draw(r, "before")
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
	from := rapid.Int64Range(-4, 4).Draw(r, "from slot")
	wantFigures, _ := o.memory.Figures(ctx, from)
	figures, err := o.store.Figures(ctx, from)
	same(r, "the figures", figures, wantFigures, err)
	policy, limit := rapid.SampledFrom([]string{"", o.policy, "none"}).Draw(r, "policy"), rapid.IntRange(0, 9).Draw(r, "limit")
	want, _ := o.memory.Fingerprints(ctx, policy, limit)
	got, err := o.store.Fingerprints(ctx, policy, limit)
	same(r, "the fingerprints", got, want, err)
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
	switch rapid.IntRange(0, 3).Draw(r, what) {
	case 0:
		return time.Time{}
	case 1:
		return o.instant().Draw(r, what).Add(time.Microsecond)
	default:
		return o.instant().Draw(r, what)
	}
}

// sameSalts returns what gives the changes of the second store the salts of the first: each draws its own.
func sameSalts() func(journal.Head, *journal.Changes) *journal.Changes {
	var drawn []string
	return func(head journal.Head, c *journal.Changes) *journal.Changes {
		switch {
		case c == nil:
		case drawn == nil:
			for i := range c.Records {
				drawn = append(drawn, c.Records[i].Entry.Salt)
			}
		default:
			for i := range c.Records {
				c.Records[i].Entry.Salt = drawn[i]
				c.Link.Digests[i] = journal.DigestEntry(c.Records[i].Entry)
			}
			c.Link = c.Link.After(head)
		}
		return c
	}
}

// purge forgets a few of the oldest records that both still have, now and then all.
func (o *oracle) purge(ctx context.Context, r *rapid.T) {
	if rapid.IntRange(0, 2).Draw(r, "purge") > 0 {
		return
	}
	through, limit := rapid.Int64Range(0, o.memory.End().Record).Draw(r, "through"), rapid.IntRange(1, 30).Draw(r, "at most")
	for range 3 {
		purge, salted := testkit.PurgeAt(soon().Draw(r, "purged at")), sameSalts()
		step := func(head journal.Head, p *journal.Purging) (*journal.Changes, error) {
			c, err := purge(head, p)
			return salted(head, c), err
		}
		want, _ := o.memory.Purge(ctx, through, limit, step)
		got, err := o.store.Purge(ctx, through, limit, step)
		same(r, "what was purged", got, want, err)
		for _, of := range o.subjects {
			o.compare(ctx, r, of)
		}
		o.compareAll(ctx, r)
		o.comparePending(ctx, r)
	}
}
