package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"retry-worker/internal/bulk"
	"retry-worker/internal/console"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

// The runs of a flock: those that are started have the first id, the other has ended.
const (
	startedRun = "0198a0c0-0000-7000-8000-000000000001"
	endedRun   = "0198a0c0-0000-7000-8000-000000000002"
)

// flock stands in for the service of bulk runs. A run that is started goes through scenes, one each time that it is looked
// at.
type flock struct {
	mu      sync.Mutex
	now     func() time.Time
	plan    bulk.Plan // but for the command
	asked   []bulk.Command
	started int
	runs    map[string]*journal.BulkRun
	scenes  []func(*journal.BulkRun)
	looked  chan struct{} // one for each look at the run that was started, if not nil
	failing []error       // of the next looks
}

func newFlock(now func() time.Time) *flock {
	ti := journal.Fingerprint{ID: "0a1b2c3d4e5f6071", Policy: decision.DefaultPolicy, Reason: "INVALID_CREDENTIALS", Pattern: "401 unauthorized: senha expirada em #"}
	at := now()
	return &flock{
		now: now,
		plan: bulk.Plan{
			Token: "sealed", Total: 412, Ready: 398, Oldest: at, Newest: at.Add(90 * time.Minute), Takes: 398 * time.Second,
			Refused: []bulk.Refused{{Code: review.MaxRetriesExceeded, Message: "all their retries are made; set forceRetry for one more", N: 12},
				{Code: bulk.InOtherRun, Message: "another bulk run that has not ended has them in its plan; wait for it, or cancel it", N: 2}},
			Tallies: []bulk.Tally{{Policy: decision.DefaultPolicy, Team: "ti", Reason: "INVALID_CREDENTIALS", N: 390}, {Policy: "job-queue", Team: "ti", Reason: "ACCESS_DENIED", N: 8}},
			Causes: []journal.DeadLetterGroup{{Cause: ti, N: 404, First: at, Last: at.Add(90 * time.Minute), Teams: []decision.Team{"ti"}},
				{Cause: journal.Fingerprint{Policy: "job-queue", Reason: "REPORTED_FAILURE"}, N: 8, First: at, Last: at, Teams: []decision.Team{"ti", "suporte"}}},
		},
		runs: map[string]*journal.BulkRun{endedRun: {
			ID: endedRun, Action: journal.BulkDiscard, Filter: journal.DeadLetterFilter{Policy: "job-queue", Until: at}, Reason: "lote antigo", By: "ada", PerMinute: 600,
			State: journal.BulkDone, CreatedAt: at, StartedAt: at, EndedAt: at.Add(time.Minute), Total: 3, Counts: map[journal.BulkOutcome]int64{journal.BulkDiscarded: 3},
		}},
		scenes: []func(*journal.BulkRun){
			func(r *journal.BulkRun) { r.Total, r.Counts = 412, counts(journal.BulkPlanned, 412) },
			func(r *journal.BulkRun) {
				r.State, r.StartedAt = journal.BulkRunning, now()
				r.Counts = counts(journal.BulkPlanned, 410, journal.BulkRefused, 2)
			},
			func(r *journal.BulkRun) {
				r.Counts = counts(journal.BulkPlanned, 200, journal.BulkRefused, 8, journal.BulkTaken, 100, journal.BulkRecovered, 104)
			},
			func(r *journal.BulkRun) { r.Hold, r.HeldAt = bulk.HoldEngine, now() },
			func(r *journal.BulkRun) {
				r.Hold, r.State, r.EndedAt = "", journal.BulkDone, now().Add(time.Hour)
				r.Counts = counts(journal.BulkRefused, 14, journal.BulkTaken, 90, journal.BulkRecovered, 300, journal.BulkDeadAgain, 8)
			},
		},
	}
}

func counts(pairs ...any) map[journal.BulkOutcome]int64 {
	all := map[journal.BulkOutcome]int64{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i].(journal.BulkOutcome)] = int64(pairs[i+1].(int))
	}
	return all
}

func no(code review.Code, format string, args ...any) error {
	return &review.Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (f *flock) Plan(_ context.Context, c bulk.Command) (bulk.Plan, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, c)
	p := f.plan
	p.Command = c
	p.Command.PerMinute = cmp.Or(c.PerMinute, bulk.DefaultPerMinute)
	if c.Filter.Team == "nobody" {
		p = bulk.Plan{Token: p.Token, Command: p.Command}
	}
	if c.Filter.Team == "limite" {
		p.Ready, p.Tallies, p.Total, p.Refused = 0, nil, 12, p.Refused[:1]
	}
	return p, nil
}

