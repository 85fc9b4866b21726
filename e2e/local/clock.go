package main

import (
	"context"
	"sync"
	"time"

	"retry-worker/internal/clock"
	"retry-worker/internal/demo"
)

// movableClock is this machine's clock plus what it was moved ahead, together with the broker's: what the console shows
// of a claim are the ladder's minutes. Its zero value has not been moved, and has no broker yet.
type movableClock struct {
	broker demo.EngineClock

	mu    sync.Mutex
	ahead time.Duration
	moved chan struct{} // closed by the next move; nil while nobody waits for one
}

var (
	_ clock.Clock = (*movableClock)(nil)
	_ demo.Clock  = (*movableClock)(nil)
)

// Now implements clock.Clock.
func (c *movableClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// NewTicker implements zapcore.Clock: the log's times are the worker's.
func (c *movableClock) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

// Rest implements clock.Clock: who rests is woken when the clock is moved past the end of the rest.
func (c *movableClock) Rest(ctx context.Context, d time.Duration) {
	for until := c.Now().Add(d); ; {
		moves := c.moves()
		left := until.Sub(c.Now())
		if left <= 0 || ctx.Err() != nil {
			return
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-moves:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// moves returns a channel that the next move closes.
func (c *movableClock) moves() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moved == nil {
		c.moved = make(chan struct{})
	}
	return c.moved
}

// Add implements demo.Clock. The worker's time goes first: what the broker's sets off is decided at the new time.
func (c *movableClock) Add(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	c.ahead += d
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
	c.mu.Unlock()
	return c.broker.Add(ctx, d)
}
