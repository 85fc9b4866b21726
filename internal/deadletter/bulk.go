package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"retry-worker/internal/journal"
)

// Start records a bulk run for the plan that token names; a Runner carries it out. c is the planned command with
// reason and name. If the same person has used the token for the same reason, Start returns the run that began then,
// and started is false. It refuses the token if the planned dead letters are no longer the same.
func (s *Service) Start(
	ctx context.Context, c journal.BulkCommand, token string,
) (run journal.BulkRun, started bool, err error) {
	if c, err = checked(c); err != nil {
		return journal.BulkRun{}, false, err
	}
	if c.Reason, err = CheckReason(c.Reason); err != nil {
		return journal.BulkRun{}, false, err
	}
	of, err := readToken(token, &c)
	if err != nil {
		return journal.BulkRun{}, false, err
	}
	if run, found, err := s.store.BulkRun(ctx, of.Run); found || err != nil {
		return s.watched(run), false, cmp.Or(err, usedBy(&run, &c))
	}
	items, err := s.startable(ctx, c, of)
	if err != nil {
		return journal.BulkRun{}, false, err
	}
	run = journal.BulkRun{ID: of.Run, BulkCommand: c, Through: of.Through}
	run, err = s.memory.Bulk(ctx, &journal.BulkStep{Verb: journal.BulkStart, Run: run, Items: items, By: c.By})
	switch {
	case journal.CodeOf(err) == journal.InvalidRunState: // another use of the token was faster
		return s.Start(ctx, c, token)
	case err != nil:
		return journal.BulkRun{}, false, fmt.Errorf("record a bulk run: %w", err)
	}
	return s.watched(run), true, nil
}

// watched returns the run with Held set.
func (s *Service) watched(r journal.BulkRun) journal.BulkRun {
	r.Held = r.State == journal.BulkRunning && s.engineUp().IsZero()
	return r
}

// usedBy refuses a start whose token another start has used, unless it repeats that start.
func usedBy(run *journal.BulkRun, c *journal.BulkCommand) error {
	if run.StartedBy(c.By, c.Reason) {
		return nil
	}
	return journal.Refuse(PlanOutdated,
		"%s has started the run %s by this plan, for another reason or under another name; plan again", run.By, run.ID)
}

// startable returns the records of the planned dead letters, the most urgent first. It refuses a plan that is
// outdated or would decide nothing.
func (s *Service) startable(ctx context.Context, c journal.BulkCommand, before seen) (items []int64, err error) {
	if before.N == 0 {
		return nil, journal.Refuse(NothingToDo, "the filter lets no open dead letter through; plan with another one")
	}
	p, now, err := s.plan(ctx, c, before.Through)
	switch {
	case err != nil:
		return nil, err
	case now.N != before.N || now.Sum != before.Sum:
		return nil, journal.Refuse(PlanOutdated, "%d dead letters were planned, %d of those are open now; plan again", before.N, now.N)
	case p.Ready == 0:
		return nil, journal.Refuse(NothingToDo, "each of the %d dead letters would be refused (%s); see the plan", p.Total,
			p.Refused[0].Code)
	}
	f := c.Filter
	f.Now = s.now()
	order := OpenQuery(f, before.Through)
	slices.SortFunc(now.open, func(a, b Item) int { return order.Compare(new(a.Place()), new(b.Place())) })
	for i := range now.open {
		items = append(items, now.open[i].Record)
	}
	return items, nil
}

// Steer pauses, resumes or cancels a run. A paused run decides nothing until it is resumed. A cancelled one leaves
// its undecided dead letters open, and the decided ones as they are.
func (s *Service) Steer(ctx context.Context, id string, verb journal.BulkVerb, by string) (journal.BulkRun, error) {
	run, err := s.memory.Bulk(ctx, &journal.BulkStep{Verb: verb, Run: journal.BulkRun{ID: id}, By: by})
	if err != nil {
		return run, fmt.Errorf("record a bulk run's %s: %w", verb, err)
	}
	return s.watched(run), nil
}

// Run returns the run with that id.
func (s *Service) Run(ctx context.Context, id string) (journal.BulkRun, error) {
	if id = strings.ToLower(id); !IsID(id) {
		return journal.BulkRun{}, journal.ErrBulkRunUnknown
	}
	run, found, err := s.store.BulkRun(ctx, id)
	switch {
	case err != nil:
		return run, fmt.Errorf("read a bulk run: %w", err)
	case !found:
		return run, journal.ErrBulkRunUnknown
	}
	return s.watched(run), nil
}

// Runs returns at most limit bulk runs after the cursor, the newest first. next is empty if no more follow.
func (s *Service) Runs(ctx context.Context, cursor string, limit int) (runs []journal.BulkRun, next string, err error) {
	list, after := []byte("bulk runs"), ""
	if cursor != "" {
		if err := readCursor(list, cursor, &after); err != nil {
			return nil, "", err
		}
	}
	if runs, err = s.store.BulkRuns(ctx, after, limit+1); err != nil {
		return nil, "", fmt.Errorf("list bulk runs: %w", err)
	}
	for i := range runs {
		runs[i] = s.watched(runs[i])
	}
	if len(runs) > limit {
		runs, next = runs[:limit], newCursor(list, runs[limit-1].ID)
	}
	return runs, next, nil
}

// Items returns, in order, at most limit items of a run with that outcome (empty: any) and a number above after.
func (s *Service) Items(
	ctx context.Context, id string, outcome journal.BulkOutcome, after int64, limit int,
) ([]journal.BulkItem, error) {
	if outcome != "" && !slices.Contains(journal.BulkOutcomes(), outcome) {
		return nil, journal.Refuse(InvalidOutcome, "outcome is %.60q, expected one of %s", outcome,
			strings.Trim(fmt.Sprint(journal.BulkOutcomes()), "[]"))
	}
	run, err := s.Run(ctx, id)
	if err != nil {
		return nil, err
	}
	items, err := s.store.BulkItems(ctx, run.ID, outcome, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list a bulk run's dead letters: %w", err)
	}
	return items, nil
}
