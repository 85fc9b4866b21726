// Package clock is the time that the service lives by: this machine's, or a test's own.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and waits for it. Every method is safe for concurrent use.
type Clock interface {
	// Now is the instant.
	Now() time.Time
	// Rest returns when d has passed by this clock, or ctx ends; at once where d is not above 0.
	Rest(ctx context.Context, d time.Duration)
}

// Machine is the clock of this machine. Its instants tell durations by the monotonic clock, which nobody sets.
type Machine struct{}

// Now implements Clock.
func (Machine) Now() time.Time { return time.Now() }

// Rest implements Clock.
func (Machine) Rest(ctx context.Context, d time.Duration) {
	if d <= 0 || ctx.Err() != nil {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Signal ends the rest of somebody who waits for it; however often it is sent meanwhile, it is received once.
type Signal chan struct{}

// NewSignal returns a Signal that is not sent yet.
func NewSignal() Signal { return make(Signal, 1) }

// Send sends the signal. It never blocks and is safe for concurrent use.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// RestOr rests as c.Rest does, and a value of wake ends it, too: woken reports whether one did.
func RestOr[T any](ctx context.Context, c Clock, d time.Duration, wake <-chan T) (value T, woken bool) {
	ctx, cancel := context.WithCancel(ctx)
	rested := make(chan struct{})
	go func() {
		defer close(rested)
		c.Rest(ctx, d)
	}()
	defer func() { cancel(); <-rested }()
	select {
	case value = <-wake:
		return value, true
	case <-rested:
		return value, false
	}
}
