package gatewaytest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
)

// Counts are the engine's totals.
type Counts struct {
	Jobs        int // added, or handed out where they are endless
	HandedOut   int // activations
	Undelivered int // activations whose answer never reached the worker
	TimedOut    int // activations that ran out
	Polls       int
	HandedBack  int // FailJob with retries left
	Answers     int // that settled a job
	Refused     int // commands the engine refused: NOT_FOUND, FAILED_PRECONDITION, INVALID_ARGUMENT

	Held    int // activated jobs
	MaxHeld int // activated jobs, at most at any time

	FirstHandedOut, FirstAnswer, LastAnswer time.Time

	in [states]int
}

// In is how many jobs are in a state.
func (c Counts) In(s State) int { return c.in[s] }

// Settled is how many jobs need nothing more of a worker: completed, ended by
// a BPMN error, by an incident or with their instance.
func (c Counts) Settled() int {
	n := 0
	for s := Incident; int(s) < states; s++ {
		n += c.in[s]
	}
	return n
}

// String names the states that hold jobs.
func (c Counts) String() string {
	var parts []string
	for s, n := range c.in {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, State(s)))
		}
	}
	return strings.Join(parts, ", ")
}

func (c *Counts) handedOut(now time.Time) {
	c.HandedOut++
	if c.FirstHandedOut.IsZero() {
		c.FirstHandedOut = now
	}
}

func (c *Counts) answered(a *Answer) {
	if a.Code != codes.OK {
		c.Refused++
	}
	if !a.Settled {
		return
	}
	c.Answers++
	c.LastAnswer = a.At
	if c.FirstAnswer.IsZero() {
		c.FirstAnswer = a.At
	}
}

// View is the engine at one instant, for the predicates of [Engine.WaitFor]
// only: it holds the engine's lock, so a predicate must not call the engine
// itself, and a view must not outlive it.
type View struct {
	Counts

	e *Engine
}

func (e *Engine) view() View {
	return View{Counts: e.totals(), e: e}
}

// Job is [Engine.Job].
func (v View) Job(key int64) (JobRecord, bool) {
	j := v.e.jobs[key]
	if j == nil || j.history == nil {
		return JobRecord{}, false
	}
	return v.e.record(j), true
}

// Journal is [Engine.Journal].
func (v View) Journal() []JobRecord {
	var all []JobRecord
	for _, j := range v.e.jobs {
		if j.history != nil {
			all = append(all, v.e.record(j))
		}
	}
	slices.SortFunc(all, func(a, b JobRecord) int { return int(a.Key - b.Key) })
	return all
}

// Polls is [Engine.Polls].
func (v View) Polls(jobType string) []Poll {
	var all []Poll
	for _, p := range v.e.polls {
		if jobType == "" || p.Type == jobType {
			all = append(all, *p)
		}
	}
	return all
}

// Waiting is how many polls wait for a job at this moment.
func (v View) Waiting() int { return v.e.waiting }

// Calls is [Engine.Calls].
func (v View) Calls(m Method, of ...codes.Code) int { return v.e.Calls(m, of...) }

// UnderWay is [Engine.UnderWay].
func (v View) UnderWay(m Method) (now, most int) { return v.e.UnderWay(m) }

// HeldBy is how many jobs a worker holds now, and how many it held at most.
func (v View) HeldBy(worker string) (now, most int) {
	if h := v.e.holders[worker]; h != nil {
		return h.held, h.most
	}
	return 0, 0
}

// Counts are the engine's totals at this instant.
func (e *Engine) Counts() Counts {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.expire(e.now())
	return e.totals()
}

func (e *Engine) totals() Counts {
	c := e.counts
	c.Held, c.MaxHeld = e.held.held, e.held.most
	return c
}

// HeldBy is [View.HeldBy] now.
func (e *Engine) HeldBy(worker string) (now, most int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.view().HeldBy(worker)
}

// WaitFor returns when met first holds; it looks whenever something happened:
// a call that came or ended, a job that changed, a time-out that passed. It
// fails with the context's error and the engine's state.
func (e *Engine) WaitFor(ctx context.Context, met func(View) bool) error {
	again := e.watch()
	defer e.unwatch(again)
	for {
		if e.holds(met) {
			return nil
		}
		select {
		case <-again:
		case <-ctx.Done():
			return fmt.Errorf("wait for the stub engine: %w; it has %s", context.Cause(ctx), e)
		}
	}
}

// WaitAnswers returns when answers have settled n jobs in all. Unlike WaitFor it
// costs the engine nothing meanwhile; one caller at a time.
func (e *Engine) WaitAnswers(ctx context.Context, n int) error {
	reached := make(chan struct{})
	e.mu.Lock()
	e.goal, e.goalReached = n, reached
	e.atGoal()
	e.mu.Unlock()
	select {
	case <-reached:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for %d answers: %w; the engine has %s", n, context.Cause(ctx), e)
	}
}

func (e *Engine) atGoal() {
	if e.goalReached != nil && e.counts.Answers >= e.goal {
		close(e.goalReached)
		e.goalReached = nil
	}
}

func (e *Engine) watch() chan struct{} {
	again := make(chan struct{}, 1)
	e.watching.Add(1)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watchers[again] = struct{}{}
	return again
}

func (e *Engine) unwatch(again chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.watchers, again)
	e.watching.Add(-1)
}

func (e *Engine) holds(met func(View) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.expire(e.now())
	e.arm()
	return met(e.view())
}

// stir lets watchers see what changed outside the lock.
func (e *Engine) stir() {
	if e.watching.Load() == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.changed()
}
