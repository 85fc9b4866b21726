package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"retry-worker/internal/store"
)

// settings of a run; times are of one measurement.
type settings struct {
	stores   []string
	attempts int64 // in a filled journal
	rounds   int
	flood    time.Duration
	paced    time.Duration
	replay   int // decisions
	letters  int64
}

// The numbers of callers in flight, and of processors; the middle ones where only one is measured.
var (
	inFlight   = []int{50, 100, 200}
	processors = []int{1, 2, 4}
)

const (
	usualCallers    = 100
	usualProcessors = 2
	// warmUp decisions, after which claims wait for their next failure as they do for ever after.
	warmUp  = 5000
	reserve = 2000
	// latestClaims fail again in life: the longest backoff is some hours.
	latestClaims = 20_000
)

// figures are what was measured of one kind of store.
type figures struct {
	floods     map[load][]sample
	paces      []pace // in a young journal
	filled     filled
	perAttempt float64 // bytes
	reopened   time.Duration
	// The cost in an empty journal, and in a full one for the latest claims and for any.
	empty, latest, any []sample
	fullPaces          []pace
	bulk               bulkFigures
}

type load struct{ processors, callers int }

// pace is the latency at a rate of failures per second, in each round.
type pace struct {
	rate   float64
	rounds []latency
}

// bench measures one kind of store.
type bench struct {
	settings
	*kind
	*portal
	figures
	filledURL string
	filledBy  *source // of any claim
	lately    *source // of the latest
}

// on has f work on a journal, and closes it.
func (b *bench) on(ctx context.Context, url string, f func(*session) error) (err error) {
	s, err := store.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	j := newSession(ctx, s, b.cpu)
	defer j.end()
	return f(j)
}

// onFresh is on for a journal of its own, which is warm and removed in the end.
func (b *bench) onFresh(ctx context.Context, f func(*session, *source) error) (err error) {
	url, err := b.fresh(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.drop(context.WithoutCancel(ctx), url)) }()
	return b.on(ctx, url, func(s *session) error {
		from := newSource(b.portal, reserve)
		if err := s.warm(ctx, from, warmUp); err != nil {
			return err
		}
		return f(s, from)
	})
}

// throughput is how many decisions a second are recorded, by processors and callers, in alternation.
func (b *bench) throughput(ctx context.Context) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(usualProcessors))
	b.floods = map[load][]sample{}
	return b.onFresh(ctx, func(s *session, from *source) error {
		for range b.rounds {
			for _, callers := range inFlight {
				for _, n := range processors {
					runtime.GOMAXPROCS(n)
					m, err := s.flood(ctx, from, callers, b.flood)
					if err != nil {
						return err
					}
					l := load{n, callers}
					b.floods[l] = append(b.floods[l], m)
				}
			}
		}
		return nil
	})
}

// rates at which latency is measured: half of what the goal asks for, and half of what was measured.
func (b *bench) rates() []float64 {
	const goal = 5000
	measured := median(all(b.floods[load{usualProcessors, usualCallers}], sample.perSecond))
	return []float64{goal / 2, measured / 2}
}

func (b *bench) latencies(ctx context.Context, s *session, from *source) (found []pace, err error) {
	for _, rate := range b.rates() {
		p := pace{rate: rate}
		for range b.rounds {
			l, err := s.paced(ctx, from, rate, b.paced)
			if err != nil {
				return nil, err
			}
			p.rounds = append(p.rounds, l)
		}
		found = append(found, p)
	}
	return found, nil
}

func (b *bench) freshLatency(ctx context.Context) error {
	return b.onFresh(ctx, func(s *session, from *source) (err error) {
		b.paces, err = b.latencies(ctx, s, from)
		return err
	})
}

// fillUp fills the journal that the rest is measured on, and weighs it.
func (b *bench) fillUp(ctx context.Context) (err error) {
	b.filledBy = newSource(b.portal, reserve)
	if b.filledURL, err = b.fresh(ctx); err != nil {
		return err
	}
	open := func() error { return b.on(ctx, b.filledURL, func(*session) error { return nil }) }
	if err := open(); err != nil {
		return err
	}
	before, err := b.size(ctx, b.filledURL)
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, b.filledURL)
	if err != nil {
		return err
	}
	b.filled, err = fill(ctx, s, b.filledBy, b.attempts)
	if err = errors.Join(err, s.Close()); err != nil {
		return err
	}
	after, err := b.size(ctx, b.filledURL)
	if err != nil {
		return err
	}
	b.lately = b.filledBy.latest(b.claims.Load() - latestClaims)
	b.perAttempt = float64(after-before) / float64(b.filled.attempts)
	began := time.Now()
	err = open()
	b.reopened = time.Since(began)
	return err
}

// flatness is what a decision costs in an empty journal and in a full one, in alternation; then the latency in
// the full one.
func (b *bench) flatness(ctx context.Context) error {
	return b.on(ctx, b.filledURL, func(full *session) (err error) {
		if err := errors.Join(full.warm(ctx, b.filledBy, warmUp/2), full.warm(ctx, b.lately, warmUp/2)); err != nil {
			return err
		}
		for range b.rounds {
			if err := b.flatnessRound(ctx, full); err != nil {
				return err
			}
		}
		b.fullPaces, err = b.latencies(ctx, full, b.lately)
		return err
	})
}

func (b *bench) flatnessRound(ctx context.Context, full *session) error {
	measure := func(into *[]sample, s *session, from *source) error {
		m, err := s.replay(ctx, from, usualCallers, b.replay)
		*into = append(*into, m)
		return err
	}
	err := b.onFresh(ctx, func(s *session, from *source) error { return measure(&b.empty, s, from) })
	if err != nil {
		return fmt.Errorf("measure an empty journal: %w", err)
	}
	if err := errors.Join(measure(&b.latest, full, b.lately), measure(&b.any, full, b.filledBy)); err != nil {
		return fmt.Errorf("measure a full journal: %w", err)
	}
	return nil
}