func (f *flock) Start(_ context.Context, c bulk.Command, token string) (journal.BulkRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, c)
	if token != f.plan.Token {
		return journal.BulkRun{}, no(bulk.InvalidPlan, "the token is of no plan")
	}
	if c.Filter.Query == "novo" {
		return journal.BulkRun{}, no(bulk.PlanOutdated, "412 dead letters were planned, 409 of those are open now, and 7 came since; plan again")
	}
	f.started++
	f.runs[startedRun] = &journal.BulkRun{
		ID: startedRun, Action: c.Action, Filter: c.Filter, Reason: c.Reason, By: c.By, Force: c.Force, Fresh: c.Fresh, Now: c.When == review.Now,
		PerMinute: cmp.Or(c.PerMinute, bulk.DefaultPerMinute), State: journal.BulkPreparing, CreatedAt: f.now(),
	}
	return *f.runs[startedRun], nil
}

func (f *flock) step(id, by string, to journal.BulkState) (journal.BulkRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	run := f.runs[id]
	switch {
	case run == nil:
		return journal.BulkRun{}, no(bulk.RunNotFound, "there is no bulk run of this id; the list has their ids")
	case run.State == journal.BulkDone || run.State == journal.BulkCancelled || run.State == to:
		return journal.BulkRun{}, no(bulk.InvalidRunState, "the run is %s since %s", run.State, decision.Instant(run.CreatedAt))
	}
	run.State, run.ChangedBy, run.ChangedAt, run.Hold = to, by, f.now(), ""
	if to == journal.BulkCancelled {
		run.EndedAt = f.now()
	}
	return *run, nil
}

func (f *flock) Pause(_ context.Context, id, by string) (journal.BulkRun, error) {
	return f.step(id, by, journal.BulkPaused)
}

func (f *flock) Resume(_ context.Context, id, by string) (journal.BulkRun, error) {
	return f.step(id, by, journal.BulkRunning)
}

func (f *flock) Cancel(_ context.Context, id, by string) (journal.BulkRun, error) {
	return f.step(id, by, journal.BulkCancelled)
}

func (f *flock) Run(_ context.Context, id string) (journal.BulkRun, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	run := f.runs[id]
	if run == nil {
		return journal.BulkRun{}, no(bulk.RunNotFound, "there is no bulk run of this id; the list has their ids")
	}
	if id == startedRun {
		if f.looked != nil {
			select {
			case f.looked <- struct{}{}:
			default:
			}
		}
		if len(f.failing) > 0 {
			err := f.failing[0]
			f.failing = f.failing[1:]
			return journal.BulkRun{}, err
		}
		if ends := run.State == journal.BulkCancelled || run.State == journal.BulkPaused; !ends && len(f.scenes) > 0 {
			f.scenes[0](run)
			f.scenes = f.scenes[1:]
		}
	}
	return *run, nil
}

func (f *flock) Runs(_ context.Context, cursor string, limit int) ([]journal.BulkRun, string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []journal.BulkRun
	for _, id := range []string{endedRun, startedRun} {
		if run := f.runs[id]; run != nil && (cursor == "" || id < cursor) {
			all = append(all, *run)
		}
	}
	if limit == 1 && len(all) > 1 {
		return all[:1], all[0].ID, nil
	}
	return all, "", nil
}

// Items: of the run that was started, the first are refused; three are shown of those that are not.
func (f *flock) Items(_ context.Context, id string, outcome journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	run := f.runs[id]
	if run == nil {
		return nil, no(bulk.RunNotFound, "there is no bulk run of this id; the list has their ids")
	}
	refused := run.Counts[journal.BulkRefused]
	var all []journal.BulkItem
	for n := after + 1; n <= refused+3 && len(all) < limit; n++ {
		i := journal.BulkItem{
			Number: n, DeadLetter: fmt.Sprintf("00000000-0000-5000-8000-%012d", n), Outcome: journal.BulkRefused, Code: string(review.MaxRetriesExceeded), ChangedAt: f.now(),
			Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: decision.DefaultPolicy, ID: fmt.Sprintf("CLM-%03d-1", n)},
		}
		if n <= 2 {
			i.Code = string(bulk.InOtherRun)
		}
		if n > refused {
			i.Outcome, i.Code, i.DecidedAt = journal.BulkRecovered, "", f.now()
		}
		if outcome == "" || outcome == i.Outcome {
			all = append(all, i)
		}
	}
	return all, nil
}

func (f *flock) Groups(_ context.Context, filter journal.DeadLetterFilter, cursor string, limit int) ([]journal.DeadLetterGroup, string, error) {
	switch {
	case strings.HasPrefix(string(filter.Team), "nobody"):
		return nil, "", nil
	case limit == 1 && cursor == "":
		return f.plan.Causes[:1], "more", nil
	case cursor != "":
		return f.plan.Causes[1:], "", nil
	}
	return f.plan.Causes, "", nil
}

var _ console.Bulk = (*flock)(nil)
