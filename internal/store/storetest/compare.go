package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// same compares the store's answer with the oracle's, and returns it. ask is called for each, so it must not draw.
func same[T any](o *oracle, r *rapid.T, what string, ask func(s ports) (T, error)) T {
	want, _ := ask(o.memory)
	got, err := ask(o.store)
	if err != nil {
		r.Fatalf("%s could not be read: %v", what, err)
	}
	if d := difference(got, want); d != "" {
		r.Fatalf("%s differ (- want, + got):\n%s", what, d)
	}
	return want
}

// sameTwo is same for answers of two parts.
func sameTwo[A, B any](o *oracle, r *rapid.T, what string, ask func(s ports) (A, B, error)) (A, B) {
	type answer struct {
		First  A
		Second B
	}
	want := same(o, r, what, func(s ports) (a answer, err error) {
		a.First, a.Second, err = ask(s)
		return a, err
	})
	return want.First, want.Second
}

// gathered returns what a store passes to take, one by one, and the head.
func gathered[T any](tell func(take func(*T)) (journal.Head, error)) (all []T, head journal.Head, err error) {
	head, err = tell(func(one *T) { all = append(all, *one) })
	return all, head, err
}

// compareAll compares everything with the oracle.
func (o *oracle) compareAll(ctx context.Context, r *rapid.T) {
	o.both.mu.Lock()
	defer o.both.mu.Unlock()
	o.compareLetters(ctx, r)
	o.compareBulk(ctx, r)
	o.compareSums(ctx, r)
	o.compareOutbox(ctx, r)
	o.comparePending(ctx, r)
	for _, of := range o.subjects {
		sameTwo(o, r, "the story", func(s ports) (journal.Story, bool, error) { return s.Story(ctx, of) })
	}
	o.compareRecords(ctx, r)
	sameTwo(o, r, "what is held", func(s ports) ([]journal.KeyedState, journal.Head, error) {
		return gathered(func(take func(*journal.KeyedState)) (journal.Head, error) { return s.Held(ctx, take) })
	})
	head := same(o, r, "the ledger's head", func(s ports) (journal.Head, error) { return s.Head(ctx) })
	after, limit := rapid.Int64Range(-1, head.Link).Draw(r, "after link"), rapid.IntRange(0, 9).Draw(r, "limit")
	same(o, r, "links", func(s ports) (links []journal.Link, err error) {
		err = s.Moment(ctx, func(m journal.Moment) (err error) {
			links, err = m.Links(after, limit)
			return err
		})
		return links, err
	})
	before := o.bound(r, "before")
	same(o, r, "the last record before", func(s ports) (int64, error) { return s.LastRecordBefore(ctx, before) })
}

// comparePending compares pending retries, and searches by a part of a name.
func (o *oracle) comparePending(ctx context.Context, r *rapid.T) {
	after, limit := rapid.Int64Range(0, o.memory.End().Subject).Draw(r, "pending after"), rapid.IntRange(1, 3).Draw(r, "limit")
	part := rapid.StringMatching(`[a-zA-Z0-9_%-]{1,2}`).Draw(r, "part of an id")
	same(o, r, "the subjects named *"+part+"*", func(s ports) ([]journal.Subject, error) { return s.Named(ctx, part, limit) })
	same(o, r, "the pending retries", func(s ports) ([]journal.KeyedState, error) { return s.PendingRetries(ctx, after, limit) })
}

func (o *oracle) compareSums(ctx context.Context, r *rapid.T) {
	from := journal.SlotOf(o.now) - rapid.SampledFrom([]int64{-1, 0, 6, 500, 1 << 40}).Draw(r, "from slot")
	same(o, r, "the sums", func(s ports) ([]journal.Sum, error) { return s.Sums(ctx, from) })
	weeks := []int64{}
	for ago := range int64(12) {
		weeks = append(weeks, journal.WeekOf(o.now)-ago*journal.WeekSlots)
	}
	few := rapid.IntRange(0, 9).Draw(r, "cases")
	same(o, r, "what is learnt from", func(s ports) ([]journal.Cases, error) { return s.Cases(ctx, weeks, few) })
	policy, limit := rapid.SampledFrom([]string{"", o.policy, o.policy, "none"}).Draw(r, "policy"), rapid.IntRange(0, 9).Draw(r, "limit")
	f, after := journal.CauseFilter{Policy: policy}, (*journal.Fingerprint)(nil)
	switch rapid.IntRange(0, 5).Draw(r, "causes by") {
	case 0:
		f.Taught = true
	case 1:
		f.Began = o.bound(r, "began")
	case 2:
		f.Told = o.bound(r, "told")
	}
	if all, err := o.memory.Causes(ctx, f, nil, 9); err == nil && len(all) > 0 && rapid.Bool().Draw(r, "by ids") {
		f.IDs = []string{all[0].ID, all[len(all)-1].ID, "none"}
	}
	for range 3 { // page after page
		causes := same(o, r, "the causes", func(s ports) ([]journal.Cause, error) { return s.Causes(ctx, f, after, limit) })
		if len(causes) == 0 {
			break
		}
		after = &causes[len(causes)-1].Fingerprint
	}
}

