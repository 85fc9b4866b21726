package testkit

import (
	"context"
	"time"

	"retry-worker/internal/clock"
)

// FastClock is a clock that was right at Origin and goes Times as fast as this machine's since then. A process that is started
// again with the same two goes on where it was. Times must be above 0.
type FastClock struct {
	Origin time.Time
	Times  float64
}

var _ clock.Clock = FastClock{}

// Now implements clock.Clock.
func (f FastClock) Now() time.Time {
	return f.Origin.Add(time.Duration(float64(time.Since(f.Origin)) * f.Times))
}

// Rest implements clock.Clock.
func (f FastClock) Rest(ctx context.Context, d time.Duration) {
	clock.Machine{}.Rest(ctx, time.Duration(float64(d)/f.Times))
}
