// Package clocktest has clocks for tests that cannot wait as long as a hospital does.
package clocktest

import (
	"context"
	"time"

	"retry-worker/internal/clock"
)

// Faster is a clock that was right at Origin and goes Times as fast as this machine's since then. A process that is started
// again with the same two goes on where it was. Times must be above 0.
type Faster struct {
	Origin time.Time
	Times  float64
}

var _ clock.Clock = Faster{}

// Now implements clock.Clock.
func (f Faster) Now() time.Time {
	return f.Origin.Add(time.Duration(float64(time.Since(f.Origin)) * f.Times))
}

// Rest implements clock.Clock.
func (f Faster) Rest(ctx context.Context, d time.Duration) {
	clock.Machine{}.Rest(ctx, time.Duration(float64(d)/f.Times))
}