// compareOutbox compares each queue with a waiting message.
func (o *oracle) compareOutbox(ctx context.Context, r *rapid.T) {
	backlog := same(o, r, "the backlog", func(s ports) (map[string]int64, error) { return s.Backlog(ctx) })
	queue := rapid.SampledFrom(append(slices.Sorted(maps.Keys(backlog)), "none")).Draw(r, "queue")
	after, limit := rapid.Int64Range(0, 99).Draw(r, "after"), rapid.IntRange(0, 9).Draw(r, "limit")
	same(o, r, "the outbox", func(s ports) ([]journal.Message, error) { return s.Pending(ctx, queue, after, limit) })
}

func (o *oracle) compareRecords(ctx context.Context, r *rapid.T) {
	for range 4 {
		f := journal.RecordFilter{Subject: rapid.SampledFrom(append(o.subjects, journal.Subject{})).Draw(r, "of")}
		f.Since, f.Until = o.bound(r, "since"), o.bound(r, "until")
		after := rapid.Int64Range(-1, o.memory.End().Record).Draw(r, "after")
		limit := rapid.IntRange(1, 9).Draw(r, "limit")
		for range 3 {
			some := same(o, r, "the records", func(s ports) ([]journal.Entry, error) { return s.Records(ctx, f, after, limit) })
			if len(some) < limit {
				break
			}
			after = some[limit-1].Record
		}
	}
}

// bound returns the bound of a period: often none, or an instant of a record.
func (o *oracle) bound(r *rapid.T, what string) time.Time {
	ago := rapid.SampledFrom([]time.Duration{-1, -1, -1, -1, 0, 0, time.Microsecond, time.Millisecond, time.Hour, 47 * time.Hour, 94 * time.Hour}).Draw(r, what)
	if ago < 0 {
		return time.Time{}
	}
	return o.now.Add(-ago)
}

// compareLetters compares lists of dead letters, single ones, their causes and their counts.
func (o *oracle) compareLetters(ctx context.Context, r *rapid.T) {
	for _, until := range []time.Time{o.now.Add(2 * time.Hour), {}, {}, {}} {
		f := o.drawFilter(r)
		f.DueSince, f.DueUntil = o.now, until
		f.After = rapid.SampledFrom([]int64{0, 0, o.memory.End().Record / 2}).Draw(r, "after")
		same(o, r, fmt.Sprintf("the counts under %+v", f), func(s ports) ([]deadletter.Count, error) {
			return s.DeadLetterCounts(ctx, f)
		})
	}
	for range 4 {
		f := o.drawFilter(r)
		limit := rapid.SampledFrom([]int{7, 200}).Draw(r, "letters")
		letters := same(o, r, fmt.Sprintf("the dead letters under %+v", f), func(s ports) ([]deadletter.Item, error) {
			if s == ports(o.memory) {
				return walk(ctx, s, f, deadletter.MostItems)
			}
			return walk(ctx, s, f, limit)
		})
		records := []int64{-1}
		for i := range min(len(letters), 9) {
			records = append(records, letters[i].Record)
			sameTwo(o, r, "a dead letter", func(s ports) (deadletter.Item, bool, error) { return s.DeadLetter(ctx, letters[i].ID) })
		}
		same(o, r, "dead letters of records", func(s ports) ([]deadletter.Item, error) { return s.DeadLettersOf(ctx, records) })
	}
}

