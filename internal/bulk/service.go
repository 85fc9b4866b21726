package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

// Store reads dead letters and bulk runs (journal.BulkStore and journal.DeadLetterReader). Its errors hold a
// *journal.StoreError, or are journal.ErrBadCursor and journal.ErrBadFilter.
type Store interface {
	DeadLetterTallies(ctx context.Context, f journal.DeadLetterFilter, through int64, recent time.Time) (tallies []journal.DeadLetterTally, upTo int64, err error)
	DeadLetterGroups(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) (groups []journal.DeadLetterGroup, next string, err error)
	BulkRun(ctx context.Context, id string) (journal.BulkRun, bool, error)
	BulkRuns(ctx context.Context, cursor string, limit int) (runs []journal.BulkRun, next string, err error)
	BulkItems(ctx context.Context, run string, outcome journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error)
}

// Recorder records what is done to whole runs (journal.Journal does). Its errors are those of Journal.Bulk.
type Recorder interface {
	Bulk(ctx context.Context, s *journal.BulkStep) (journal.BulkRun, error)
}

// Service plans, starts, steers and shows bulk runs. Its errors hold a *review.Refusal, or are the journal's: what was asked
// for may have been done then, and asking again says so. Safe for concurrent use. May they? That is the caller's to know
// (roles).
type Service struct {
	store    Store
	memory   Recorder
	policies func() decision.Policies
	now      func() time.Time
	engineUp func() time.Time
}

// New is a Service over store that records in memory. policies gives those in force. engineUp tells since when the engine
// answers this worker; the zero time where it does not.
func New(store Store, memory Recorder, policies func() decision.Policies, now, engineUp func() time.Time) *Service {
	return &Service{store, memory, policies, now, engineUp}
}

// Plan says what c would do to what is there now, and changes nothing. One that finds nothing is no error.
func (s *Service) Plan(ctx context.Context, c Command) (Plan, error) {
	c, err := c.checked()
	if err != nil {
		return Plan{}, err
	}
	p, err := s.plan(ctx, c, 0)
	if err != nil {
		return Plan{}, err
	}
	plan := p.plan()
	groups, _, err := s.store.DeadLetterGroups(ctx, c.Filter, "", MostCauses)
	switch {
	case errors.Is(err, journal.ErrBadFilter): // groups are not kept by the hour
		return plan, nil
	case err != nil:
		return Plan{}, fmt.Errorf("group dead letters: %w", err)
	}
	plan.Causes = groups
	return plan, nil
}

// plan sums up what c finds up to the record through; 0 is the newest.
func (s *Service) plan(ctx context.Context, c Command, through int64) (*planner, error) {
	run, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("name a bulk run: %w", err)
	}
	now, up := s.now(), s.engineUp()
	tallies, upTo, err := s.store.DeadLetterTallies(ctx, c.Filter, through, now.Add(-review.ExpectedFor))
	switch {
	case errors.Is(err, journal.ErrBadFilter):
		return nil, refuse(review.InvalidQuery, "%v", err)
	case err != nil:
		return nil, fmt.Errorf("sum up dead letters: %w", err)
	}
	p := &planner{Plan: Plan{Command: c}, policies: s.policies(), early: up.IsZero() || now.Sub(up) < review.ExpectedFor,
		refused: map[Refused]int64{}, ready: map[Tally]int64{}, seen: seen{through: upTo, run: run}}
	for i := range tallies {
		p.add(&tallies[i])
	}
	return p, nil
}

// Start records the run that token's plan was made for; a runner carries it out. started is false where the token was used
// before: the run is then the one that it began. It is refused where the dead letters that were planned are not the same
// any more. c is the planned one, with reason and name.
func (s *Service) Start(ctx context.Context, c Command, token string) (run journal.BulkRun, started bool, err error) {
	if c, err = c.checked(); err != nil {
		return journal.BulkRun{}, false, err
	}
	if c.Reason, err = review.CheckReason(c.Reason); err != nil {
		return journal.BulkRun{}, false, err
	}
	planned, err := readToken(token, &c)
	if err != nil {
		return journal.BulkRun{}, false, err
	}
	id := planned.run.String()
	if run, found, err := s.store.BulkRun(ctx, id); found || err != nil {
		return run, false, err
	}
	if err := s.startable(ctx, c, planned); err != nil {
		return journal.BulkRun{}, false, err
	}
	run = journal.BulkRun{
		ID: id, Action: c.Action, Filter: c.Filter, Through: planned.through, Reason: c.Reason, By: c.By,
		Force: c.Force, Fresh: c.Fresh, Now: c.When == review.Now, PerMinute: c.PerMinute,
	}
	run, err = s.memory.Bulk(ctx, &journal.BulkStep{Verb: journal.BulkStart, Run: run, By: c.By})
	switch {
	case errors.Is(err, journal.ErrInvalidRunState): // the token's other use was faster
		run, err = s.Run(ctx, id)
		return run, false, err
	case err != nil:
		return journal.BulkRun{}, false, fmt.Errorf("record a bulk run: %w", err)
	}
	return run, true, nil
}

// startable refuses a plan that no longer matches what is there, and one of which nothing would be decided.
func (s *Service) startable(ctx context.Context, c Command, planned seen) error {
	if planned.n == 0 {
		return refuse(NothingToDo, "the filter lets no open dead letter through; plan with another one")
	}
	p, err := s.plan(ctx, c, planned.through)
	switch {
	case err != nil:
		return err
	case p.seen.n != planned.n || p.seen.sum != planned.sum:
		return s.outdated(ctx, c, planned, p.seen)
	case p.Ready == 0:
		return refuse(NothingToDo, "each of the %d dead letters would be refused (%s); see the plan", p.Total, p.plan().Refused[0].Code)
	}
	return nil
}

