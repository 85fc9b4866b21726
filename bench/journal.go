package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"
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
		return nil
	}); err != nil {
		return err
	}
	return b.lists(ctx, out, url)
}

// lists measures the console's lists of the full journal.
func (b *bench) lists(ctx context.Context, out io.Writer, url string) error {
	table(out, "pages of the console", "p95", "goal")
	return b.whileHeld(ctx, url, 0, func(w *heldWorker) error {
		lately := "since=" + time.Now().UTC().Add(-time.Minute).Format(time.RFC3339)
		for _, path := range []string{
			"/", "/audit?" + lately, "/dead-letters", "/dead-letters?" + lately, "/dead-letters?sort=deadline", "/dead-letters?sort=amount",
			"/dead-letters?team=faturamento", "/dead-letters?q=CLM-", "/dead-letters?state=all&q=operadora",
			"/dead-letters/groups", "/dead-letters/groups?state=all",
		} {
			page, err := w.pages(path)
			if err != nil {
				return err
			}
			row(out, path, fmt.Sprintf("%.1f ms", page.Seconds()*1000), "100 ms")
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
