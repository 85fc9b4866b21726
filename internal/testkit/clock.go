package testkit

import (
	"sync"
	"time"

	"retry-worker/internal/clock"
)

// Clock is a clock that a test moves. The zero value goes with this machine's. Safe for concurrent use.
type Clock struct {
	clock.Machine // for Rest

	mu     sync.Mutex
	stands time.Time
	ahead  time.Duration
}

// Now implements clock.Clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stands.IsZero() {
		return time.Now().Add(c.ahead)
	}
	return c.stands
}

// Advance moves the clock by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stands.IsZero() {
		c.ahead += d
		return
	}
	c.stands = c.stands.Add(d)
}

// Set moves the clock to an instant.
func (c *Clock) Set(instant time.Time) { c.Advance(instant.Sub(c.Now())) }
