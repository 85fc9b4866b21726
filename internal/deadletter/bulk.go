package deadletter

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// DefaultPerMinute is a bulk run's pace if nobody says another.
const DefaultPerMinute = 60

// each returns the command for each dead letter of c.
func each(c *journal.BulkCommand) Command {
	return Command{Action: c.Action, Reason: c.Reason, By: c.By,
		RetryOptions: journal.RetryOptions{Force: c.Force, Fresh: c.Fresh, When: c.When}}
}

// Plan says what a command would do, before anything happens.
type Plan struct {
	// Token is what a run is started with, as long as the planned dead letters are still the same. Later ones are not
	// part of it.
	Token string
	// Command is the planned one, with its defaults.
	Command journal.BulkCommand
	// Total is how many dead letters the filter matches. Ready of them would be decided, those in Refused would not.
	Total, Ready int64
	Refused      []RefusedCount
	// Cents is the total amount of those that would be decided.
	Cents int64
	// Oldest and Newest are when the first and the last of all of them were created; zero if there are none.
	Oldest, Newest time.Time
	// Tallies counts what would be decided by policy, team and reason, the most first.
	Tallies []ReadyCount
	// Causes has the most frequent causes of all of them, at most MostCauses.
	Causes []Group
	// Takes is how long the run lasts at its pace.
	Takes time.Duration
}

// MostCauses bounds the causes that a plan names.
const MostCauses = 10

// RefusedCount counts the dead letters of a plan that would be refused for one reason.
type RefusedCount struct {
	Code journal.Code `json:"code"`
	// Message is one English line: what it is, what to do.
	Message string `json:"message"`
	Count   int64  `json:"count"`
}

// ReadyCount counts the dead letters of a plan that would be decided.
type ReadyCount struct {
	Policy string          `json:"policy"`
	Team   decision.Team   `json:"team"`
	Reason decision.Reason `json:"reason"`
	Count  int64           `json:"count"`
}

// interval returns the time between two decisions.
func interval(perMinute int64) time.Duration { return time.Minute / time.Duration(max(perMinute, 1)) }

// Plan returns what c would do now, and changes nothing. A plan that finds no dead letters is no error.
func (s *Service) Plan(ctx context.Context, c journal.BulkCommand) (Plan, error) {
	c, err := checked(c)
	if err != nil {
		return Plan{}, err
	}
	plan, _, err := s.plan(ctx, c, 0)
	if err != nil {
		return Plan{}, err
	}
	plan.Causes, _, err = s.Groups(ctx, c.Filter, "", MostCauses)
	return plan, err
}

// seen is what a plan found: N open dead letters with a record of at most Through, and the sum of their records. The
// run that it starts has the id Run, so that a second start finds the first.
type seen struct {
	Through, N, Sum int64
	Run             string
	open            []Item
}

// plan returns what c would do to the dead letters that it finds up to the record through; 0 is the newest.
func (s *Service) plan(ctx context.Context, c journal.BulkCommand, through int64) (p Plan, of seen, err error) {
	run, err := uuid.NewV7()
	if err != nil {
		return p, of, fmt.Errorf("name a bulk run: %w", err)
	}
	open, upTo, err := s.store.DeadLettersOpen(ctx, c.Filter, through, journal.MostBulkItems+1)
	if err != nil {
		return p, of, fmt.Errorf("read the open dead letters: %w", err)
	}
	if len(open) > journal.MostBulkItems {
		return p, of, journal.Refuse(InvalidFilter, "the filter lets more than %d dead letters through, which is the most of a bulk "+
			"run; narrow it, such as by a cause or a period", journal.MostBulkItems)
	}
	p = Plan{Command: c, Total: int64(len(open))}
	of = seen{Through: upTo, N: int64(len(open)), Run: run.String(), open: open}
	var all Count
	var ready []Count
	refused, command, policies := map[RefusedCount]int64{}, each(&c), s.policies()
	for i := range open {
		d := &open[i]
		of.Sum += d.Record
		one := Count{Policy: d.Subject.Policy, Team: d.Team, Reason: d.Reason, N: 1, Cents: d.Cents,
			Oldest: d.CreatedAt, Newest: d.CreatedAt}
		all.Add(&one)
		s.judge(d)
		if why := unfit(d, &command, policies[d.Subject.Policy]); why != nil {
			refused[RefusedCount{Code: why.Code, Message: cmp.Or(ofMany[why.Code], why.Message)}]++
			continue
		}
		p.Ready, p.Cents, ready = p.Ready+1, p.Cents+d.Cents, append(ready, one)
	}
	p.Oldest, p.Newest, p.Refused = all.Oldest, all.Newest, []RefusedCount{}
	for why, n := range refused {
		why.Count = n
		p.Refused = append(p.Refused, why)
	}
	slices.SortFunc(p.Refused, func(a, b RefusedCount) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Code, b.Code), cmp.Compare(a.Message, b.Message))
	})
	tallies := SumBy(ready, func(c *Count) Count { return Count{Policy: c.Policy, Team: c.Team, Reason: c.Reason} })
	p.Tallies = journal.Views(tallies, func(c *Count) ReadyCount { return ReadyCount{c.Policy, c.Team, c.Reason, c.N} })
	p.Takes, p.Token = time.Duration(p.Ready)*interval(c.PerMinute), of.token(&c)
	return p, of, nil
}

// ofMany are refusals in words that do not speak of a single dead letter.
var ofMany = map[journal.Code]string{
	journal.MaxRetriesExceeded: "all their retries are made; set forceRetry for one more, and fresh with it for the whole ladder " +
		"again",
	journal.DeadlineMissed: "they would be sent after their deadline; set forceRetry to send them all the same",
}

// planned returns the name of a command for its tokens, without the reason and the person's name.
func planned(c *journal.BulkCommand) []byte {
	name, _ := json.Marshal([]any{ // strings, numbers and booleans cannot fail
		"bulk plan", c.Action, c.Filter, c.Force, c.Fresh, c.When, c.PerMinute,
	})
	return name
}

// token returns the token of what was seen for c. It is no secret and gives no right: it only shows what has changed.
func (s *seen) token(c *journal.BulkCommand) string {
	return newCursor(planned(c), s.Through, s.N, s.Sum, s.Run)
}

// readToken returns what was seen for c, or a *journal.Refusal.
func readToken(token string, c *journal.BulkCommand) (s seen, err error) {
	if readCursor(planned(c), token, &s.Through, &s.N, &s.Sum, &s.Run) != nil {
		return s, journal.Refuse(InvalidPlan, "the token is not one that a plan of this very command gave (action, filter, forceRetry, "+
			"fresh, when and perMinute); plan first, and start with the plan's token")
	}
	return s, nil
}

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
		return nil, journal.Refuse(PlanOutdated, "%d dead letters were planned, %d of those are open now; plan again",
			before.N, now.N)
	case p.Ready == 0:
		return nil, journal.Refuse(NothingToDo, "each of the %d dead letters would be refused (%s); see the plan", p.Total,
			p.Refused[0].Code)
	}
	f := c.Filter
	f.Now = s.now()
	order, _ := NewQuery(f, "", 1) // only a cursor can make it fail
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
		return nil, invalid("outcome", outcome, "one of "+strings.Trim(fmt.Sprint(journal.BulkOutcomes()), "[]"))
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
