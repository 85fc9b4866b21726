package deadletter

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/journal"
)

// runExecutor executes one run. Its methods are one goroutine's, but for settle and what that calls.
type runExecutor struct {
	*Runner
	stop, hard context.Context
	run        journal.BulkRun // as it was seen last
	// began is when this executor did, looked when it saw the run, both by this machine's clock.
	began, looked time.Time
	pace          *pace
	page          []journal.BulkItem // planned, in order
	after         int64              // the item before them
	// flying decisions are on their way; landed gets each.
	flying, mostFlying int
	landed             chan landing
	// stale tells that an item that was taken from the page may still be planned.
	stale bool
	// ended tells that the run's stop was told.
	ended bool
	// held is why nothing is decided, as it was told last.
	held string
}

// landing is what became of an item. Without an error it is decided, or refused.
type landing struct {
	refused bool
	err     error
}

// mostFlying decisions of one run are on their way at once: a commit may take longer than the pace allows for one. It
// is a second's worth at most, so that no more than that come through together after a stall.
const mostFlying = 32

func newRunExecutor(stop, hard context.Context, r *Runner, run *journal.BulkRun) *runExecutor {
	most := int(min(max(run.PerMinute/60, 1), mostFlying))
	return &runExecutor{Runner: r, stop: stop, hard: hard, run: *run, began: time.Now(), held: run.Hold,
		mostFlying: most, landed: make(chan landing, most)}
}

// errEnded is why an executor ends: there is nothing more to do for its run.
var errEnded = errors.New("the run goes on no more")

// execute gathers what is to be decided and decides it, until all is, the run is stopped, or stop ends.
func (c *runExecutor) execute() {
	defer c.land()
	if c.gather(); !c.begin() {
		return
	}
	for c.stop.Err() == nil {
		err := c.await()
		if err == nil && c.stop.Err() == nil {
			err = c.step()
		}
		switch {
		case errors.Is(err, errEnded):
			return
		case err != nil:
			c.hold(HoldJournal, err)
		}
	}
}

// await the next turn, for a second at most, or a landing.
func (c *runExecutor) await() error {
	if c.flying == c.mostFlying {
		return c.take(<-c.landed)
	}
	if l, landed := clock.RestOr(c.stop, c.clock, min(c.pace.wait(), lookEvery), c.landed); landed {
		return c.take(l)
	}
	return nil
}

// step decides on the next item where it is time. Its error is errEnded, or why the journal cannot be used.
func (c *runExecutor) step() error {
	if err := c.look(); err != nil {
		return err
	}
	item, err := c.next()
	switch {
	case err != nil:
		return err
	case item == nil:
		return c.finish()
	}
	switch down := c.engineUp().IsZero(); {
	case down && time.Since(c.began) < engineGrace:
		rest(c.stop, lookEvery/4)
		return nil
	case down:
		c.hold(HoldEngine, nil)
		return nil
	case c.held == HoldEngine:
		return c.goOn()
	case c.pace.wait() == 0 && c.flying < c.mostFlying:
		c.launch(*item)
	}
	return nil
}

// look at the run where the last look was a while ago. That nothing is decided in a run that was stopped since, the
// journal sees to (journal.Review.Run).
func (c *runExecutor) look() error {
	if time.Since(c.looked) < lookEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.hard, storeTime)
	defer cancel()
	run, found, err := c.items.BulkRun(ctx, c.run.ID)
	if err != nil {
		return err
	}
	if !found {
		return errEnded
	}
	if c.run, c.looked = run, time.Now(); run.State != journal.BulkRunning {
		return c.stopped()
	}
	return nil
}

// stopped tells that somebody has stopped the run, or that it has ended.
func (c *runExecutor) stopped() error {
	if c.ended {
		return errEnded
	}
	c.ended = true
	c.log.Info("a bulk run decides nothing more for now",
		c.fields("bulk_run_stopped", zap.String("state", string(c.run.State)))...)
	return errEnded
}

// next is the item whose turn it is; nil where none is left, and none on its way.
func (c *runExecutor) next() (*journal.BulkItem, error) {
	for {
		if c.stale {
			c.land()
			c.stale, c.page, c.after = false, nil, 0
		}
		if len(c.page) > 0 {
			return &c.page[0], nil
		}
		page, err := c.read(journal.BulkPlanned, c.after, pageItems)
		switch {
		case err != nil:
			return nil, err
		case len(page) > 0:
			c.page = page
		case c.after == 0:
			return nil, nil
		default:
			c.stale = true // look again whether something was left behind
		}
	}
}

func (c *runExecutor) read(outcome journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error) {
	ctx, cancel := context.WithTimeout(c.hard, storeTime)
	defer cancel()
	return c.items.BulkItems(ctx, c.run.ID, outcome, after, limit)
}

// launch has a decision made; its turn is spent.
func (c *runExecutor) launch(i journal.BulkItem) {
	c.pace.spend()
	c.page, c.after = c.page[1:], i.Number
	c.flying++
	run := c.run
	go func() { c.landed <- c.settle(&run, &i) }()
}

// settle decides on an item, or notes why that is refused.
func (c *runExecutor) settle(run *journal.BulkRun, i *journal.BulkItem) landing {
	err := c.ask(run, i)
	refusal := RefusalOf(err)
	switch {
	case refusal != nil:
		return landing{true, c.refuse(run, i, refusal.Code)}
	case concernsOneAlone(err): // asking again is of no use
		return landing{true, c.refuse(run, i, NotRecordable)}
	default:
		return landing{false, err}
	}
}

