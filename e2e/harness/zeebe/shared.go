package zeebe

import (
	"context"
	"time"

	"retry-worker/e2e/harness"
)

// Clock is the time that a broker and its workers share. It goes forward only.
type Clock struct {
	*harness.SharedClock
	broker *Broker
}

// ShareClock returns the broker's clock for workers to go by, by that file.
func (b *Broker) ShareClock(ctx context.Context, file string) (*Clock, error) {
	shared, err := harness.OpenSharedClock(file)
	if err != nil {
		return nil, err
	}
	c := &Clock{shared, b}
	return c, c.Follow(ctx)
}

// Follow sets the workers' clock to the broker's, which somebody else may have moved.
func (c *Clock) Follow(ctx context.Context) error {
	now, err := c.broker.Time(ctx)
	if err != nil {
		return err
	}
	ahead := time.Until(now)
	if ahead < 5*time.Second { // it was never moved
		ahead = 0
	}
	return c.SetAhead(ahead)
}

// MoveTo moves the clock forward to an instant, and does nothing where that has passed. The workers' goes first: what the
// broker's sets off is decided at the new time.
func (c *Clock) MoveTo(ctx context.Context, instant time.Time) error {
	d := instant.Sub(c.Now()).Truncate(time.Millisecond) + time.Millisecond
	if d <= 0 {
		return nil
	}
	if err := c.SetAhead(c.Ahead() + d); err != nil {
		return err
	}
	return c.broker.AddTime(ctx, d)
}

// Add moves the clock forward.
func (c *Clock) Add(ctx context.Context, d time.Duration) error { return c.MoveTo(ctx, c.Now().Add(d)) }

// Restart restarts the broker as [Broker.Restart] does, and sets its clock to where it was.
func (c *Clock) Restart(ctx context.Context) error {
	if err := c.broker.Restart(ctx); err != nil {
		return err
	}
	return c.broker.AddTime(ctx, c.Ahead())
}
