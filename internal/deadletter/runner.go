package deadletter

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/journal"
)

// BulkLease names the lease under which one process at a time carries bulk runs out.
const BulkLease = "bulk"

const (
	// lookEvery is how often a Runner looks for runs, and how long a run that is held waits.
	lookEvery = time.Second
	// storeTime bounds the store's calls before a decision.
	storeTime = 10 * time.Second
	// engineGrace is how long a new process waits for the engine's first answer before it says that runs are held.
	engineGrace = 5 * time.Second
	// refusalRest is the pause after a refusal, which costs a commit and does not count toward the pace.
	refusalRest = 5 * time.Millisecond
	// mostAtOnce bounds the decisions of one run that are made together, as a commit may take longer than an interval.
	mostAtOnce = 32
	// mostLate bounds how far a run may be behind its schedule: after a stall it catches up a second's worth at most.
	mostLate = time.Second
	// batchTime is how far ahead a fast run decides at once, since it reads its state before each batch.
	batchTime = 100 * time.Millisecond
)

// Memory records what a Runner does. A journal.Journal is one.
type Memory interface {
	Bulk(ctx context.Context, s *journal.BulkStep) (journal.BulkRun, error)
	RefuseBulkItem(ctx context.Context, run string, number int64, code string) error
}

// Runner carries bulk runs out, each at its own pace. While the engine does not answer (New) nothing is decided.
type Runner struct {
	Items BulkStore
	// Decide is Service.Decide.
	Decide   func(context.Context, Command) (Item, error)
	Memory   Memory
	Clock    clock.Clock
	EngineUp func() time.Time
	Log      *zap.Logger
}

// Run carries bulk runs out until stop ends. Then it waits, until hard ends, for decisions under way; the next Runner
// finds out what became of the others. One Runner at a time works on a store (BulkLease), since two would exceed the
// pace. Run must not be called concurrently.
func (r *Runner) Run(stop, hard context.Context) {
	stop, cancel := context.WithCancel(stop)
	defer cancel()
	defer context.AfterFunc(hard, cancel)()
	for began := time.Now(); r.EngineUp().IsZero() && time.Since(began) < engineGrace && stop.Err() == nil; {
		rest(stop, lookEvery/4)
	}
	var (
		all     sync.WaitGroup
		carried sync.Map // by their ids
		failing bool
	)
	defer all.Wait()
	for ; stop.Err() == nil; rest(stop, lookEvery) {
		ctx, done := context.WithTimeout(hard, storeTime)
		runs, err := r.Items.ActiveBulkRuns(ctx)
		done()
		if err != nil && !failing && stop.Err() == nil {
			r.Log.Warn("bulk runs cannot be read, so none goes on; it is tried again",
				zap.String("event", "bulk_runs_unread"), zap.Error(err))
		}
		failing = err != nil
		for i := range runs {
			run := runs[i]
			if run.State == journal.BulkPaused {
				continue
			}
			if _, ours := carried.LoadOrStore(run.ID, true); ours {
				continue
			}
			x := &runExecutor{Runner: r, stop: stop, hard: hard, run: run, due: r.Clock.Now()}
			if run.Counts[journal.BulkPlanned] < run.Total { // neither a crash nor a pause makes it faster
				x.due = x.due.Add(interval(run.PerMinute))
			}
			all.Go(func() {
				defer carried.Delete(run.ID)
				x.execute()
			})
		}
	}
}

// rest waits by this machine's clock, whatever clock the pace goes by.
func rest(ctx context.Context, d time.Duration) { clock.Machine{}.Rest(ctx, d) }

// runExecutor carries out one run. All its methods but settle belong to one goroutine.
type runExecutor struct {
	*Runner
	stop, hard context.Context
	run        journal.BulkRun // as it was seen last
	// due is when the next decision is: an interval after the one before was due, however long that took.
	due time.Time
	// held is why the run waits, as last logged; empty while it does not.
	held string
}

// execute decides what is planned, until nothing is left, the run is stopped, or stop ends.
func (x *runExecutor) execute() {
	x.Log.Info("a bulk run is carried out", x.fields("bulk_run_started")...)
	for ended := false; !ended && x.stop.Err() == nil; {
		var err error
		if ended, err = x.step(); err != nil {
			x.wait("journal_down", err)
		}
	}
}

