package api

import (
	"encoding/json"
	"math"
	"strconv"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// BulkCommand is what a plan or a run does. Filter is required, so that nobody selects all that is open ({}) by leaving
// it out.
type BulkCommand struct {
	Action    journal.BulkAction `json:"action" required:"1" doc:"What is done with each."`
	Filter    Filter             `json:"filter" required:"1" doc:"Which of the open ones; {} is all of them."`
	Force     bool               `json:"forceRetry" doc:"Also those at or above the limit, or after their deadline."`
	Fresh     bool               `json:"fresh" doc:"The whole ladder again; needs forceRetry."`
	When      string             `json:"when" enum:"backoff,now" default:"backoff" doc:"After the policy's backoff, or at once."`
	PerMinute int64              `json:"perMinute" min:"1" max:"6000" default:"60" code:"invalid_pace" doc:"The pace."`
}

func (c *call) command(in *BulkCommand) (journal.BulkCommand, error) {
	filter, err := c.filter(&in.Filter)
	return journal.BulkCommand{Action: in.Action, Filter: filter, Force: in.Force, Fresh: in.Fresh, When: in.When,
		PerMinute: in.PerMinute}, err
}

// BulkPlan is what a bulk run would do.
type BulkPlan struct {
	Token string `json:"token" doc:"Starts it."`
	BulkCommand
	Total   int64                     `json:"total" doc:"How many the filter lets through."`
	Ready   int64                     `json:"ready" doc:"How many of them would be decided."`
	Refused []deadletter.RefusedCount `json:"refused" doc:"Why the others would not."`
	Amount  string                    `json:"amount" doc:"What those are worth that would be decided."`
	Oldest  *string                   `json:"oldest" format:"date-time"`
	Newest  *string                   `json:"newest" format:"date-time"`
	Tallies []deadletter.ReadyCount   `json:"tallies" doc:"What would be decided, the most first."`
	Causes  []DeadLetterGroup         `json:"causes" items:"10" doc:"The causes that most of them have."`
	Seconds int64                     `json:"seconds" doc:"How long it lasts at its pace."`
}

// BulkRun is a bulk run as the API shows it.
type BulkRun struct {
	ID string `json:"id" format:"uuid"`
	BulkCommand
	Reason    string            `json:"reason" doc:"Why, in the words of who started it."`
	By        string            `json:"by"`
	State     journal.BulkState `json:"state" doc:"Done: each is decided or refused; outcomes go on being verified."`
	Held      bool              `json:"held" doc:"It is running, but decides nothing while the engine does not answer."`
	ChangedBy *string           `json:"changedBy" doc:"Who last paused, resumed or cancelled it."`
	ChangedAt *string           `json:"changedAt" format:"date-time"`
	CreatedAt string            `json:"createdAt" format:"date-time"`
	EndedAt   *string           `json:"endedAt" format:"date-time"`
	Total     int64             `json:"total" doc:"How many dead letters it is about."`
	// Counts has every outcome.
	Counts map[journal.BulkOutcome]int64 `json:"counts" doc:"How many came to each outcome; not those that are expunged."`
}

// BulkItem is one dead letter of a bulk run.
type BulkItem struct {
	Number     int64               `json:"number" min:"1" doc:"In the run, the most urgent dead letter first."`
	DeadLetter string              `json:"deadLetterId" format:"uuid"`
	Subject    SubjectName         `json:"subject"`
	Outcome    journal.BulkOutcome `json:"outcome" doc:"What became of it so far."`
	Code       *string             `json:"code" doc:"Why it was refused."`
	ChangedAt  string              `json:"changedAt" format:"date-time"`
	DecidedAt  *string             `json:"decidedAt" format:"date-time"`
}

func commandOf(c *journal.BulkCommand) (shown BulkCommand) {
	text, _ := json.Marshal(c) // both have the same names in JSON
	_ = json.Unmarshal(text, &shown)
	return shown
}

func planOf(p *deadletter.Plan) BulkPlan {
	return BulkPlan{
		Token: p.Token, BulkCommand: commandOf(&p.Command),
		Total: p.Total, Ready: p.Ready, Amount: decision.Amount(p.Cents), Refused: p.Refused, Tallies: p.Tallies,
		Oldest: journal.InstantOrNull(p.Oldest), Newest: journal.InstantOrNull(p.Newest),
		Causes: journal.Views(p.Causes, groupOf), Seconds: int64(math.Ceil(p.Takes.Seconds())),
	}
}

func bulkRunOf(r *journal.BulkRun) BulkRun {
	shown := BulkRun{
		ID: r.ID, BulkCommand: commandOf(&r.BulkCommand),
		Reason: r.Reason, By: r.By, State: r.State, Held: r.Held,
		ChangedBy: journal.OrNull(r.ChangedBy), ChangedAt: journal.InstantOrNull(r.ChangedAt),
		CreatedAt: decision.Instant(r.CreatedAt), EndedAt: journal.InstantOrNull(r.EndedAt), Total: r.Total,
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

var bulkRuns = []*Operation{
	op(access.Read, "POST /bulk-runs/plan", "planBulkRun", func(c *call, in *BulkCommand) (BulkPlan, error) {
		command, err := c.command(in)
		if err != nil {
			return BulkPlan{}, err
		}
		return shown(planOf)(c.Plan(c.Context(), command))
	}),
	op(access.Bulk, "POST /bulk-runs", "startBulkRun", func(c *call, in *struct {
		BulkCommand
		reasonInput
		Token string `json:"token" required:"1" long:"1" code:"invalid_plan" expects:"a plan's" doc:"The plan's."`
	}) (BulkRun, error) {
		command, err := c.command(&in.BulkCommand)
		if err != nil {
			return BulkRun{}, err
		}
		command.Reason = in.Reason
		run, _, err := c.Start(c.Context(), command, in.Token)
		return bulkRunOf(&run), err
	}),
	op(access.Read, "GET /bulk-runs", "listBulkRuns", func(c *call, in *pageInput) (Page[BulkRun], error) {
		return paged(bulkRunOf)(c.Runs(c.Context(), in.Cursor, in.Limit))
	}),
	op(access.Read, "GET /bulk-runs/{id}", "showBulkRun", func(c *call, in *idInput) (BulkRun, error) {
		return shown(bulkRunOf)(c.Run(c.Context(), in.ID))
	}),
	op(access.Read, "GET /bulk-runs/{id}/items", "listBulkItems", func(c *call, in *struct {
		idInput
		Outcome journal.BulkOutcome `json:"outcome" doc:"Only those with this outcome."`
		pageInput
	}) (Page[BulkItem], error) {
		after, err := numberCursor(in.Cursor)
		if err != nil {
			return Page[BulkItem]{}, err
		}
		items, err := c.Items(c.Context(), in.ID, in.Outcome, after, in.Limit)
		next := ""
		if len(items) == in.Limit { // the next page may be empty
			next = strconv.FormatInt(items[len(items)-1].Number, 10)
		}
		return paged(bulkItemOf)(items, next, err)
	}),
	op(access.Bulk, "POST /bulk-runs/{id}/pause", "pauseBulkRun", steer(journal.BulkPause)),
	op(access.Bulk, "POST /bulk-runs/{id}/resume", "resumeBulkRun", steer(journal.BulkResume)),
	op(access.Bulk, "POST /bulk-runs/{id}/cancel", "cancelBulkRun", steer(journal.BulkCancel)),
}

func steer(verb journal.BulkVerb) func(*call, *idInput) (BulkRun, error) {
	return func(c *call, in *idInput) (BulkRun, error) {
		return shown(bulkRunOf)(c.Steer(c.Context(), in.ID, verb))
	}
}

// numberCursor returns the number of the record or item after which a page begins; 0 if text is empty.
func numberCursor(text string) (int64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if text != "" && (err != nil || n == 0) {
		return 0, deadletter.ErrBadCursor
	}
	return int64(n), nil
}
