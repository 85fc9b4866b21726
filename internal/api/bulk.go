package api

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Bulk plans, starts, shows and steers bulk runs. Its errors hold a *deadletter.Refusal, or are the journal's. Safe for
// concurrent use.
type Bulk interface {
	// Plan says what a command would do, and changes nothing.
	Plan(ctx context.Context, c deadletter.BulkCommand) (deadletter.Plan, error)
	// Start records the run that token's plan was made for, unless the token was used before.
	Start(ctx context.Context, c deadletter.BulkCommand, token string) (run journal.BulkRun, started bool, err error)
	// Steer pauses, resumes or cancels a run.
	Steer(ctx context.Context, id string, verb journal.BulkVerb, by string) (journal.BulkRun, error)
	Run(ctx context.Context, id string) (journal.BulkRun, error)
	// Runs are all of them, the newest first, at most limit (1 to deadletter.MostItems, or deadletter.DefaultItems where
	// it is 0).
	Runs(ctx context.Context, cursor string, limit int) (runs []journal.BulkRun, next string, err error)
	// Items of a run with that outcome (all where it is empty) and a number above after, at most limit.
	Items(ctx context.Context, id string, outcome journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error)
}

// BulkFilter chooses among the open dead letters; what is null does not.
type BulkFilter struct {
	Policy      *string `json:"policy"`
	Team        *string `json:"team"`
	Reason      *string `json:"reason"`
	Fingerprint *string `json:"fingerprint"`
	IDs         *string `json:"ids"`
	Context     *string `json:"context"`
	Query       *string `json:"q"`
	// Since and Until bound when they were given up: Since is included, Until is not.
	Since *string `json:"since"`
	Until *string `json:"until"`
}

// BulkCommand is what a plan and a run were asked for.
type BulkCommand struct {
	Action     journal.BulkAction `json:"action"`
	Filter     BulkFilter         `json:"filter"`
	ForceRetry bool               `json:"forceRetry"`
	Fresh      bool               `json:"fresh"`
	When       deadletter.When    `json:"when"`
	PerMinute  int64              `json:"perMinute"`
}

// BulkPlan is what a bulk run would do.
type BulkPlan struct {
	// Token starts it.
	Token string `json:"token"`
	BulkCommand
	// Total that the filter lets through; Ready of them would be decided, the Refused would not.
	Total   int64                     `json:"total"`
	Ready   int64                     `json:"ready"`
	Refused []deadletter.RefusedCount `json:"refused"`
	// Amount is what those are worth that would be decided.
	Amount string  `json:"amount"`
	Oldest *string `json:"oldest"`
	Newest *string `json:"newest"`
	// Tallies of what would be decided, the most first; Causes with the most of all.
	Tallies []deadletter.ReadyCount `json:"tallies"`
	Causes  []DeadLetterGroup       `json:"causes"`
	// Seconds that it lasts at its pace.
	Seconds int64 `json:"seconds"`
}

// BulkRun is a bulk run as the API shows it.
type BulkRun struct {
	ID string `json:"id"`
	BulkCommand
	Reason string            `json:"reason"`
	By     string            `json:"by"`
	State  journal.BulkState `json:"state"`
	// Hold is why it decides nothing for the moment, since HeldAt; null where it does.
	Hold   *string `json:"hold"`
	HeldAt *string `json:"heldAt"`
	// ChangedBy paused, resumed or cancelled it last, at ChangedAt; null where nobody did.
	ChangedBy *string `json:"changedBy"`
	ChangedAt *string `json:"changedAt"`
	CreatedAt string  `json:"createdAt"`
	StartedAt *string `json:"startedAt"`
	EndedAt   *string `json:"endedAt"`
	Total     int64   `json:"total"`
	// Counts by outcome, all of them, which add up to Total.
	Counts map[journal.BulkOutcome]int64 `json:"counts"`
}

// BulkItem is one dead letter of a bulk run.
type BulkItem struct {
	Number     int64               `json:"number"`
	DeadLetter string              `json:"deadLetterId"`
	Subject    SubjectName         `json:"subject"`
	Outcome    journal.BulkOutcome `json:"outcome"`
	// Code of a refusal; null otherwise.
	Code      *string `json:"code"`
	ChangedAt string  `json:"changedAt"`
	DecidedAt *string `json:"decidedAt"`
}

