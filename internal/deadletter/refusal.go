package deadletter

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Code says why something was refused, as the API does. The set is closed.
type Code string

// The codes; the first four are retry-failed-job.md's and the contract's.
const (
	JobNotFound        Code = "job_not_found"
	MaxRetriesExceeded Code = "max_retries_exceeded"
	InvalidRetryState  Code = "invalid_retry_state"
	ReasonRequired     Code = "reason_required"
	DeadlineMissed     Code = "deadline_missed"
	ReasonTooLong      Code = "reason_too_long"
	InvalidWhen        Code = "invalid_when"
	ForceRequired      Code = "force_required"   // fresh without forceRetry
	PolicyNotFound     Code = "policy_not_found" // no backoff to compute
	InvalidState       Code = "invalid_state"
	InvalidSort        Code = "invalid_sort"
	InvalidLimit       Code = "invalid_limit"
	InvalidQuery       Code = "invalid_query"
	InvalidCursor      Code = "invalid_cursor"
	InvalidReason      Code = "invalid_reason" // of a filter
	InvalidFingerprint Code = "invalid_fingerprint"
	InvalidIDs         Code = "invalid_ids"
	InvalidContext     Code = "invalid_context"
	InvalidPeriod      Code = "invalid_period"

	// RequestStands: somebody has asked for a decision on it already.
	RequestStands Code = "request_stands"

	// Of a cause, and of what is taught of it.

	CauseNotFound         Code = "cause_not_found"
	NothingTaught         Code = "nothing_taught"
	InvalidTeam           Code = "invalid_team"
	InvalidClassification Code = "invalid_classification"

	// Of a bulk run, and of its command.

	// RunNotFound: there is no bulk run of that id.
	RunNotFound Code = "run_not_found"
	// InvalidRunState: the run does not allow that any more, or not yet.
	InvalidRunState Code = "invalid_run_state"
	// PlanOutdated: what the filter lets through is no longer what was planned.
	PlanOutdated Code = "plan_outdated"
	// NothingToDo: the filter lets nothing through, or nothing that would not be refused.
	NothingToDo Code = "nothing_to_do"
	// InvalidAction, InvalidPace, InvalidPlan: of the command's own fields.
	InvalidAction  Code = "invalid_action"
	InvalidPace    Code = "invalid_pace"
	InvalidPlan    Code = "invalid_plan"
	InvalidOutcome Code = "invalid_outcome" // of a list of items
	// InOtherRun: another run that has not ended has planned that dead letter.
	InOtherRun Code = "in_other_run"
	// NotRecordable: the journal can never hold the decision on that dead letter.
	NotRecordable Code = "not_recordable"
)

// Refusal is why a list is not given, or a decision not taken; nothing was changed.
type Refusal struct {
	Code Code
	// Message is one English line for the person: what was found, what was expected, what to do.
	Message string
	// State the dead letter is in since At, by the decision of By; By is empty where it was nobody's. Zero unless
	// InvalidRetryState; an open dead letter has no By and At: no process waits for it.
	By    string
	At    time.Time
	State journal.DeadLetterState
}

func (r *Refusal) Error() string { return r.Message }

// RefusalOf is the refusal that err holds; nil where it is another error: the decision, or the answer, is not known
// then, and asking again is safe (journal.ErrUnavailable), or the journal can never hold it (journal.ErrInvalid).
func RefusalOf(err error) *Refusal {
	r, _ := errors.AsType[*Refusal](err)
	return r
}

func refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

func notFound() *Refusal {
	return refuse(JobNotFound, "there is no dead letter of this id; the list has their ids")
}

func exceeded(d *journal.DeadLetter) *Refusal {
	return refuse(MaxRetriesExceeded,
		"%d of %d retries are made; set forceRetry for one more, and fresh with it for the whole ladder again",
		d.RetryCount, d.MaxRetries)
}

func missed(deadline time.Time) *Refusal {
	return refuse(DeadlineMissed, "it cannot be sent by its deadline %s; set forceRetry to send it all the same, or give a "+
		"new submissionDeadline", decision.Instant(deadline))
}

// settled is why nothing can be decided any more.
func settled(by *journal.DecidedError) *Refusal {
	who := ""
	if by.By != "" {
		who = " by " + by.By
	}
	return &Refusal{
		Code: InvalidRetryState, By: by.By, At: by.At, State: by.State,
		Message: fmt.Sprintf("the dead letter is %s since %s%s; only an open one can be decided on", by.State,
			decision.Instant(by.At), who),
	}
}

// unattended is why an open dead letter cannot be retried: there is nobody to carry it out, or not yet.
func unattended(d *Item) *Refusal {
	r := &Refusal{
		Code: InvalidRetryState, State: d.State,
		Message: "no process waits for this dead letter, so nothing would carry a retry out; start the process again for " +
			"its subject, or discard it",
	}
	if d.Process == Expected {
		r.Message = "the process has not come to its review task yet, so nothing would carry a retry out; try again in a " +
			"minute, or discard it"
	}
	return r
}

// policyGone is why a retry after a policy's delay cannot be made.
func policyGone(policy string) *Refusal {
	return refuse(PolicyNotFound, "policy %.60q is no longer in the catalogue, so its backoff is not known; retry with "+
		"when now, or add the policy again", policy)
}

// MaxReason is how many characters a reason may have: the audit keeps all of them.
const MaxReason = 500

// CheckReason is a person's words without what stands around them, or the *Refusal of none and of too many.
func CheckReason(s string) (string, error) {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	switch {
	case s == "":
		return "", refuse(ReasonRequired, "a reason is required; say in a few words why")
	case utf8.RuneCountInString(s) > MaxReason:
		return "", refuse(ReasonTooLong, "the reason has more than %d characters; say it in fewer", MaxReason)
	}
	return s, nil
}

func unforced() *Refusal {
	return refuse(ForceRequired, "fresh begins the whole ladder anew and needs forceRetry; set both, or neither")
}