// step reads the run and decides what is due. ended reports whether there is nothing more to do for it; the error is
// why the journal cannot be used. The journal refuses decisions of a run that was stopped meanwhile
// (journal.Review.Run).
func (x *runExecutor) step() (ended bool, err error) {
	ctx, cancel := context.WithTimeout(x.hard, storeTime)
	defer cancel()
	run, found, err := x.Items.BulkRun(ctx, x.run.ID)
	if err != nil || !found {
		return err == nil, err
	}
	if x.run = run; run.State != journal.BulkRunning {
		x.Log.Info("a bulk run decides nothing more for now",
			x.fields("bulk_run_stopped", zap.String("state", string(run.State)))...)
		return true, nil
	}
	page, err := x.Items.BulkItems(ctx, run.ID, journal.BulkPlanned, 0, mostAtOnce)
	switch {
	case err != nil:
		return false, err
	case len(page) == 0:
		return x.finish(ctx)
	}
	if x.EngineUp().IsZero() {
		x.wait("engine_down", nil)
		return false, nil
	}
	n, wait := x.turns()
	if n == 0 {
		x.Clock.Rest(x.stop, min(wait, lookEvery))
		return false, nil
	}
	return false, x.decideAll(page[:min(n, len(page))])
}

// turns returns how many decisions to make now, those due within batchTime included, or how long until the next is
// due.
func (x *runExecutor) turns() (n int, wait time.Duration) {
	now, each := x.Clock.Now(), interval(x.run.PerMinute)
	if earliest := now.Add(-mostLate); x.due.Before(earliest) {
		x.due = earliest
	}
	late := now.Sub(x.due)
	if late < 0 {
		return 0, -late
	}
	return int(min(max((late+batchTime)/each, 1), time.Duration(max(x.run.PerMinute/60, 1)), mostAtOnce)), 0
}

// decideAll decides items concurrently and waits for all. Those with an unknown outcome are read again: the journal
// decides none twice.
func (x *runExecutor) decideAll(page []journal.BulkItem) (failed error) {
	refused, errs := make([]bool, len(page)), make([]error, len(page))
	var all sync.WaitGroup
	for i := range page {
		all.Go(func() { refused[i], errs[i] = x.settle(&page[i]) })
	}
	all.Wait()
	for i, err := range errs {
		switch {
		case isOfRun(err):
			continue // the next step sees its state
		case err != nil:
			failed = err
		case refused[i]:
			continue
		}
		x.due = x.due.Add(interval(x.run.PerMinute))
	}
	if failed == nil && x.held != "" {
		x.Log.Info("a bulk run goes on", x.fields("bulk_run_goes_on", zap.String("after", x.held))...)
		x.held = ""
	}
	if slices.Contains(refused, true) {
		rest(x.stop, refusalRest)
	}
	return failed
}

// settle decides an item, or records why that is refused; an item that is decided after all keeps its outcome. A nil
// error means that one of the two was done.
func (x *runExecutor) settle(i *journal.BulkItem) (refused bool, err error) {
	c := each(&x.run.BulkCommand)
	c.ID, c.Run = i.DeadLetter, x.run.ID
	_, err = x.Decide(x.hard, c)
	code := NotRecordable
	if why := journal.RefusalOf(err); why != nil && !isOfRun(err) {
		code = why.Code
	} else if !concernsOneAlone(err) {
		return false, err
	}
	return true, x.Memory.RefuseBulkItem(x.hard, x.run.ID, i.Number, string(code))
}

// isOfRun reports whether a decision was refused because its run was stopped, or is gone.
func isOfRun(err error) bool {
	code := journal.CodeOf(err)
	return code == journal.InvalidRunState || code == journal.RunNotFound
}

// finish ends a run that has nothing left to decide.
func (x *runExecutor) finish(ctx context.Context) (ended bool, err error) {
	run, err := x.Memory.Bulk(ctx, &journal.BulkStep{Verb: journal.BulkFinish, Run: journal.BulkRun{ID: x.run.ID}})
	switch {
	case journal.CodeOf(err) == journal.InvalidRunState: // it was stopped in the same moment
		return false, nil // the next step sees its state
	case journal.CodeOf(err) == journal.RunNotFound:
		return true, nil
	case err != nil:
		return false, err
	}
	x.Log.Info("a bulk run is done: each of its dead letters is decided or refused", x.fields("bulk_run_done",
		zap.Int64("refused", run.Counts[journal.BulkRefused]), zap.Duration("took", run.EndedAt.Sub(run.CreatedAt)))...)
	return true, nil
}

// fields returns the log fields about the run.
func (x *runExecutor) fields(event string, more ...zap.Field) []zap.Field {
	return append([]zap.Field{zap.String("event", event), zap.String("run", x.run.ID),
		zap.String("action", string(x.run.Action)), zap.Int64("perMinute", x.run.PerMinute),
		zap.Int64("total", x.run.Total), zap.Int64("planned", x.run.Counts[journal.BulkPlanned])}, more...)
}

// wait pauses the run for a moment, and logs why once.
func (x *runExecutor) wait(why string, cause error) {
	if x.hard.Err() != nil {
		return // this process is ending
	}
	if x.held != why {
		x.Log.Warn("a bulk run waits and goes on by itself",
			x.fields("bulk_run_held", zap.String("why", why), zap.Error(cause))...)
		x.held = why
	}
	rest(x.stop, lookEvery)
}