// outdated tells the numbers of a plan that no longer matches.
func (s *Service) outdated(ctx context.Context, c Command, planned, now seen) error {
	all, err := s.plan(ctx, c, 0)
	if err != nil {
		return err
	}
	which := ""
	if now.n == planned.n {
		which = ", not the same ones"
	}
	return refuse(PlanOutdated, "%d dead letters were planned, %d of those are open now%s, and %d came since; plan again", planned.n, now.n, which, all.seen.n-now.n)
}

// Pause has a run decide nothing until it is resumed.
func (s *Service) Pause(ctx context.Context, id, by string) (journal.BulkRun, error) {
	return s.change(ctx, id, by, journal.BulkPause, journal.BulkPreparing, journal.BulkRunning)
}

// Resume lets a paused run go on, at its pace from then on.
func (s *Service) Resume(ctx context.Context, id, by string) (journal.BulkRun, error) {
	return s.change(ctx, id, by, journal.BulkResume, journal.BulkPaused)
}

// Cancel ends a run: what is not decided by then stays open; what is goes its way.
func (s *Service) Cancel(ctx context.Context, id, by string) (journal.BulkRun, error) {
	return s.change(ctx, id, by, journal.BulkCancel, journal.BulkPreparing, journal.BulkRunning, journal.BulkPaused)
}

// change does the verb to a run that is in one of the states.
func (s *Service) change(ctx context.Context, id, by string, verb journal.BulkVerb, in ...journal.BulkState) (journal.BulkRun, error) {
	if !review.IsID(id) {
		return journal.BulkRun{}, runNotFound()
	}
	run, err := s.memory.Bulk(ctx, &journal.BulkStep{Verb: verb, Run: journal.BulkRun{ID: id}, By: by})
	switch {
	case errors.Is(err, journal.ErrBulkRunUnknown):
		return journal.BulkRun{}, runNotFound()
	case errors.Is(err, journal.ErrInvalidRunState):
		return journal.BulkRun{}, s.wrongState(ctx, id, verb, in)
	case err != nil:
		return journal.BulkRun{}, fmt.Errorf("record a bulk run's %s: %w", verb, err)
	}
	return run, nil
}

// wrongState says in which state the run is, since when, and what the verb needs.
func (s *Service) wrongState(ctx context.Context, id string, verb journal.BulkVerb, in []journal.BulkState) error {
	r, err := s.Run(ctx, id)
	if err != nil {
		return err
	}
	since, by := r.ChangedAt, ""
	switch r.State {
	case journal.BulkDone:
		since = r.EndedAt
	case journal.BulkPreparing, journal.BulkRunning:
		since = r.CreatedAt
	default:
		by = " by " + r.ChangedBy
	}
	return refuse(InvalidRunState, "the run is %s since %s%s; %s needs one that is %s", r.State, decision.Instant(since), by, verb, oneOf(in))
}

// oneOf names the states in a sentence.
func oneOf(states []journal.BulkState) string {
	text := string(states[len(states)-1])
	for i, s := range slices.Backward(states[:len(states)-1]) {
		between := ", "
		if i == len(states)-2 {
			between = " or "
		}
		text = string(s) + between + text
	}
	return text
}

// Run is the run of that id as it stands.
func (s *Service) Run(ctx context.Context, id string) (journal.BulkRun, error) {
	if !review.IsID(id) {
		return journal.BulkRun{}, runNotFound()
	}
	run, found, err := s.store.BulkRun(ctx, id)
	switch {
	case err != nil:
		return journal.BulkRun{}, fmt.Errorf("read a bulk run: %w", err)
	case !found:
		return journal.BulkRun{}, runNotFound()
	}
	return run, nil
}

func runNotFound() *review.Refusal {
	return refuse(RunNotFound, "there is no bulk run of this id; the list has their ids")
}

// Runs are all of them, the newest first, from behind the cursor on: at most limit, 1 to review.MostItems, or
// review.DefaultItems where it is 0. next is empty where no more follow.
func (s *Service) Runs(ctx context.Context, cursor string, limit int) (runs []journal.BulkRun, next string, err error) {
	if limit, err = review.CheckLimit(limit); err != nil {
		return nil, "", err
	}
	runs, next, err = s.store.BulkRuns(ctx, cursor, limit)
	switch {
	case errors.Is(err, journal.ErrBadCursor):
		return nil, "", review.BadCursor(err)
	case err != nil:
		return nil, "", fmt.Errorf("list bulk runs: %w", err)
	}
	return runs, next, nil
}

// Items of a run with that outcome (all where it is empty) and a number above after, in order: at most limit, as Runs says.
func (s *Service) Items(ctx context.Context, id string, outcome journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error) {
	limit, err := review.CheckLimit(limit)
	switch {
	case err != nil:
		return nil, err
	case outcome != "" && !slices.Contains(journal.BulkOutcomes(), outcome):
		return nil, refuse(InvalidOutcome, "outcome is %.60q, expected one of %q", outcome, journal.BulkOutcomes())
	case after < 0:
		return nil, refuse(review.InvalidCursor, "after is %d, expected 0 or the number of an item", after)
	}
	if _, err := s.Run(ctx, id); err != nil {
		return nil, err
	}
	items, err := s.store.BulkItems(ctx, id, outcome, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list a bulk run's dead letters: %w", err)
	}
	return items, nil
}
