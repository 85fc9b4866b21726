package console_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"retry-worker/internal/bulk"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

// The runs that a herd has from the beginning, and the token of any plan of it.
const (
	aRun      = "0198a0c0-0000-7000-8000-000000000001" // running
	aPaused   = "0198a0c0-0000-7000-8000-000000000002"
	aDone     = "0198a0c0-0000-7000-8000-000000000003"
	herdToken = "sealed"
)

// herd stands in for the service of bulk runs: a plan has ten dead letters, seven of them ready.
type herd struct {
	mu       sync.Mutex
	now      func() time.Time
	err      error // of every call
	outdated bool
	runs     map[string]*journal.BulkRun
	asked    bulk.Command // last
	listed   struct {
		cursor  string
		limit   int
		outcome journal.BulkOutcome
		after   int64
	}
	sample journal.DeadLetterItem
}

func newHerd(now func() time.Time) *herd {
	h := &herd{now: now, runs: map[string]*journal.BulkRun{}}
	for id, state := range map[string]journal.BulkState{aRun: journal.BulkRunning, aPaused: journal.BulkPaused, aDone: journal.BulkDone} {
		h.runs[id] = &journal.BulkRun{
			ID: id, Action: journal.BulkRetry, Reason: "portal voltou", By: "ada", PerMinute: 60, State: state, CreatedAt: now(), StartedAt: now().Add(time.Second),
			Total: 10, Counts: map[journal.BulkOutcome]int64{journal.BulkPlanned: 7, journal.BulkRefused: 3},
		}
	}
	h.runs[aRun].Hold, h.runs[aRun].HeldAt = bulk.HoldEngine, now().Add(time.Minute)
	h.runs[aPaused].ChangedBy, h.runs[aPaused].ChangedAt = "ada", now().Add(time.Minute)
	h.runs[aDone].EndedAt = now().Add(time.Minute)
	return h
}

func no(code review.Code, format string, args ...any) error {
	return &review.Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (h *herd) Plan(_ context.Context, c bulk.Command) (bulk.Plan, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = c
	f := &c.Filter
	switch {
	case h.err != nil:
		return bulk.Plan{}, h.err
	case c.Action != journal.BulkRetry && c.Action != journal.BulkDiscard:
		return bulk.Plan{}, no(bulk.InvalidAction, "action is %.60q", c.Action)
	case c.Fresh && !c.Force:
		return bulk.Plan{}, no(review.ForceRequired, "fresh needs forceRetry")
	case !f.Since.IsZero() && !f.Until.IsZero() && !f.Since.Before(f.Until):
		return bulk.Plan{}, no(bulk.InvalidPeriod, "the period is empty")
	}
	if c.PerMinute == 0 {
		c.PerMinute = bulk.DefaultPerMinute
	}
	cause := journal.Fingerprint{ID: "00000000000000f1", Policy: decision.DefaultPolicy, Reason: "INVALID_CREDENTIALS", Classification: decision.Permanent, Pattern: "login refused"}
	return bulk.Plan{
		Token: herdToken, Command: c, Total: 10, Ready: 7, Oldest: now, Newest: now.Add(time.Minute), Takes: 6100 * time.Millisecond,
		Refused: []bulk.Refused{{Code: review.MaxRetriesExceeded, Message: "the limit is reached", N: 2}, {Code: bulk.InOtherRun, Message: "another run has them", N: 1}},
		Tallies: []bulk.Tally{{Policy: decision.DefaultPolicy, Team: "ti", Reason: "INVALID_CREDENTIALS", N: 7}},
		Causes:  []journal.DeadLetterGroup{{Cause: cause, N: 10, First: now, Last: now.Add(time.Minute), Teams: []decision.Team{"ti"}, Sample: h.sample}},
	}, nil
}

func (h *herd) Start(ctx context.Context, c bulk.Command, token string) (journal.BulkRun, error) {
	p, err := h.Plan(ctx, c)
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil:
		return journal.BulkRun{}, err
	case c.Reason == "":
		return journal.BulkRun{}, no(review.ReasonRequired, "a reason is required")
	case token != p.Token:
		return journal.BulkRun{}, no(bulk.InvalidPlan, "the token is of no plan of this command; plan again")
	case h.outdated:
		return journal.BulkRun{}, no(bulk.PlanOutdated, "10 were planned, 9 are there now and 3 came since; plan again")
	case c.Filter.Team == "nobody":
		return journal.BulkRun{}, no(bulk.NothingToDo, "the filter lets nothing through")
	}
	h.outdated = true
	id := fmt.Sprintf("0198a0c0-0000-7000-8000-%012d", len(h.runs)+1)
	h.runs[id] = &journal.BulkRun{
		ID: id, Action: c.Action, Filter: c.Filter, Reason: c.Reason, By: c.By, Force: c.Force, Fresh: c.Fresh, Now: c.When == review.Now,
		PerMinute: p.Command.PerMinute, State: journal.BulkPreparing, CreatedAt: h.now(),
	}
	return *h.runs[id], nil
}

