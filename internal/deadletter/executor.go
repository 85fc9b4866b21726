package deadletter

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/journal"
)

const (
	// mostAtOnce decisions of one run are made together: a commit may take longer than the pace allows for one.
	mostAtOnce = 32
	// mostLate is how far behind its schedule a run that catches up is at most, so that no more than a second's worth comes
	// together after a stall.
	mostLate = time.Second
	// batchTime is how much of a fast pace is decided at once: the run is read for each batch.
	batchTime = 100 * time.Millisecond
)

// runExecutor executes one run. Its methods are one goroutine's, but for settle and what that calls.
type runExecutor struct {
	*Runner
	stop, hard context.Context
	run        journal.BulkRun // as it was seen last
	began      time.Time       // by this machine's clock
	// due is when the next decision is: each an interval after the one before was, however long that took.
	due time.Time
	// held is why nothing is decided, as the log was told last; empty where it is.
	held string
}

// newRunExecutor returns an executor whose first decision is due now, or an interval from now where some are decided:
// neither a crash nor a pause lets a run go faster.
func newRunExecutor(stop, hard context.Context, r *Runner, run *journal.BulkRun) *runExecutor {
	x := &runExecutor{Runner: r, stop: stop, hard: hard, run: *run, began: time.Now(), due: r.clock.Now()}
	if run.Counts[journal.BulkPlanned] < run.Total {
		x.due = x.due.Add(interval(run.PerMinute))
	}
	return x
}

// errEnded is why an executor ends: there is nothing more to do for its run.
var errEnded = errors.New("the run no longer goes on")

// execute decides what is planned, until all is, the run is stopped, or stop ends.
func (x *runExecutor) execute() {
	x.log.Info("a bulk run is carried out", x.fields("bulk_run_started")...)
	for x.stop.Err() == nil {
		switch err := x.step(); {
		case errors.Is(err, errEnded):
			return
		case err != nil:
			x.wait("journal_down", err)
		}
	}
}

// step decides on what is due. Its error is errEnded, or why the journal cannot be used.
func (x *runExecutor) step() error {
	page, err := x.look()
	switch {
	case err != nil:
		return err
	case len(page) == 0:
		return x.finish()
	}
	if up, err := x.heedEngine(); !up || err != nil {
		return err
	}
	n, wait := x.turns()
	if n == 0 {
		x.clock.Rest(x.stop, min(wait, lookEvery))
		return nil
	}
	return x.decide(page[:min(n, len(page))])
}

// look at the run, and the next items that are planned. That nothing is decided in a run that was stopped since, the
// journal sees to (journal.Review.Run).
func (x *runExecutor) look() ([]journal.BulkItem, error) {
	ctx, cancel := context.WithTimeout(x.hard, storeTime)
	defer cancel()
	run, found, err := x.items.BulkRun(ctx, x.run.ID)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, errEnded
	}
	if x.run = run; run.State != journal.BulkRunning {
		x.log.Info("a bulk run decides nothing more for now",
			x.fields("bulk_run_stopped", zap.String("state", string(run.State)))...)
		return nil, errEnded
	}
	return x.items.BulkItems(ctx, run.ID, journal.BulkPlanned, 0, mostAtOnce)
}

// heedEngine reports whether the engine answers; where it does not, the run says so and waits.
func (x *runExecutor) heedEngine() (up bool, err error) {
	why := ""
	if x.engineUp().IsZero() {
		if why = HoldEngine; time.Since(x.began) < engineGrace {
			rest(x.stop, lookEvery/4)
			return false, nil
		}
	}
	if x.run.Hold != why {
		ctx, cancel := context.WithTimeout(x.hard, storeTime)
		defer cancel()
		if err := x.memory.HoldBulkRun(ctx, x.run.ID, why); err != nil {
			return false, err
		}
	}
	if why != "" {
		x.wait(why, nil)
	}
	return why == "", nil
}

// turns is how many decisions are due, those of the next batchTime among them, or how long until the next is.
func (x *runExecutor) turns() (n int, wait time.Duration) {
	now, each := x.clock.Now(), interval(x.run.PerMinute)
	if earliest := now.Add(-mostLate); x.due.Before(earliest) {
		x.due = earliest
	}
	late := now.Sub(x.due)
	if late < 0 {
		return 0, -late
	}
	return int(min(max((late+batchTime)/each, 1), time.Duration(max(x.run.PerMinute/60, 1)), mostAtOnce)), 0
}

