package bubble

import (
	"context"
	"sync"
	"time"
)

// Clock is shared by engine and service: the bubble's clock, plus what it was moved ahead. It goes forward only.
type Clock struct {
	mu    sync.Mutex
	ahead time.Duration
	moved chan struct{}           // closed and replaced with each move
	due   map[*time.Time]struct{} // when sleepers wake up
}

// Now implements clock.Clock.
func (c *Clock) Now() time.Time {
	now, _ := c.now()
	return now
}

// now returns the instant, and a channel that is closed when the clock is moved.
func (c *Clock) now() (time.Time, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead), c.moved
}

// NewTicker implements zapcore.Clock: a log's times are this clock's.
func (c *Clock) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

// Rest implements clock.Clock.
func (c *Clock) Rest(ctx context.Context, d time.Duration) {
	end := c.Now().Add(d)
	c.mu.Lock()
	c.due[&end] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.due, &end)
	}()
	for now, moved := c.now(); now.Before(end) && ctx.Err() == nil; now, moved = c.now() {
		select {
		case <-time.After(end.Sub(now)):
		case <-moved:
		case <-ctx.Done():
		}
	}
}

// next returns the earliest of an instant and the times at which somebody wakes up.
func (c *Clock) next(earliest time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	for due := range c.due {
		if due.Before(earliest) {
			earliest = *due
		}
	}
	return earliest
}

// set moves the clock forward to an instant, in one step.
func (c *Clock) set(instant time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = max(c.ahead, time.Until(instant))
	close(c.moved)
	c.moved = make(chan struct{})
}
