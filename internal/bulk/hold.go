package bulk

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/journal"
)

// gather has all dead letters of the run in it before the first is decided, a few at a time: others write between.
func (c *carrier) gather() {
	if c.run.State != journal.BulkPreparing {
		return
	}
	for c.stop.Err() == nil {
		began := time.Now()
		done, err := c.gatherSome()
		switch {
		case err != nil:
			c.hold(HoldJournal, err)
		case done:
			return
		default:
			rest(c.stop, max(gatherRest, time.Since(began)))
		}
	}
}

func (c *carrier) gatherSome() (done bool, err error) {
	ctx, cancel := context.WithTimeout(c.hard, storeTime)
	defer cancel()
	return c.memory.GatherBulkItems(ctx, c.items, c.run.ID, gatherItems, string(InOtherRun))
}

// begin a schedule behind what the run has decided so far: neither a crash nor a pause lets it go faster.
// It tells whether there is something to do.
func (c *carrier) begin() bool {
	for c.stop.Err() == nil {
		err := c.look()
		if errors.Is(err, errEnded) {
			return false
		}
		var last time.Time
		if err == nil {
			last, err = c.lastDecision()
		}
		if err == nil {
			c.pace = newPace(c.clock, c.run.PerMinute, last)
			c.log.Info("a bulk run is carried out", c.fields("bulk_run_started")...)
			return true
		}
		c.hold(HoldJournal, err)
	}
	return false
}

// lastDecision is when the latest of the items before the first that is planned, and of those that were on their way beside
// it, was decided on; the zero time where none was.
func (c *carrier) lastDecision() (last time.Time, err error) {
	first, err := c.next()
	if err != nil || first == nil {
		return last, err
	}
	around, err := c.read("", max(first.Number-2, 0), c.mostFlying+1)
	for i := range around {
		if at := around[i].DecidedAt; at.After(last) {
			last = at
		}
	}
	return last, err
}

// hold decides nothing for a moment. Why that is, is told once, and written down where that is possible.
func (c *carrier) hold(why string, cause error) {
	if c.hard.Err() != nil {
		return // it is this process that ends
	}
	if c.held != why {
		c.log.Warn("a bulk run waits and goes on by itself", c.fields("bulk_run_held", zap.String("why", why), zap.Error(cause))...)
		c.held = why
	}
	if c.run.Hold != why && c.note(why) == nil {
		c.run.Hold = why
	}
	rest(c.stop, lookEvery)
}

// goOn ends a hold.
func (c *carrier) goOn() error {
	if err := c.note(""); err != nil {
		return err
	}
	c.run.Hold = ""
	c.log.Info("a bulk run goes on", c.fields("bulk_run_goes_on", zap.String("after", c.held))...)
	c.held = ""
	return nil
}

// recovered ends a hold for the journal's sake, now that it has taken something.
func (c *carrier) recovered() error {
	if c.held != HoldJournal {
		return nil
	}
	return c.goOn()
}

func (c *carrier) note(why string) error {
	ctx, cancel := context.WithTimeout(c.hard, storeTime)
	defer cancel()
	return c.memory.HoldBulkRun(ctx, c.run.ID, why)
}