func filterOf(f *journal.DeadLetterFilter) BulkFilter {
	return BulkFilter{
		Policy: journal.OrNull(f.Policy), Team: journal.OrNull(string(f.Team)), Reason: journal.OrNull(string(f.Reason)),
		Fingerprint: journal.OrNull(f.Fingerprint), IDs: journal.OrNull(f.IDs), Context: journal.OrNull(f.Context),
		Query: journal.OrNull(f.Query),
		Since: journal.InstantOrNull(f.Since), Until: journal.InstantOrNull(f.Until),
	}
}

func planOf(p *deadletter.Plan) BulkPlan {
	c := &p.Command
	return BulkPlan{
		Token: p.Token, BulkCommand: BulkCommand{c.Action, filterOf(&c.Filter), c.Force, c.Fresh, c.When, c.PerMinute},
		Total: p.Total, Ready: p.Ready, Amount: decision.Amount(p.Cents), Refused: p.Refused, Tallies: p.Tallies,
		Oldest: journal.InstantOrNull(p.Oldest), Newest: journal.InstantOrNull(p.Newest),
		Causes: viewsOf(p.Causes, groupOf), Seconds: int64(math.Ceil(p.Takes.Seconds())),
	}
}

func bulkRunOf(r *journal.BulkRun) BulkRun {
	when := deadletter.Backoff
	if r.Now {
		when = deadletter.Now
	}
	shown := BulkRun{
		ID: r.ID, BulkCommand: BulkCommand{r.Action, filterOf(&r.Filter), r.Force, r.Fresh, when, r.PerMinute},
		Reason: r.Reason, By: r.By, State: r.State,
		Hold: journal.OrNull(r.Hold), HeldAt: journal.InstantOrNull(r.HeldAt),
		ChangedBy: journal.OrNull(r.ChangedBy), ChangedAt: journal.InstantOrNull(r.ChangedAt),
		CreatedAt: decision.Instant(r.CreatedAt),
		StartedAt: journal.InstantOrNull(r.StartedAt), EndedAt: journal.InstantOrNull(r.EndedAt), Total: r.Total,
		Counts: make(map[journal.BulkOutcome]int64),
	}
	for _, o := range journal.BulkOutcomes() {
		shown.Counts[o] = r.Counts[o]
	}
	return shown
}

func bulkItemOf(i *journal.BulkItem) BulkItem {
	return BulkItem{
		Number: i.Number, DeadLetter: i.DeadLetter, Subject: SubjectName(i.Subject), Outcome: i.Outcome,
		Code: journal.OrNull(i.Code), ChangedAt: decision.Instant(i.ChangedAt), DecidedAt: journal.InstantOrNull(i.DecidedAt),
	}
}

// commandFields of a plan, and of a start, which has reason and token too.
var commandFields = []string{"action", "filter", "forceRetry", "fresh", "when", "perMinute"}

// command is what the fields ask for; reason, person and token apart. Its filter must be there: {} is all that is open,
// and must be meant.
func (in *input) command() deadletter.BulkCommand {
	return deadletter.BulkCommand{
		Action: journal.BulkAction(in.text("action")), Filter: in.object("filter", filterFields...).filter(),
		Force: in.boolean("forceRetry"), Fresh: in.boolean("fresh"), When: deadletter.When(in.text("when")), PerMinute: in.pace(),
	}
}

// pace is the field perMinute.
func (in *input) pace() int64 {
	var n *float64
	if !in.read("perMinute", &n) || n != nil && !(*n >= 1 && *n <= journal.MaxPerMinute && *n == math.Trunc(*n)) {
		in.refuse(invalid(string(deadletter.InvalidPace),
			"perMinute is %.60s, expected a whole number from 1 to %d, or none for %d",
			in.given["perMinute"], journal.MaxPerMinute, deadletter.DefaultPerMinute))
	}
	if n == nil {
		return 0
	}
	return int64(*n)
}

