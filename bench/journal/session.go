package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// session is a journal at work on a store.
type session struct {
	journal   *journal.Journal
	serverCPU func() time.Duration // used by the store's server so far
	decisions atomic.Int64
	commits   atomic.Int64
	stop      context.CancelFunc
	ended     chan struct{}
}

func newSession(ctx context.Context, store journal.Store, serverCPU func() time.Duration) *session {
	s := &session{serverCPU: serverCPU, ended: make(chan struct{})}
	hooks := journal.NoHooks()
	hooks.Committed = func(int, time.Duration) { s.commits.Add(1) }
	s.journal = journal.New(store, time.Now, nil, hooks)
	stop, cancel := context.WithCancel(ctx)
	s.stop = cancel
	go func() {
		defer close(s.ended)
		s.journal.Run(stop, ctx)
	}()
	return s
}

// end commits what waits; the store can be closed then.
func (s *session) end() {
	s.stop()
	<-s.ended
}

// task is one failure to be decided on.
type task struct {
	claim
	*journal.Analysis
}

// do has one failure decided on and recorded, and holds the decision against the plan: a journal that decides
// something else measures something else.
func (s *session) do(ctx context.Context, t task) error {
	r, err := s.journal.Analyze(ctx, t.Analysis)
	if err != nil {
		return fmt.Errorf("record a decision: %w", err)
	}
	d := &r.Decision
	if r.How != journal.Fresh || d.Outcome != t.next() || r.Attempt.Number != t.failed+1 || d.Outcome == decision.Retry && d.RetryCount != t.failed+1 {
		return fmt.Errorf("claim %s, failure %d: the journal says %s, %s, attempt %d, retry %d; expected a fresh decision, %s",
			t.Subject.ID, t.failed+1, r.How, d.Outcome, r.Attempt.Number, d.RetryCount, t.next())
	}
	s.journal.Answered(&r)
	s.decisions.Add(1)
	return nil
}

// sample is what some decisions took.
type sample struct {
	decisions, commits int64
	took               time.Duration
	own, server        time.Duration // CPU time of this process and of the store's server
	machine            time.Duration // CPU time of everything on it
}

func (s *session) reading(began time.Time) sample {
	return sample{s.decisions.Load(), s.commits.Load(), time.Since(began), ownCPU(), s.serverCPU(), machineCPU()}
}

func (m sample) since(before sample) sample {
	return sample{
		m.decisions - before.decisions, m.commits - before.commits, m.took - before.took,
		m.own - before.own, m.server - before.server, m.machine - before.machine,
	}
}

func (m sample) perSecond() float64  { return float64(m.decisions) / m.took.Seconds() }
func (m sample) commitRate() float64 { return float64(m.commits) / m.took.Seconds() }
func (m sample) batch() float64      { return float64(m.decisions) / float64(max(m.commits, 1)) }

// each is a time's share of one decision, in µs.
func (m sample) each(d time.Duration) float64 {
	return float64(d.Nanoseconds()) / 1000 / float64(max(m.decisions, 1))
}

// others is the share of all CPUs that other programs had meanwhile, from 0 to 1.
func (m sample) others() float64 {
	return max(0, (m.machine-m.own-m.server).Seconds()/m.took.Seconds()/float64(runtime.NumCPU()))
}

// feed gives a caller its next task; false where there is none.
type feed func() (task, bool, error)

// drive has so many callers at work, each asking again as soon as it has its answer, until their feeds end.
func (s *session) drive(ctx context.Context, callers int, feedOf func(caller int) feed) (sample, error) {
	group, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	began := time.Now()
	before := s.reading(began)
	var all sync.WaitGroup
	for caller := range callers {
		next := feedOf(caller)
		all.Go(func() {
			for group.Err() == nil {
				t, more, err := next()
				if err == nil && more {
					err = s.do(group, t)
				}
				if err != nil {
					fail(err)
				}
				if err != nil || !more {
					return
				}
			}
		})
	}
	all.Wait()
	return s.reading(began).since(before), ended(ctx, group)
}

// ended is why the callers ended early: that they were told to, or what went wrong.
func ended(ctx, group context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return context.Cause(group)
}

// flood is drive for some time, each caller reading, redacting and identifying its failures itself, as the
// worker does.
func (s *session) flood(ctx context.Context, from *source, callers int, d time.Duration) (sample, error) {
	end := time.Now().Add(d)
	return s.drive(ctx, callers, from.feed(func() bool { return time.Now().Before(end) }))
}

// warm decides so many times, unmeasured.
func (s *session) warm(ctx context.Context, from *source, decisions int64) error {
	var done atomic.Int64
	_, err := s.drive(ctx, 100, from.feed(func() bool { return done.Add(1) <= decisions }))
	return err
}

// feed takes claims for as long as more says so.
func (s *source) feed(more func() bool) func(int) feed {
	return func(int) feed {
		var last claim
		return func() (task, bool, error) {
			if last.number > 0 { // it has its answer
				s.give(last)
			}
			if last = (claim{}); !more() {
				return task{}, false, nil
			}
			last = s.take()
			a, err := s.failure(last)
			return task{last, a}, true, err
		}
	}
}

// replay is drive for a number of decisions whose failures were made before the clock starts: what it costs is
// the journal's and the store's.
func (s *session) replay(ctx context.Context, from *source, callers, decisions int) (sample, error) {
	parts := from.split(callers)
	tasks := make([][]task, callers)
	for i, p := range parts {
		for range decisions / callers {
			c := p.take()
			a, err := p.failure(c)
			if err != nil {
				return sample{}, err
			}
			tasks[i] = append(tasks[i], task{c, a})
			p.give(c) // its next failure is the same caller's, after this one
		}
	}
	defer from.join(parts)
	return s.drive(ctx, callers, func(caller int) feed {
		return func() (task, bool, error) {
			if len(tasks[caller]) == 0 {
				return task{}, false, nil
			}
			t := tasks[caller][0]
			tasks[caller] = tasks[caller][1:]
			return t, true, nil
		}
	})
}
