package storetest

import (
	"context"
	"fmt"
	"time"

	"pgregory.net/rapid"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// patterns of the oracle's causes, by their numbers.
var patterns = []string{"timeout after #", "o guia já existe", "time-out: portal's 'gateway' 100% ocupado"}

// drawState and drawCause of a dead letter: few, so that filters meet them, and now and then any.
func (o *oracle) drawState(r *rapid.T) journal.DeadLetterState {
	return rapid.SampledFrom(journal.DeadLetterStates()).Draw(r, "state")
}

func (o *oracle) drawCause(r *rapid.T) (decision.Reason, decision.Team) {
	if rapid.IntRange(0, 9).Draw(r, "odd") == 0 {
		return word[decision.Reason](r), word[decision.Team](r)
	}
	return rapid.SampledFrom([]decision.Reason{"A", "B"}).Draw(r, "reason"), rapid.SampledFrom([]decision.Team{"", "ti", "cadastro"}).Draw(r, "team")
}

func drawNote(r *rapid.T) journal.ReviewNote {
	return journal.ReviewNote{Discard: rapid.Bool().Draw(r, "discard"), Force: rapid.Bool().Draw(r, "force"), Fresh: rapid.Bool().Draw(r, "fresh"),
		Reason: text().Draw(r, "reason"), By: text().Draw(r, "by"), At: instant().Draw(r, "at"), NextRetryTime: instant().Draw(r, "next")}
}

func drawDelivery(r *rapid.T) journal.Delivery {
	if rapid.IntRange(0, 9).Draw(r, "odd") == 0 {
		return word[journal.Delivery](r)
	}
	return rapid.SampledFrom([]journal.Delivery{journal.DeliveryNone, journal.DeliveryPending, journal.DeliveryTaken, journal.DeliveryNobody}).Draw(r, "delivery")
}

// drawLetter adds a dead letter with a record of its own, or changes one.
func (o *oracle) drawLetter(r *rapid.T, x *transaction, i int) {
	d, before := o.drawDeadLetter(r, x, i)
	if before == nil {
		x.entry(journal.Entry{Kind: journal.RejectionEntry, Subject: x.lookups[i].Subject, At: d.CreatedAt, Body: `{"a":1}`})
	}
	x.letter(i, d, before)
}

// compareLetters holds lists of dead letters, each of them, and their counts against the oracle's.
func (o *oracle) compareLetters(ctx context.Context, r *rapid.T) {
	want, _ := o.memory.DeadLetterCounts(ctx)
	counts, err := o.store.DeadLetterCounts(ctx)
	same(r, "the counts of dead letters", counts, want, err)
	o.compareGroups(ctx, r)
	for range 4 {
		f := o.drawFilter(r)
		limit := rapid.SampledFrom([]int{1, 2, 7, 200}).Draw(r, "letters")
		all, err := walk(ctx, o.memory, f, journal.MaxDeadLetterPage)
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
	queries := []string{"", "", "", "timeout", "GATEWAY time-out:", "já", "já guia", "r1", "100%", "%", "_", "'", "none such"}
	for _, of := range o.subjects {
		cut := []rune(of.ID)
		queries = append(queries, string(cut[:rapid.IntRange(0, len(cut)).Draw(r, "cut")]))
	}
	f := journal.DeadLetterFilter{
		State:  rapid.SampledFrom([]string{"all", "all", "", "open", "reprocessing", "discarded", "recovered", "superseded"}).Draw(r, "of state"),
		Policy: rapid.SampledFrom([]string{"", o.policy, o.policy, "none"}).Draw(r, "of policy"),
		Team:   rapid.SampledFrom([]decision.Team{"", "", "ti", "cadastro", "none"}).Draw(r, "of team"),
		Reason: rapid.SampledFrom([]decision.Reason{"", "", "A", "none"}).Draw(r, "of reason"),
		Query:  rapid.SampledFrom(append(queries, o.letters...)).Draw(r, "query"),
	}
	if rapid.IntRange(0, 2).Draw(r, "of a cause") == 0 {
		f.Fingerprint = fmt.Sprint(o.checks, "-", rapid.IntRange(0, 3).Draw(r, "cause"))
	}
	if rapid.IntRange(0, 2).Draw(r, "aged") == 0 {
		f.Since = rapid.OneOf(soon(), o.instant(), rapid.Just(time.Time{})).Draw(r, "since")
		f.Until = rapid.OneOf(soon(), o.instant(), rapid.Just(time.Time{})).Draw(r, "until")
	}
	return f
}

// walk is everything that the filter lets through, page by page.
func walk(ctx context.Context, s journal.DeadLetterReader, f journal.DeadLetterFilter, limit int) (all []journal.DeadLetterItem, err error) {
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
