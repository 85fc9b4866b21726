// Package bulk is one decision on many dead letters: planned before anything happens, carried out one by one at a pace,
// and verified one by one.
package bulk

import (
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

// What a run may ask for.
const (
	// MostPerMinute dead letters are decided in a minute at most; DefaultPerMinute where nobody says.
	MostPerMinute    = journal.MaxPerMinute
	DefaultPerMinute = 60
)

// Codes of refusals, beside those of review: of a whole command, and of single dead letters.
const (
	// RunNotFound: there is no bulk run of that id.
	RunNotFound review.Code = "run_not_found"
	// InvalidRunState: the run does not allow that any more, or not yet.
	InvalidRunState review.Code = "invalid_run_state"
	// PlanOutdated: what the filter lets through is no longer what was planned.
	PlanOutdated review.Code = "plan_outdated"
	// NothingToDo: the filter lets nothing through, or nothing that would not be refused.
	NothingToDo review.Code = "nothing_to_do"
	// InvalidAction, InvalidPace, InvalidPlan, InvalidPeriod: of the command's own fields.
	InvalidAction  review.Code = "invalid_action"
	InvalidPace    review.Code = "invalid_pace"
	InvalidPlan    review.Code = "invalid_plan"
	InvalidPeriod              = review.InvalidPeriod
	InvalidOutcome review.Code = "invalid_outcome" // of a list of items
	// InOtherRun: another run that has not ended has planned that dead letter.
	InOtherRun review.Code = "in_other_run"
	// NotRecordable: the journal can never hold the decision on that dead letter.
	NotRecordable review.Code = "not_recordable"
)

// Why a running run decides nothing for the moment (journal.BulkRun.Hold). The set is closed. It goes on by itself.
const (
	// HoldEngine: the engine does not answer.
	HoldEngine = "engine_down"
	// HoldJournal: the journal cannot be read or written. It is noted as soon as that can be.
	HoldJournal = "journal_down"
)

// Command is what is to be done with all dead letters of a filter.
type Command struct {
	Action journal.BulkAction
	// Filter chooses among the open ones; its State is not looked at.
	Filter journal.DeadLetterFilter
	// Reason and By are the person's words, 1 to review.MaxReason characters, and name. A plan needs neither.
	Reason, By string
	// Force, Fresh and When are those of each retry (review.Command).
	Force, Fresh bool
	When         review.When
	// PerMinute is the pace, 1 to MostPerMinute; 0 is DefaultPerMinute.
	PerMinute int64
}

// Plan says what a command would do, before anything happens.
type Plan struct {
	// Token names what was planned: a run is started with it, and only as long as the dead letters it speaks of are still
	// the same. What dies later is not part of it.
	Token string
	// Command it was made for, with the pace and the moment filled in.
	Command Command
	// Total dead letters that the filter lets through; Ready of them would be decided, Refused would not.
	Total, Ready int64
	Refused      []Refused
	// Oldest and Newest of all of them; the zero time where there are none.
	Oldest, Newest time.Time
	// Tallies of what would be decided, by policy, team and reason, the most first.
	Tallies []Tally
	// Causes with the most of all of them, at most MostCauses; the sample of each says which they are. None where the filter
	// is by age: groups are not kept by the hour.
	Causes []journal.DeadLetterGroup
	// Takes is how long the run lasts at its pace.
	Takes time.Duration
}

// MostCauses that a plan names.
const MostCauses = 10

// Refused is why so many of a plan would not be decided.
type Refused struct {
	Code review.Code
	// Message is one English line: what it is, what to do.
	Message string
	N       int64
}

// Tally is how many of a plan would be decided.
type Tally struct {
	Policy string
	Team   decision.Team
	Reason decision.Reason
	N      int64
}
