package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/bulk"
	"retry-worker/internal/clock"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
	"retry-worker/internal/store"
)

// bulkFigures is what a bulk run costs those whose failures are decided on meanwhile, and how it keeps its pace.
type bulkFigures struct {
	letters int64
	// without a run and with one, in alternation: as many failures as can be decided on.
	without, with []sample
	// under is the run's own decisions a minute meanwhile, alone those of the rest, which nothing disturbs.
	under []float64
	alone float64
	// each is the CPU time of one of these, in µs.
	each float64
}

// bulkClaims is what the ids of the run's claims begin with: none of the portal's does.
const bulkClaims = "CLM-BULK-"

// bulkPace is the fastest that there is, in decisions a minute.
const bulkPace = bulk.MostPerMinute

// ward is a journal with a bulk run on it.
type ward struct {
	*session
	store  store.Store
	bulk   *bulk.Service
	review *review.Service
	run    string

	decided atomic.Int64 // in the run
	last    atomic.Int64 // when, in nanoseconds
}

// bulkRun measures a run of so many dead letters in a journal of its own.
func (b *bench) bulkRun(ctx context.Context) (err error) {
	url, err := b.fresh(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.drop(context.WithoutCancel(ctx), url)) }()
	opened, err := store.Open(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	s := newSession(ctx, opened, b.cpu)
	defer s.end()
	from := newSource(b.portal, reserve)
	if err := s.warm(ctx, from, warmUp); err != nil {
		return err
	}
	began := time.Now()
	policies := func() decision.Policies { return decision.Policies{b.policy.Name: b.policy} }
	up := func() time.Time { return began }
	w := &ward{session: s, store: opened, bulk: bulk.New(opened, s.journal, policies, time.Now, up),
		review: review.New(opened, s.journal, policies, time.Now, up)}
	if err := w.fill(ctx, b.portal, b.letters); err != nil {
		return err
	}
	return w.measure(ctx, b, from, up)
}

// fill has so many claims die, whose processes wait.
func (w *ward) fill(ctx context.Context, p *portal, letters int64) error {
	group, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range usualCallers {
		all.Go(func() {
			for n := next.Add(1); n <= letters && group.Err() == nil; n = next.Add(1) {
				if err := w.die(group, p.policy, p.permanent[0], n); err != nil {
					fail(err)
				}
			}
		})
	}
	all.Wait()
	return ended(ctx, group)
}

func (w *ward) die(ctx context.Context, policy *decision.Policy, permanent string, n int64) error {
	f, rejection := policy.Read(decision.Variables{ID: decision.Text(bulkClaims + strconv.FormatInt(n, 10)),
		Error: decision.Text(permanent), RetryCount: decision.Value("0")})
	if rejection != nil {
		return fmt.Errorf("the benchmark's own claim is refused: %+v", *rejection)
	}
	a := &journal.Analysis{Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: policy.Name, ID: f.ID}, JobKey: n, ElementInstanceKey: n,
		ProcessInstanceKey: n, Rule: decision.RNBIL005, Policy: policy, Failure: &f, Error: f.Error, ReceivedAt: time.Now()}
	a.Identity = journal.IdentityOf(a)
	r, err := w.journal.Analyze(ctx, a)
	switch {
	case err != nil:
		return fmt.Errorf("record a decision: %w", err)
	case r.Attempt.DeadLetter == "":
		return fmt.Errorf("the benchmark's own claim lives on: %+v", r.Decision)
	}
	_, err = w.journal.ReviewSeen(ctx, &journal.ReviewJob{Subject: a.Subject, DeadLetter: r.Attempt.DeadLetter, JobKey: n})
	return err
}

// measure starts the run and measures with it and without, then it alone to its end.
func (w *ward) measure(ctx context.Context, b *bench, from *source, up func() time.Time) error {
	if err := w.start(ctx, b.policy.Name); err != nil {
		return err
	}
	hooks := bulk.Hooks{Refused: func(journal.BulkAction) {}, Decided: func(journal.BulkAction) {
		w.decided.Add(1)
		w.last.Store(time.Now().UnixNano())
	}}
	working, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() {
		bulk.NewRunner(w.store, w.review, w.journal, clock.Machine{}, up, hooks, zap.NewNop()).Run(working, working)
	})
	if err := w.goesOn(ctx); err != nil {
		return err
	}
	b.bulk.letters = b.letters
	for range 2 * b.rounds {
		if err := w.alternate(ctx, b, from); err != nil {
			return err
		}
	}
	return w.rest(ctx, b)
}