func (h *herd) step(id, by string, from, to journal.BulkState) (journal.BulkRun, error) {
	run, err := h.Run(context.Background(), id)
	if err != nil {
		return run, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if run.State != from && (to != journal.BulkCancelled || run.State == journal.BulkDone || run.State == journal.BulkCancelled) {
		return run, no(bulk.InvalidRunState, "the run is %s", run.State)
	}
	run.State, run.ChangedBy, run.ChangedAt, run.Hold = to, by, h.now(), ""
	h.runs[id] = &run
	return run, nil
}

func (h *herd) Pause(_ context.Context, id, by string) (journal.BulkRun, error) {
	return h.step(id, by, journal.BulkRunning, journal.BulkPaused)
}

func (h *herd) Resume(_ context.Context, id, by string) (journal.BulkRun, error) {
	return h.step(id, by, journal.BulkPaused, journal.BulkRunning)
}

func (h *herd) Cancel(_ context.Context, id, by string) (journal.BulkRun, error) {
	return h.step(id, by, journal.BulkRunning, journal.BulkCancelled)
}

func (h *herd) Run(_ context.Context, id string) (journal.BulkRun, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return journal.BulkRun{}, h.err
	}
	if run := h.runs[id]; run != nil {
		return *run, nil
	}
	return journal.BulkRun{}, no(bulk.RunNotFound, "there is no bulk run of this id; the list has their ids")
}

func (h *herd) Runs(_ context.Context, cursor string, limit int) ([]journal.BulkRun, string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	limit = cmp.Or(limit, review.DefaultItems)
	h.listed.cursor, h.listed.limit = cursor, limit
	if h.err != nil {
		return nil, "", h.err
	}
	var all []journal.BulkRun
	for _, run := range h.runs {
		if cursor == "" || run.ID < cursor {
			all = append(all, *run)
		}
	}
	if cursor != "" && h.runs[cursor] == nil {
		return nil, "", fmt.Errorf("list runs: %w", journal.ErrBadCursor)
	}
	slices.SortFunc(all, func(a, b journal.BulkRun) int { return strings.Compare(b.ID, a.ID) })
	if len(all) > limit {
		return all[:limit], all[limit-1].ID, nil
	}
	return all, "", nil
}

// Items: the first seven are as they were planned, the others are refused.
func (h *herd) Items(ctx context.Context, id string, outcome journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error) {
	if _, err := h.Run(ctx, id); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listed.outcome, h.listed.after, h.listed.limit = outcome, after, limit
	var all []journal.BulkItem
	for n := after + 1; n <= 10 && len(all) < limit; n++ {
		i := journal.BulkItem{
			Number: n, DeadLetter: anID, Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: decision.DefaultPolicy, ID: fmt.Sprintf("CLM-%03d-1", n)},
			Outcome: journal.BulkPlanned, ChangedAt: h.now(),
		}
		if n > 7 {
			i.Outcome, i.Code = journal.BulkRefused, string(review.MaxRetriesExceeded)
		}
		if outcome == "" || outcome == i.Outcome {
			all = append(all, i)
		}
	}
	return all, nil
}

// Groups is one cause, whatever is asked for; it goes on behind the cursor "more" only.
func (h *herd) Groups(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) ([]journal.DeadLetterGroup, string, error) {
	p, err := h.Plan(ctx, bulk.Command{Action: journal.BulkRetry, Filter: f})
	h.listed.cursor, h.listed.limit = cursor, limit
	switch {
	case err != nil:
		return nil, "", err
	case cursor != "" && cursor != "more":
		return nil, "", journal.ErrBadCursor
	case f.State == "closed":
		return nil, "", no(review.InvalidState, "state is none")
	}
	return p.Causes, "more", nil
}