// planBulk answers POST /api/v1/bulk-runs/plan.
func (s *API) planBulk(c *call) (any, error) {
	command := c.command()
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	plan, err := c.Bulk.Plan(c.Context(), command)
	return planOf(&plan), err
}

// startBulk answers POST /api/v1/bulk-runs. Who asked for it comes from the log-in.
func (s *API) startBulk(c *call) (any, error) {
	command := c.command()
	command.Reason, command.By = c.reason(), c.by()
	var token string
	if !c.read("token", &token) || token == "" {
		c.refuse(invalid(string(deadletter.InvalidPlan),
			"token is no text, expected the token of a plan of the very same command (POST /api/v1/bulk-runs/plan)"))
	}
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	if !s.gate.Allowed(c.w, c.Request, access.Bulk.Anew(command.Fresh), string(command.Filter.Team)) {
		return nil, errAnswered
	}
	run, started, err := c.Bulk.Start(c.Context(), command, token)
	if err != nil {
		return nil, &unsure{err, "the run was not started for sure; send it again: if it was, the answer is that run"}
	}
	c.w.Header().Set("Location", "/api/v1/bulk-runs/"+run.ID)
	if started {
		c.status = http.StatusCreated
		s.log.Info("a bulk run was started", zap.String("event", "bulk_run_started"), zap.String("runId", run.ID),
			zap.String("action", string(run.Action)), zap.String("by", command.By), zap.Int64("perMinute", run.PerMinute),
			zap.Bool("forceRetry", run.Force), zap.Bool("fresh", run.Fresh))
	}
	return bulkRunOf(&run), nil
}

// bulkRuns answers GET /api/v1/bulk-runs, the newest first.
func (s *API) bulkRuns(c *call) (any, error) {
	limit, cursor := c.limit(), c.name("cursor")
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	runs, next, err := c.Bulk.Runs(c.Context(), cursor, limit)
	return pageOf(runs, next, bulkRunOf), err
}

// runID is the id in a path, in whatever case.
func (c *call) runID() string { return strings.ToLower(c.PathValue("id")) }

// bulkRun answers GET /api/v1/bulk-runs/{id}.
func (s *API) bulkRun(c *call) (any, error) {
	run, err := c.Bulk.Run(c.Context(), c.runID())
	return bulkRunOf(&run), err
}

// bulkItems answers GET /api/v1/bulk-runs/{id}/items, in order.
func (s *API) bulkItems(c *call) (any, error) {
	limit, outcome := cmp.Or(c.limit(), deadletter.DefaultItems), journal.BulkOutcome(c.text("outcome"))
	if all := journal.BulkOutcomes(); outcome != "" && !slices.Contains(all, outcome) {
		c.invalid("outcome", "outcome is %.60q, expected one of %v, or none", outcome, all)
	}
	after := c.numberCursor()
	if c.wrong() != nil {
		return nil, c.wrong()
	}
	items, err := c.Bulk.Items(c.Context(), c.runID(), outcome, after, limit)
	next := ""
	if len(items) >= limit { // the page behind it may be empty
		next = strconv.FormatInt(items[len(items)-1].Number, 10)
	}
	return pageOf(items, next, bulkItemOf), err
}

// steerBulk answers POST /api/v1/bulk-runs/{id}/pause, …/resume and …/cancel.
func (s *API) steerBulk(verb journal.BulkVerb) func(*call) (any, error) {
	return func(c *call) (any, error) {
		run, err := c.Bulk.Run(c.Context(), c.runID())
		if err != nil {
			return nil, err
		}
		if !s.gate.Allowed(c.w, c.Request, access.Bulk.Anew(run.Fresh), string(run.Filter.Team)) {
			return nil, errAnswered
		}
		if run, err = c.Bulk.Steer(c.Context(), c.runID(), verb, c.by()); err != nil {
			return nil, &unsure{err, "that was not recorded for sure; the run says in which state it is"}
		}
		s.log.Info("a bulk run was changed", zap.String("event", "bulk_run_changed"), zap.String("runId", run.ID),
			zap.String("verb", string(verb)), zap.String("by", c.by()), zap.String("state", string(run.State)))
		return bulkRunOf(&run), nil
	}
}
