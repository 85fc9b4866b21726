package engine

import (
	"context"
	"time"

	"retry-worker/e2e/harness"
)

// Clock is the clock that an engine and its workers share. It goes forward only.
type Clock struct {
	*harness.SharedClock
	engine *Engine
}

// ShareClock returns the engine's clock, which workers follow by that file.
func (e *Engine) ShareClock(ctx context.Context, file string) (*Clock, error) {
	shared, err := harness.OpenSharedClock(file)
	if err != nil {
		return nil, err
	}
	c := &Clock{shared, e}
	return c, c.Follow(ctx)
}

// Follow sets the workers' clock to the engine's, which somebody else may have moved.
func (c *Clock) Follow(ctx context.Context) error {
	now, err := c.engine.Time(ctx)
	if err != nil {
		return err
	}
	ahead := time.Until(now)
	if ahead < 5*time.Second { // it was never moved
		ahead = 0
	}
	return c.SetAhead(ahead)
}

// MoveTo moves the clock forward to an instant, and does nothing if that has passed. It moves the workers' first, so
// that they decide at the new time what the engine sets off.
func (c *Clock) MoveTo(ctx context.Context, instant time.Time) error {
	d := instant.Sub(c.Now()).Truncate(time.Millisecond) + time.Millisecond
	if d <= 0 {
		return nil
	}
	if err := c.SetAhead(c.Ahead() + d); err != nil {
		return err
	}
	return c.engine.AddTime(ctx, d)
}

// Add moves the clock forward.
func (c *Clock) Add(ctx context.Context, d time.Duration) error { return c.MoveTo(ctx, c.Now().Add(d)) }

// Restart restarts the engine as [Engine.Restart] does, and sets its clock to where it was.
func (c *Clock) Restart(ctx context.Context) error {
	if err := c.engine.Restart(ctx); err != nil {
		return err
	}
	now, err := c.engine.Time(ctx)
	if behind := c.Now().Sub(now); err == nil && behind > 0 {
		err = c.engine.AddTime(ctx, behind)
	}
	return err
}
