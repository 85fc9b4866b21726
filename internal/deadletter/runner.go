package deadletter

import (
	"context"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/clock"
	"retry-worker/internal/journal"
)

// Why a running run decides nothing for the moment (journal.BulkRun.Hold). The set is closed. It goes on by itself.
const (
	// HoldEngine: the engine does not answer.
	HoldEngine = "engine_down"
	// HoldJournal: the journal cannot be read or written. It is noted as soon as that can be.
	HoldJournal = "journal_down"
)

const (
	// lookEvery is how often a runner looks for runs, and a run at what holds it.
	lookEvery = time.Second
	// storeTime bounds one call of the store.
	storeTime = 10 * time.Second
	// gatherItems is how many items are gathered in one transaction; gatherRest is what is rested after each at least.
	gatherItems = 500
	gatherRest  = 10 * time.Millisecond
	// pageItems is how many items are read at once.
	pageItems = 100
	// engineGrace is how long a process that has just begun waits for the engine's first answer before it says so.
	engineGrace = 5 * time.Second
	// refusalRest follows a refusal, which costs the journal a commit and takes no turn of the pace.
	refusalRest = 5 * time.Millisecond
)

// BulkLease is the name of the right to carry bulk runs out: one process has it at a time.
const BulkLease = "bulk"

// Decider decides on dead letters (Service). Its errors are Service's.
type Decider interface {
	Retry(ctx context.Context, c Command) (Item, error)
	Discard(ctx context.Context, c Command) (Item, error)
}

// Memory records what a Runner does (journal.Journal does).
type Memory interface {
	Bulk(ctx context.Context, s *journal.BulkStep) (journal.BulkRun, error)
	GatherBulkItems(ctx context.Context, store journal.Gatherer, run string, limit int, busyCode string) (bool, error)
	RefuseBulkItem(ctx context.Context, run string, number int64, code string) error
	HoldBulkRun(ctx context.Context, run, why string) error
}

// Hooks are told what happens; all must be set. They must not block.
type Hooks struct {
	// Decided and Refused are called for each item of a run with that action.
	Decided, Refused func(action journal.BulkAction)
}

// Runner carries bulk runs out, each at its own pace.
type Runner struct {
	items    BulkStore
	decide   Decider
	memory   Memory
	clock    clock.Clock
	engineUp func() time.Time
	hooks    Hooks
	log      *zap.Logger
}

// NewRunner prepares a Runner; Run starts it. engineUp tells since when the engine answers this process; the zero
// time where it does not: nothing is decided then.
func NewRunner(
	items BulkStore, decide Decider, memory Memory, c clock.Clock, engineUp func() time.Time, hooks Hooks,
	log *zap.Logger,
) *Runner {
	return &Runner{items, decide, memory, c, engineUp, hooks, log}
}

// Run carries runs out until stop ends; then it begins nothing more, awaits what is on its way and returns. When hard
// ends it gives that up: whoever comes next finds out what became of it. One Runner at a time works on a store
// (BulkLease); a second one would do no harm but to the pace. Not for concurrent use with itself.
func (r *Runner) Run(stop, hard context.Context) {
	stop, cancel := context.WithCancel(stop)
	defer cancel()
	defer context.AfterFunc(hard, cancel)()
	var (
		all     sync.WaitGroup
		carried sync.Map // by their ids
		failing bool
	)
	defer all.Wait()
	for ; stop.Err() == nil; rest(stop, lookEvery) {
		runs, err := r.active(hard)
		failing = r.tellFailing(stop, failing, err)
		for i := range runs {
			run := runs[i]
			if run.State == journal.BulkPaused {
				continue
			}
			if _, ours := carried.LoadOrStore(run.ID, true); ours {
				continue
			}
			all.Go(func() {
				defer carried.Delete(run.ID)
				newRunExecutor(stop, hard, r, &run).execute()
			})
		}
	}
}

func (r *Runner) active(hard context.Context) ([]journal.BulkRun, error) {
	ctx, cancel := context.WithTimeout(hard, storeTime)
	defer cancel()
	return r.items.ActiveBulkRuns(ctx)
}

// tellFailing says once that runs cannot be read.
func (r *Runner) tellFailing(stop context.Context, before bool, err error) bool {
	if err != nil && !before && stop.Err() == nil {
		r.log.Warn("bulk runs cannot be read, so none goes on; tried on",
			zap.String("event", "bulk_runs_unread"), zap.Error(err))
	}
	return err != nil
}

// rest is on this machine's clock, whatever clock the pace is by.
func rest(ctx context.Context, d time.Duration) { clock.Machine{}.Rest(ctx, d) }

// mostLate is how far behind its schedule a run that catches up is at most: from there it begins a schedule anew. So the
// herd after a stall is a second's worth at most.
const mostLate = time.Second

// pace is the schedule of a run's decisions: each is due an interval after the one before was, however long it took.
type pace struct {
	clock    clock.Clock
	interval time.Duration
	due      time.Time // of the next
}

// newPace begins a schedule. last is when the run's last decision was made, by whichever process; the zero time where
// there is none.
func newPace(c clock.Clock, perMinute int64, last time.Time) *pace {
	p := &pace{clock: c, interval: interval(perMinute), due: c.Now()}
	if next := last.Add(p.interval); !last.IsZero() && next.After(p.due) {
		p.due = p.due.Add(min(next.Sub(p.due), p.interval)) // another machine's clock may be ahead
	}
	return p
}

// wait is how long until the next is due; 0 where it is.
func (p *pace) wait() time.Duration {
	now := p.clock.Now()
	if now.Sub(p.due) >= mostLate {
		p.due = now
	}
	return max(p.due.Sub(now), 0)
}

// spend notes that one is made.
func (p *pace) spend() { p.due = p.due.Add(p.interval) }

// refund gives back the turn of what was refused.
func (p *pace) refund() {
	if early := p.due.Sub(p.clock.Now()); early > 0 {
		p.due = p.due.Add(-min(early, p.interval))
	}
}
