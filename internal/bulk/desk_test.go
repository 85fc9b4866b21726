package bulk_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/bulk"
	"retry-worker/internal/clock"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

// desk is a store, a journal and people's part in memory, as far as a runner sees them. Its decisions and the outcomes of
// items are one step, and it decides in a run that is running only, as the journal does.
type desk struct {
	t    *testing.T
	logs *observer.ObservedLogs
	log  *zap.Logger

	mu      sync.Mutex
	runs    map[string]*journal.BulkRun
	items   map[string][]journal.BulkItem
	waiting map[string]int // items that are not gathered yet
	others  map[string]bool
	up      time.Time
	made    []made
	holds   []string
	takes   func() time.Duration // of a decision
	fault   func(id string) fault
	noStore bool // no call of the store succeeds
	// counted is what the hooks were told.
	counted struct{ decided, refused int }
}

// made is a decision.
type made struct {
	at       time.Time
	run, id  string
	command  review.Command
	discards bool
}

// fault of a decision; after tells that it was made all the same.
type fault struct {
	err   error
	after bool
}

func play(t *testing.T, test func(d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		test(&desk{t: t, logs: logs, log: zap.New(core), runs: map[string]*journal.BulkRun{}, items: map[string][]journal.BulkItem{},
			waiting: map[string]int{}, others: map[string]bool{}, up: time.Now()})
	})
}

// run prepares a run of n dead letters whose items are still to be gathered.
func (d *desk) run(id string, n int, perMinute int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs[id] = &journal.BulkRun{ID: id, Action: journal.BulkRetry, Reason: "senha corrigida", By: "maria", PerMinute: perMinute,
		State: journal.BulkPreparing, CreatedAt: time.Now()}
	d.waiting[id] = n
}

// runner works until the test ends, or it is stopped or killed.
type runner struct {
	stop, kill context.CancelFunc
	done       chan struct{}
}

func (d *desk) runner() *runner {
	stop, halt := context.WithCancel(context.Background())
	hard, kill := context.WithCancel(context.Background())
	r := &runner{halt, kill, make(chan struct{})}
	hooks := bulk.Hooks{
		Decided: func(journal.BulkAction) { d.set(func() { d.counted.decided++ }) },
		Refused: func(journal.BulkAction) { d.set(func() { d.counted.refused++ }) },
	}
	w := bulk.NewRunner(d, d, d, clock.Machine{}, d.engineUp, hooks, d.log)
	go func() {
		defer close(r.done)
		w.Run(stop, hard)
	}()
	d.t.Cleanup(func() { halt(); kill(); <-r.done })
	return r
}

func (d *desk) engineUp() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.up
}

func (d *desk) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// decisions made so far, in their order.
func (d *desk) decisions() []made {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.made)
}

func (d *desk) state(id string) journal.BulkRun {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.seen(id)
}

func (d *desk) seen(id string) journal.BulkRun {
	r := *d.runs[id]
	r.Counts = map[journal.BulkOutcome]int64{}
	for _, i := range d.items[id] {
		r.Counts[i.Outcome]++
	}
	r.Total = int64(len(d.items[id]))
	return r
}

// within waits until that holds, looking ten times a second.
func (d *desk) within(limit time.Duration, what string, holds func() bool) time.Duration {
	d.t.Helper()
	began := time.Now()
	for !holds() {
		if time.Since(began) > limit {
			d.t.Fatalf("after %s still not: %s; %+v", limit, what, d.logs.All())
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}

func (d *desk) ended(id string) func() bool {
	return func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.runs[id].State == journal.BulkDone
	}
}

func (d *desk) failing() error {
	if d.noStore {
		return &journal.StoreError{Kind: journal.Unavailable, Err: fmt.Errorf("no connection")}
	}
	return nil
}

// ActiveBulkRuns implements bulk.Items.
func (d *desk) ActiveBulkRuns(context.Context) ([]journal.BulkRun, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []journal.BulkRun
	for id, r := range d.runs {
		if r.State != journal.BulkDone && r.State != journal.BulkCancelled {
			all = append(all, d.seen(id))
		}
	}
	slices.SortFunc(all, func(a, b journal.BulkRun) int { return cmp.Compare(a.ID, b.ID) })
	return all, d.failing()
}

// BulkRun implements bulk.Items.
func (d *desk) BulkRun(_ context.Context, id string) (journal.BulkRun, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runs[id] == nil {
		return journal.BulkRun{}, false, d.failing()
	}
	return d.seen(id), true, d.failing()
}

// BulkItems implements bulk.Items.
func (d *desk) BulkItems(_ context.Context, run string, outcome journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var all []journal.BulkItem
	for _, i := range d.items[run][min(int(after), len(d.items[run])):] {
		if len(all) == limit {
			break
		}
		if outcome == "" || i.Outcome == outcome {
			all = append(all, i)
		}
	}
	return all, d.failing()
}

// GatherBulkItems implements bulk.Items.
func (d *desk) GatherBulkItems(_ context.Context, run string, limit int, _ string, at time.Time) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.runs[run]
	if err := d.failing(); err != nil {
		return false, err
	}
	for ; d.waiting[run] > 0 && limit > 0; limit-- {
		d.waiting[run]--
		number := int64(len(d.items[run]) + 1)
		d.items[run] = append(d.items[run], journal.BulkItem{Number: number, DeadLetter: fmt.Sprintf("%s/%05d", run, number), Outcome: journal.BulkPlanned})
	}
	if d.waiting[run] > 0 {
		return false, nil
	}
	if r.StartedAt = at; r.State == journal.BulkPreparing {
		r.State = journal.BulkRunning
	}
	return true, nil
}