// take notes what became of an item. Where that is not known the items are read again: the journal decides on none
// twice.
func (c *runExecutor) take(l landing) error {
	c.flying--
	switch err := l.err; {
	case errors.Is(err, journal.ErrInvalidRunState), errors.Is(err, journal.ErrBulkRunUnknown):
		c.stale, c.looked = true, time.Time{} // what state is it in?
		return c.look()
	case err != nil:
		c.stale = true
		return err
	case l.refused:
		c.hooks.Refused(c.run.Action)
		c.pace.refund()
		rest(c.stop, refusalRest)
	default:
		c.hooks.Decided(c.run.Action)
	}
	if c.held == HoldJournal { // which has taken something again
		return c.goOn()
	}
	return nil
}

// land awaits all that is on its way. What goes wrong with it shows again.
func (c *runExecutor) land() {
	for c.flying > 0 {
		_ = c.take(<-c.landed)
	}
}

// ask for the decision.
func (c *runExecutor) ask(r *journal.BulkRun, i *journal.BulkItem) error {
	command := Command{ID: i.DeadLetter, Reason: r.Reason, By: r.By, Run: r.ID}
	if r.Action == journal.BulkDiscard {
		_, err := c.decide.Discard(c.hard, command)
		return err
	}
	command.Force, command.Fresh, command.When = r.Force, r.Fresh, Backoff
	if r.Now {
		command.When = Now
	}
	_, err := c.decide.Retry(c.hard, command)
	return err
}

// refuse notes that nothing was done with an item. One that is decided after all keeps its outcome (RefuseBulkItem).
func (c *runExecutor) refuse(run *journal.BulkRun, i *journal.BulkItem, code Code) error {
	ctx, cancel := context.WithTimeout(c.hard, storeTime)
	defer cancel()
	return c.memory.RefuseBulkItem(ctx, run.ID, i.Number, string(code))
}

// finish ends a run of which nothing is left to decide.
func (c *runExecutor) finish() error {
	ctx, cancel := context.WithTimeout(c.hard, storeTime)
	defer cancel()
	run, err := c.memory.Bulk(ctx, &journal.BulkStep{Verb: journal.BulkFinish, Run: journal.BulkRun{ID: c.run.ID}})
	switch {
	case errors.Is(err, journal.ErrInvalidRunState): // stopped in the same moment, or something was planned again
		rest(c.stop, lookEvery)
		c.looked = time.Time{}
		return c.look()
	case errors.Is(err, journal.ErrBulkRunUnknown):
		return errEnded
	case err != nil:
		return err
	}
	c.run = run
	c.log.Info("a bulk run is done: each of its dead letters is decided or refused", c.fields("bulk_run_done",
		zap.Int64("refused", run.Counts[journal.BulkRefused]), zap.Duration("took", run.EndedAt.Sub(run.StartedAt)))...)
	return errEnded
}

// fields of every line of the log about the run.
func (c *runExecutor) fields(event string, more ...zap.Field) []zap.Field {
	return append([]zap.Field{zap.String("event", event), zap.String("run", c.run.ID),
		zap.String("action", string(c.run.Action)),
		zap.Int64("perMinute", c.run.PerMinute), zap.Int64("total", c.run.Total),
		zap.Int64("planned", c.run.Counts[journal.BulkPlanned])}, more...)
}

// gather has all dead letters of the run in it before the first is decided, a few at a time: others write between.
func (c *runExecutor) gather() {
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

func (c *runExecutor) gatherSome() (done bool, err error) {
	ctx, cancel := context.WithTimeout(c.hard, storeTime)
	defer cancel()
	return c.memory.GatherBulkItems(ctx, c.items, c.run.ID, gatherItems, string(InOtherRun))
}

// begin a schedule behind what the run has decided so far: neither a crash nor a pause lets it go faster.
// It reports whether there is something to do.
func (c *runExecutor) begin() bool {
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

// lastDecision is when the latest of the items was decided on: of those that were on their way beside the first that is
// planned, or else of those before it, of which some may be refused; the zero time where none was.
func (c *runExecutor) lastDecision() (last time.Time, err error) {
	first, err := c.next()
	if err != nil || first == nil {
		return last, err
	}
	for end := first.Number - 1 + int64(c.mostFlying); end > 0 && last.IsZero(); end -= pageItems {
		page, err := c.read("", max(end-pageItems, 0), int(min(end, pageItems)))
		if err != nil {
			return last, err
		}
		for i := range page {
			if at := page[i].DecidedAt; at.After(last) {
				last = at
			}
		}
	}
	return last, nil
}

// hold decides nothing for a moment. Why that is, is told once, and written down where that is possible.
func (c *runExecutor) hold(why string, cause error) {
	if c.hard.Err() != nil {
		return // it is this process that ends
	}
	if c.held != why {
		c.log.Warn("a bulk run waits and goes on by itself",
			c.fields("bulk_run_held", zap.String("why", why), zap.Error(cause))...)
		c.held = why
	}
	if c.run.Hold != why && c.note(why) == nil {
		c.run.Hold = why
	}
	rest(c.stop, lookEvery)
}

// goOn ends a hold.
func (c *runExecutor) goOn() error {
	if err := c.note(""); err != nil {
		return err
	}
	c.run.Hold = ""
	c.log.Info("a bulk run goes on", c.fields("bulk_run_goes_on", zap.String("after", c.held))...)
	c.held = ""
	return nil
}

func (c *runExecutor) note(why string) error {
	ctx, cancel := context.WithTimeout(c.hard, storeTime)
	defer cancel()
	return c.memory.HoldBulkRun(ctx, c.run.ID, why)
}
