package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"retry-worker/internal/journal"
	"retry-worker/internal/store"
)

// session is a journal in use, and the claims that fail in it.
type session struct {
	*journal.Journal
	*source
	store     store.Store
	serverCPU func() time.Duration // of the store's server so far
	decisions atomic.Int64
	discards  bool  // discards four of five dead letters, as people do
	err       error // the first; with returns it
}

// with calls f with the journal at url, and closes it. Without a url it makes a new one and warms it up, so that
// claims wait for their next failure.
func (p *place) with(ctx context.Context, url string, f func(*session) error) (err error) {
	fresh := url == ""
	if fresh {
		if url, err = p.fresh(ctx); err != nil {
			return err
		}
	}
	opened, err := store.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	s := &session{source: &source{reserve: 2000}, store: opened, serverCPU: p.cpu}
	s.Journal = journal.New(opened, time.Now, nil, journal.NoHooks())
	stop, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { s.Run(stop, ctx) })
	defer running.Wait()
	defer cancel()
	if fresh {
		s.flood(ctx, usualCallers, times(p.warmUp))
	}
	return errors.Join(f(s), s.err)
}

// do records the decision on one failure. It fails if the decision is not the planned one, as something else would be
// measured then.
func (s *session) do(ctx context.Context, c claim, a *journal.Analysis) error {
	r, err := s.Analyze(ctx, a)
	if err != nil {
		return fmt.Errorf("record a decision: %w", err)
	}
	d := &r.Decision
	if r.How != journal.Fresh || d.Outcome != c.next() || r.Attempt.Number != c.failed+1 {
		return fmt.Errorf("claim %s, failure %d: the journal says %s, %s, attempt %d; expected a fresh decision, %s",
			a.Subject.ID, c.failed+1, r.How, d.Outcome, r.Attempt.Number, c.next())
	}
	s.Answered(&r)
	s.decisions.Add(1)
	if letter := r.Attempt.DeadLetter; s.discards && letter != "" && c.number/100%5 > 0 {
		_, err = s.Review(ctx, &journal.Review{Subject: a.Subject, DeadLetter: letter, Discard: true, Reason: "x", By: "ana"})
	}
	return err
}

// sample is what a number of decisions took.
type sample struct {
	decisions int64
	took      time.Duration
	used      time.Duration   // CPU time, the server's included
	waits     []time.Duration // sorted; nil if not measured
}

func (m sample) perSecond() float64 { return float64(m.decisions) / m.took.Seconds() }

// cpu returns the CPU time of one decision in µs.
func (m sample) cpu() float64 {
	return float64(m.used.Nanoseconds()) / 1000 / float64(max(m.decisions, 1))
}

// wait returns, in ms, the longest wait of that share (0 to 1) of the decisions, the shortest waits first.
func (m sample) wait(share float64) float64 {
	return m.waits[min(int(share*float64(len(m.waits))), len(m.waits)-1)].Seconds() * 1000
}

// drive measures what that many concurrent callers do.
func (s *session) drive(ctx context.Context, callers int, work func(ctx context.Context, caller int) error) sample {
	decisions, own, server, began := s.decisions.Load(), ownCPU(), s.serverCPU(), time.Now()
	group, ctx := errgroup.WithContext(ctx)
	for caller := range callers {
		group.Go(func() error { return work(ctx, caller) })
	}
	s.err = cmp.Or(s.err, group.Wait())
	return sample{s.decisions.Load() - decisions, time.Since(began), ownCPU() - own + s.serverCPU() - server, nil}
}

// until and times say how long a flood goes on.
func until(d time.Duration) func() bool {
	end := time.Now().Add(d)
	var begun atomic.Bool // at least one decision is made
	return func() bool { return !begun.Swap(true) || time.Now().Before(end) }
}

func times(n int) func() bool {
	var done atomic.Int64
	return func() bool { return done.Add(1) <= int64(n) }
}

// flood has concurrent callers make decisions while more returns true, each as soon as it has its last answer. They
// read, redact and identify their failures themselves, as the worker does.
func (s *session) flood(ctx context.Context, callers int, more func() bool) sample {
	return s.drive(ctx, callers, func(ctx context.Context, _ int) (err error) {
		for err == nil && more() {
			err = s.next(ctx)
		}
		return err
	})
}

func (s *session) next(ctx context.Context) error {
	c := s.take()
	a, err := c.failure()
	if err == nil {
		err = s.do(ctx, c, a)
	}
	s.give(c)
	return err
}

// replay is a flood of failures that are made before the clock starts, so that it costs the journal's and the store's
// time only. One caller makes all failures of a claim, in their order.
func (s *session) replay(ctx context.Context, failures int) sample {
	type task struct {
		claim
		*journal.Analysis
	}
	tasks := make([][]task, usualCallers)
	for range failures {
		c := s.take()
		a, err := c.failure()
		s.err = cmp.Or(s.err, err)
		caller := c.number % usualCallers
		tasks[caller] = append(tasks[caller], task{c, a})
		s.give(c)
	}
	return s.drive(ctx, usualCallers, func(ctx context.Context, caller int) (err error) {
		for _, t := range tasks[caller] {
			err = errors.Join(err, s.do(ctx, t.claim, t.Analysis))
		}
		return err
	})
}

// paced lets failures come at random with a mean rate per second, whether or not earlier ones are answered. It
// measures each from when it was due, so that waiting for others, or for this loop, counts.
func (s *session) paced(ctx context.Context, rate float64, d time.Duration) sample {
	random := rand.New(rand.NewPCG(3, 4))
	var due []time.Duration
	for at := 0.0; at < d.Seconds(); at += random.ExpFloat64() / rate {
		due = append(due, time.Duration(at*float64(time.Second)))
	}
	waits := make([]time.Duration, len(due))
	m := s.drive(ctx, 1, func(ctx context.Context, _ int) error {
		group, ctx := errgroup.WithContext(ctx)
		began := time.Now()
		for i := range due {
			time.Sleep(due[i] - time.Since(began))
			group.Go(func() error {
				err := s.next(ctx)
				waits[i] = time.Since(began) - due[i]
				return err
			})
		}
		return group.Wait()
	})
	slices.Sort(waits)
	m.waits = waits
	return m
}