// decide on items together, and await what becomes of them. Where that is not known they are read again: the journal
// decides on none twice.
func (x *runExecutor) decide(page []journal.BulkItem) (failed error) {
	refused, errs := make([]bool, len(page)), make([]error, len(page))
	var all sync.WaitGroup
	for i := range page {
		all.Go(func() { refused[i], errs[i] = x.settle(&page[i]) })
	}
	all.Wait()
	for i, err := range errs {
		switch {
		case errors.Is(err, journal.ErrInvalidRunState), errors.Is(err, journal.ErrBulkRunUnknown):
			continue // the next look says what state it is in
		case err != nil:
			failed = err
		case refused[i]:
			continue
		}
		x.due = x.due.Add(interval(x.run.PerMinute))
	}
	if failed == nil && x.held != "" {
		x.log.Info("a bulk run goes on", x.fields("bulk_run_goes_on", zap.String("after", x.held))...)
		x.held = ""
	}
	if slices.Contains(refused, true) {
		rest(x.stop, refusalRest)
	}
	return failed
}

// settle decides on an item, or notes why that is refused. Without an error one of both is done.
func (x *runExecutor) settle(i *journal.BulkItem) (refused bool, err error) {
	err = x.ask(i)
	refusal := RefusalOf(err)
	switch {
	case refusal != nil:
		return true, x.refuse(i, refusal.Code)
	case concernsOneAlone(err): // asking again is of no use
		return true, x.refuse(i, NotRecordable)
	default:
		return false, err
	}
}

// ask for the decision.
func (x *runExecutor) ask(i *journal.BulkItem) error {
	r := &x.run
	command := Command{ID: i.DeadLetter, Reason: r.Reason, By: r.By, Run: r.ID}
	switch r.Action {
	case journal.BulkDiscard:
		_, err := x.decider.Discard(x.hard, command)
		return err
	case journal.BulkAccept:
		_, err := x.decider.Accept(x.hard, command)
		return err
	}
	command.Force, command.Fresh, command.When = r.Force, r.Fresh, Backoff
	if r.Now {
		command.When = Now
	}
	_, err := x.decider.Retry(x.hard, command)
	return err
}

// refuse notes that nothing was done with an item. One that is decided after all keeps its outcome (RefuseBulkItem).
func (x *runExecutor) refuse(i *journal.BulkItem, code Code) error {
	ctx, cancel := context.WithTimeout(x.hard, storeTime)
	defer cancel()
	return x.memory.RefuseBulkItem(ctx, x.run.ID, i.Number, string(code))
}

// finish ends a run of which nothing is left to decide.
func (x *runExecutor) finish() error {
	ctx, cancel := context.WithTimeout(x.hard, storeTime)
	defer cancel()
	run, err := x.memory.Bulk(ctx, &journal.BulkStep{Verb: journal.BulkFinish, Run: journal.BulkRun{ID: x.run.ID}})
	switch {
	case errors.Is(err, journal.ErrInvalidRunState): // stopped in the same moment
		return nil // the next look says so
	case errors.Is(err, journal.ErrBulkRunUnknown):
		return errEnded
	case err != nil:
		return err
	}
	x.log.Info("a bulk run is done: each of its dead letters is decided or refused", x.fields("bulk_run_done",
		zap.Int64("refused", run.Counts[journal.BulkRefused]), zap.Duration("took", run.EndedAt.Sub(run.CreatedAt)))...)
	return errEnded
}

// fields of every line of the log about the run.
func (x *runExecutor) fields(event string, more ...zap.Field) []zap.Field {
	return append([]zap.Field{zap.String("event", event), zap.String("run", x.run.ID),
		zap.String("action", string(x.run.Action)), zap.Int64("perMinute", x.run.PerMinute),
		zap.Int64("total", x.run.Total), zap.Int64("planned", x.run.Counts[journal.BulkPlanned])}, more...)
}

// wait decides nothing for a moment. Why that is, is told once.
func (x *runExecutor) wait(why string, cause error) {
	if x.hard.Err() != nil {
		return // it is this process that ends
	}
	if x.held != why {
		x.log.Warn("a bulk run waits and goes on by itself",
			x.fields("bulk_run_held", zap.String("why", why), zap.Error(cause))...)
		x.held = why
	}
	rest(x.stop, lookEvery)
}
