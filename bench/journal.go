package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// usualCallers is how many calls are in flight unless that is varied.
const usualCallers = 100

// journalsAlone measures the journal alone in each store. Every decision is recorded before it is answered.
func (b *bench) journalsAlone(ctx context.Context, out io.Writer) error {
	places, end := b.places(ctx, out)
	defer end()
	for _, p := range places {
		fmt.Fprintf(out, "\nThe journal alone on %s; median (lowest–highest) of %d rounds.\n", p.name, b.rounds)
		for _, part := range []func(context.Context, io.Writer, *place) error{b.throughput, b.fullJournal, b.purged} {
			if err := part(ctx, out, p); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}

// throughput measures how many decisions a second a young journal records, and how long they wait.
func (b *bench) throughput(ctx context.Context, out io.Writer, p *place) error {
	return p.with(ctx, "", func(s *session) error {
		table(out, "callers in flight", "decisions/s (goal ≥ 5,000)", "CPU of one, the server's included")
		for _, callers := range []int{50, usualCallers, 200} {
			m := repeat(b.rounds, func() sample { return s.flood(ctx, callers, until(b.span)) })
			row(out, strconv.Itoa(callers), spread(each(m, sample.perSecond), 0), spread(each(m, sample.cpu), 0)+" µs")
			if callers == usualCallers {
				p.rate = median(each(m, sample.perSecond))
			}
		}
		b.waits(ctx, out, p, s)
		return nil
	})
}

// waits measures at a busy hospital's rate, and at half of the measured throughput.
func (b *bench) waits(ctx context.Context, out io.Writer, p *place, s *session) {
	table(out, "failures coming at random", "per second", "p50", "p99 (goal < 20 ms)", "longest wait",
		"CPU of one (goal at 200 ≤ 1,000 µs)")
	for _, rate := range []float64{200, p.rate / 2} {
		m := repeat(b.rounds, func() sample { return s.paced(ctx, rate, 2*b.span) })
		cells := []string{p.name, strconv.Itoa(int(rate))}
		for _, share := range []float64{0.5, 0.99, 1} {
			cells = append(cells, spread(each(m, func(m sample) float64 { return m.wait(share) }), 1)+" ms")
		}
		row(out, append(cells, spread(each(m, sample.cpu), 0)+" µs")...)
	}
}

// fullJournal fills a journal and compares it with an empty one.
func (b *bench) fullJournal(ctx context.Context, out io.Writer, p *place) error {
	url, err := p.fresh(ctx)
	if err != nil {
		return err
	}
	from := &source{reserve: b.attempts / 6}
	if err := p.with(ctx, url, func(s *session) error {
		s.source, s.discards = from, true
		s.flood(ctx, 500, times(b.attempts))
		return nil
	}); err != nil {
		return fmt.Errorf("fill the journal: %w", err)
	}
	bytes, err := p.size(ctx, url)
	if err != nil {
		return err
	}
	table(out, "the full journal", "attempts", "claims", "bytes per attempt")
	row(out, p.name, strconv.Itoa(b.attempts), fmt.Sprint(from.claims), fmt.Sprint(bytes/int64(b.attempts)))
	if err := p.with(ctx, url, func(s *session) error {
		if err := b.againstEmpty(ctx, out, p, s, from, from.latest(20_000)); err != nil {
			return err
		}
		b.waits(ctx, out, p, s)
		return b.deadLetters(ctx, out, s)
	}); err != nil {
		return err
	}
	return b.whileHeld(ctx, url, 0, func(w *heldWorker) error {
		lately := "/audit?since=" + time.Now().UTC().Add(-time.Minute).Format(time.RFC3339)
		for _, path := range []string{"/", "/dead-letters", "/dead-letters?sort=amount", "/dead-letters/groups", lately} {
			page, err := w.pages(path)
			if err != nil {
				return err
			}
			row(out, "the console's "+path, fmt.Sprintf("%.1f ms", page.Seconds()*1000), "100 ms")
		}
		return nil
	})
}

// againstEmpty measures, in turn, a decision in an empty journal and in the full one.
func (b *bench) againstEmpty(ctx context.Context, out io.Writer, p *place, full *session, older, lately *source) error {
	var empty, ofAny, ofLately []float64
	measure := func(s *session, into *[]float64) error {
		*into = append(*into, s.replay(ctx, min(15_000, b.attempts)).cpu())
		return s.err
	}
	for range b.rounds {
		if err := p.with(ctx, "", func(s *session) error { return measure(s, &empty) }); err != nil {
			return err
		}
		full.source = older
		_ = measure(full, &ofAny)
		full.source = lately
		if err := measure(full, &ofLately); err != nil {
			return err
		}
	}
	table(out, "one decision", "empty journal", "full, of the latest claims", "ratio (goal ≤ 1.5)",
		"full, of any claim", "ratio")
	row(out, "CPU, the server's included", spread(empty, 0)+" µs", spread(ofLately, 0)+" µs", ratio(ofLately, empty),
		spread(ofAny, 0)+" µs", ratio(ofAny, empty))
	return nil
}

// deadLetters measures plans and lists in the full journal.
func (b *bench) deadLetters(ctx context.Context, out io.Writer, s *session) error {
	service := deadletter.New(s.store, nil, nil, time.Now, time.Now)
	groups, _, err := service.Groups(ctx, journal.DeadLetterFilter{}, "", 50)
	if err != nil || len(groups) == 0 {
		return fmt.Errorf("list the causes of dead letters: %d found: %w", len(groups), err)
	}
	newest := groups[0].Last
	open := 0
	plan := func(f journal.DeadLetterFilter, _ string) (string, error) {
		all, _, err := s.store.DeadLettersOpen(ctx, f, 0, journal.MostBulkItems+1)
		open = len(all)
		return "", err
	}
	causes := func(f journal.DeadLetterFilter, cursor string) (string, error) {
		_, next, err := service.Groups(ctx, f, cursor, 50)
		return next, err
	}
	page := func(f journal.DeadLetterFilter, cursor string) (string, error) {
		_, next, err := s.store.DeadLetterPage(ctx, f, cursor, 50)
		return next, err
	}
	if _, err := plan(journal.DeadLetterFilter{}, ""); err != nil {
		return err
	}
	table(out, fmt.Sprintf("dead letters, %d of them in a plan", open), "p95", "goal")
	for _, l := range []struct {
		name, goal string
		call       func(f journal.DeadLetterFilter, cursor string) (next string, err error)
		f          journal.DeadLetterFilter
	}{
		{"a plan over all open ones", "100 ms", plan, journal.DeadLetterFilter{}},
		{"a plan by a beginning that all claims share", "100 ms", plan, journal.DeadLetterFilter{Query: "CLM-"}},
		{"a page of groups: open", "100 ms", causes, journal.DeadLetterFilter{}},
		{"a page of groups: all states", "100 ms", causes, journal.DeadLetterFilter{State: "all"}},
		{"a page: open", "100 ms", page, journal.DeadLetterFilter{Now: newest}},
		{"a page by deadline", "100 ms", page, journal.DeadLetterFilter{Sort: deadletter.ByDeadline}},
		{"a page by amount", "100 ms", page, journal.DeadLetterFilter{Sort: deadletter.ByAmount}},
		{"a page of a cause by deadline", "100 ms", page,
			journal.DeadLetterFilter{Sort: deadletter.ByDeadline, Fingerprint: groups[0].Cause.ID}},
		{"a page of a team", "100 ms", page, journal.DeadLetterFilter{Team: groups[0].Teams[0]}},
		{"a page of a cause", "100 ms", page, journal.DeadLetterFilter{Fingerprint: groups[0].Cause.ID}},
		{"a page of a minute", "100 ms", page, journal.DeadLetterFilter{Since: newest.Add(-time.Minute), Until: newest}},
		{"a page of a frequent word", "100 ms", page, journal.DeadLetterFilter{State: "all", Query: "operadora"}},
	} {
		var all []time.Duration
		cursor := ""
		for range 20 { // page after page
			began := time.Now()
			if cursor, err = l.call(l.f, cursor); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			all = append(all, time.Since(began))
		}
		slices.Sort(all)
		row(out, l.name, fmt.Sprintf("%.1f ms", all[18].Seconds()*1000), l.goal)
	}
	return nil
}
