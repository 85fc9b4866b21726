// Package clock provides the service's time: this machine's, or a test's own.
package clock

import (
	"context"
	"time"
)

// Clock tells the time and waits for it. Every method is safe for concurrent use.
type Clock interface {
	// Now returns the current instant.
	Now() time.Time
	// Rest returns when d has passed by this clock or ctx ends; at once if d is not positive.
	Rest(ctx context.Context, d time.Duration)
}

// Machine is this machine's clock. Its durations are monotonic.
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

// Signal wakes one waiting goroutine. However often it is sent meanwhile, it is received once.
type Signal chan struct{}

// NewSignal returns a Signal that has not been sent.
func NewSignal() Signal { return make(Signal, 1) }

// Send sends the signal. It never blocks and is safe for concurrent use.
func (s Signal) Send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// RestOr rests like c.Rest, but no longer than until a value of wake arrives. woken reports whether one did.
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