func (w *ward) start(ctx context.Context, policy string) error {
	c := bulk.Command{Action: journal.BulkRetry, Filter: journal.DeadLetterFilter{Policy: policy, Query: bulkClaims}, Reason: "bench", By: "bench", PerMinute: bulkPace}
	p, err := w.bulk.Plan(ctx, c)
	if err != nil {
		return fmt.Errorf("plan a bulk run: %w", err)
	}
	run, err := w.bulk.Start(ctx, c, p.Token)
	w.run = run.ID
	return err
}

// alternate measures once without the run, which is paused, and once with it.
func (w *ward) alternate(ctx context.Context, b *bench, from *source) error {
	if _, err := w.bulk.Pause(ctx, w.run, "bench"); err != nil {
		return err
	}
	without, err := w.flood(ctx, from, usualCallers, 2*b.flood)
	if err != nil {
		return err
	}
	if _, err := w.bulk.Resume(ctx, w.run, "bench"); err != nil {
		return err
	}
	if err := w.goesOn(ctx); err != nil {
		return err
	}
	before := w.decided.Load()
	with, err := w.flood(ctx, from, usualCallers, 2*b.flood)
	if err != nil {
		return err
	}
	b.bulk.without, b.bulk.with = append(b.bulk.without, without), append(b.bulk.with, with)
	b.bulk.under = append(b.bulk.under, float64(w.decided.Load()-before)/with.took.Minutes())
	return nil
}

// goesOn waits until the run decides.
func (w *ward) goesOn(ctx context.Context) error {
	before := w.decided.Load()
	return w.await(ctx, "the bulk run to go on", func() (bool, error) { return w.decided.Load() > before, nil })
}

// rest measures the run alone to its end.
func (w *ward) rest(ctx context.Context, b *bench) error {
	if err := w.goesOn(ctx); err != nil {
		return err
	}
	from, first, before := w.decided.Load(), w.last.Load(), w.reading(time.Now())
	err := w.await(ctx, "the bulk run's end", func() (bool, error) {
		if w.decided.Load() < b.letters {
			return false, nil // asking costs, too
		}
		run, err := w.bulk.Run(ctx, w.run)
		return run.State == journal.BulkDone, err
	})
	cpu := w.reading(time.Now()).since(before)
	b.bulk.each = float64((cpu.own + cpu.server).Microseconds()) / float64(max(w.decided.Load()-from, 1))
	b.bulk.alone = float64(w.decided.Load()-from) / time.Duration(w.last.Load()-first).Minutes()
	if done := w.decided.Load(); err == nil && done < b.letters {
		return fmt.Errorf("the bulk run has decided on %d of %d dead letters", done, b.letters)
	}
	return err
}

func (w *ward) await(ctx context.Context, what string, holds func() (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Minute); ; {
		switch done, err := holds(); {
		case err != nil || done:
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("waited ten minutes for %s", what)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func reportBulk(w *writer, benches []*bench) {
	w.table("bulk run of %s dead letters at %s a minute|new failures decided/s without it|with it|ratio (goal ≥ 0.90)|ratio by CPU|its pace meanwhile|its pace alone (goal %s ± 5 %%)|CPU of one alone|others' CPU",
		grouped(float64(benches[0].bulk.letters)), grouped(bulkPace), grouped(bulkPace))
	for _, b := range benches {
		f := &b.bulk
		without, with := all(f.without, sample.perSecond), all(f.with, sample.perSecond)
		w.row("%s|%s|%s|%s|%s|%s|%s|%.0f µs|%s", b.name, spread(without, 0), spread(with, 0), spread(ratios(with, without), 2),
			spread(ratios(all(f.without, sample.allEach), all(f.with, sample.allEach)), 2),
			spread(f.under, 0), grouped(f.alone), f.each, others(f.with))
	}
}