// RefuseBulkItem implements bulk.Items.
func (d *desk) RefuseBulkItem(_ context.Context, run string, number int64, code string, at time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := &d.items[run][number-1]; i.Outcome == journal.BulkPlanned && !d.noStore {
		i.Outcome, i.Code, i.ChangedAt = journal.BulkRefused, code, at
	}
	return d.failing()
}

// HoldBulkRun implements bulk.Items.
func (d *desk) HoldBulkRun(_ context.Context, run, why string, at time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r := d.runs[run]; !d.noStore && r.State == journal.BulkRunning && r.Hold != why {
		r.Hold, r.HeldAt = why, at
		d.holds = append(d.holds, why)
	}
	return d.failing()
}

// Bulk implements bulk.Recorder.
func (d *desk) Bulk(_ context.Context, s *journal.BulkStep) (journal.BulkRun, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.runs[s.Run.ID]
	switch {
	case d.noStore:
		return journal.BulkRun{}, journal.ErrUnavailable
	case s.Verb == journal.BulkFinish && (r.State != journal.BulkRunning || d.seen(r.ID).Counts[journal.BulkPlanned] > 0):
		return journal.BulkRun{}, &journal.BulkStateError{State: r.State}
	case s.Verb == journal.BulkFinish:
		r.State, r.EndedAt = journal.BulkDone, time.Now()
	}
	return d.seen(r.ID), nil
}

// Retry implements bulk.Decider.
func (d *desk) Retry(ctx context.Context, c review.Command) (review.Decided, error) {
	return review.Decided{}, d.decide(ctx, made{run: c.Run, id: c.ID, command: c})
}

// Discard implements bulk.Decider.
func (d *desk) Discard(ctx context.Context, c review.Command) (review.Decided, error) {
	return review.Decided{}, d.decide(ctx, made{run: c.Run, id: c.ID, command: c, discards: true})
}

func (d *desk) decide(ctx context.Context, m made) error {
	d.mu.Lock()
	takes, how := d.takes, fault{}
	if d.fault != nil {
		how = d.fault(m.id)
	}
	d.mu.Unlock()
	if takes != nil {
		clock.Machine{}.Rest(ctx, takes())
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if how.err != nil && !how.after {
		return how.err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.noStore {
		return fmt.Errorf("record the decision: %w", journal.ErrUnavailable)
	}
	if r := d.runs[m.run]; r.State != journal.BulkRunning {
		return fmt.Errorf("record the decision: %w", &journal.BulkStateError{State: r.State})
	}
	items := d.items[m.run]
	number, err := strconv.Atoi(m.id[len(m.run)+1:])
	if err != nil {
		return err
	}
	at := number - 1
	if d.others[m.id] || items[at].Outcome != journal.BulkPlanned {
		return &review.Refusal{Code: review.InvalidRetryState, Message: "somebody was faster"}
	}
	m.at = time.Now()
	items[at].Outcome, items[at].DecidedAt = journal.BulkDecided, m.at
	d.made = append(d.made, m)
	return how.err
}

// most is the greatest number of decisions in any span of that length.
func most(all []made, span time.Duration) int {
	n, first := 0, 0
	for i := range all {
		for all[i].at.Sub(all[first].at) >= span {
			first++
		}
		n = max(n, i-first+1)
	}
	return n
}

// once fails where something was decided twice, or asked for twice: then it was refused.
func (d *desk) once() {
	d.t.Helper()
	want(d.t, "refused", d.counted.refused, 0)
	seen := map[string]bool{}
	for _, m := range d.decisions() {
		if seen[m.id] {
			d.t.Errorf("%s was decided twice", m.id)
		}
		seen[m.id] = true
	}
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
