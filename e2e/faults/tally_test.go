package faults_test

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"retry-worker/internal/worker"
)

// tally counts what a worker's hooks are told. Safe for concurrent use.
type tally struct {
	mu      sync.Mutex
	seen    figures
	changed chan struct{} // closed and replaced at every change
}

// figures are a tally at one instant.
type figures struct {
	actions             map[worker.Action]int
	inFlight, received  int // jobs in hand, and ever in hand
	ups                 []bool
	panicked, oversized int
}

// answered is the number of jobs that were reported, whatever became of them.
func (f figures) answered() int {
	n := 0
	for _, k := range f.actions {
		n += k
	}
	return n
}

func newTally() *tally {
	return &tally{seen: figures{actions: map[worker.Action]int{}}, changed: make(chan struct{})}
}

func (c *tally) note(change func(*figures)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.seen)
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *tally) hooks() worker.Hooks {
	h := worker.NoHooks()
	h.Answered = func(_ string, a worker.Action) { c.note(func(f *figures) { f.actions[a]++ }) }
	h.InFlight = func(n int) {
		c.note(func(f *figures) { f.inFlight += n; f.received += max(n, 0) })
	}
	h.EngineUp = func(up bool) { c.note(func(f *figures) { f.ups = append(f.ups, up) }) }
	h.Panicked = func(string) { c.note(func(f *figures) { f.panicked++ }) }
	h.Oversized = func(string) { c.note(func(f *figures) { f.oversized++ }) }
	return h
}

func (c *tally) figures() figures {
	f, _ := c.look()
	return f
}

func (c *tally) look() (figures, chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.seen
	f.actions = maps.Clone(f.actions)
	return f, c.changed
}

// waitFor returns when met first holds, or with the context's error.
func (c *tally) waitFor(ctx context.Context, met func(figures) bool) error {
	for {
		f, changed := c.look()
		if met(f) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for the worker: %w; its hooks were told %+v", ctx.Err(), f)
		}
	}
}