// drawFilter draws a filter of at most two fields: with more it hardly ever finds anything.
func (o *oracle) drawFilter(r *rapid.T) journal.DeadLetterFilter {
	queries := []string{"timeout", "GATEWAY timeout:", "já", "já guia", "r1", "100%", "%", "_", "'", "none such"}
	for _, of := range o.subjects {
		cut := []rune(of.ID)
		queries = append(queries, string(cut[:rapid.IntRange(0, len(cut)).Draw(r, "cut")]))
	}
	ids, causes, contexts := []string{"none"}, []string{"none"}, []string{"valor=0.01", "valor=184200.00", "none=0.01"}
	known, _, err := o.memory.DeadLetterPage(context.Background(), journal.DeadLetterFilter{State: "all", Policy: o.policy}, "", 9)
	testkit.Must(o.t, err)
	for i := range known {
		queries, causes = append(queries, known[i].ID, strings.ToUpper(known[i].ID)), append(causes, known[i].Fingerprint)
		ids = append(ids, known[i].ID, known[i].ID+","+known[rapid.IntRange(0, i).Draw(r, "other")].ID)
		for _, c := range known[i].Context {
			contexts = append(contexts, c.Variable+"="+c.Value)
		}
	}
	f := journal.DeadLetterFilter{Now: o.now, Sort: rapid.SampledFrom(append(deadletter.Sorts(), "")).Draw(r, "sort"),
		State: rapid.SampledFrom([]string{"all", "all", "", "open", "reprocessing", "discarded", "recovered", "superseded"}).Draw(r, "of state")}
	text := func(all []string, what string) string { return rapid.SampledFrom(all).Draw(r, what) }
	for range rapid.IntRange(0, 2).Draw(r, "filtered by so many") {
		switch rapid.IntRange(0, 11).Draw(r, "filtered by") {
		case 0, 1:
			f.Policy = text([]string{o.policy, o.policy, o.policy, "none"}, "policy")
		case 2:
			f.Team = rapid.SampledFrom(oracleTeams).Draw(r, "of team")
		case 3:
			f.Reason = rapid.SampledFrom([]decision.Reason{"DUPLICATE_CLAIM", "MAX_RETRIES", "none"}).Draw(r, "of reason")
		case 4:
			f.Query = text(queries, "query")
		case 5:
			f.Fingerprint = text(causes, "cause")
		case 6:
			f.IDs = text(ids, "ids")
		case 7:
			f.Context = text(contexts, "of context")
		case 8:
			f.Assignee = text(append(oracleAssignees, "nobody"), "of assignee")
		case 9:
			f.FollowUp = o.bound(r, "follow up")
		case 10:
			f.Since, f.Until = o.bound(r, "since"), o.bound(r, "until")
		default:
			f.Until = o.now
			if len(known) > 0 { // just behind it
				f.Until = known[0].CreatedAt.Add(time.Microsecond)
			}
		}
	}
	return f
}

// walk returns everything that the filter matches, read page by page.
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

// compareBulk compares bulk runs, their items, and the dead letters for new ones.
func (o *oracle) compareBulk(ctx context.Context, r *rapid.T) {
	before, limit := rapid.SampledFrom(append(o.runs, "")).Draw(r, "behind"), rapid.SampledFrom([]int{1, 3, 200}).Draw(r, "runs")
	same(o, r, "the bulk runs", func(s ports) ([]journal.BulkRun, error) { return s.BulkRuns(ctx, before, limit) })
	same(o, r, "the runs that have not ended", func(s ports) ([]journal.BulkRun, error) { return s.ActiveBulkRuns(ctx) })
	for _, id := range o.runs {
		sameTwo(o, r, fmt.Sprintf("the bulk run %q", id), func(s ports) (journal.BulkRun, bool, error) { return s.BulkRun(ctx, id) })
		outcome := rapid.SampledFrom(append(make([]journal.BulkOutcome, 9), journal.BulkOutcomes()...)).Draw(r, "outcome")
		after, limit := rapid.Int64Range(-1, 1).Draw(r, "after"), rapid.IntRange(0, 9).Draw(r, "limit")
		same(o, r, fmt.Sprintf("the items of %q", id), func(s ports) ([]journal.BulkItem, error) {
			return s.BulkItems(ctx, id, outcome, after, limit)
		})
	}
	for range 2 {
		f := o.drawFilter(r)
		through := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, o.memory.End().Record+1)).Draw(r, "through")
		sameTwo(o, r, fmt.Sprintf("the open ones under %+v up to %d", f, through), func(s ports) ([]deadletter.Item, int64, error) {
			return s.DeadLettersOpen(ctx, f, through, 100)
		})
	}
}
