// Package deadletter lists, groups and shows dead letters, and carries out people's decisions on them (R17): on one
// at once, or on many at a pace.
//
// The API, the console and the command line share it, and it imports none of them. The worker answers the jobs by
// which processes wait (worker/review.go).
package deadletter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// Item is a dead letter with its subject, its error and the state of its review.
type Item struct {
	journal.DeadLetter
	Subject journal.Subject
	// Error is the redacted error of the attempt that created it; empty if a process reported the failure.
	Error          string
	Classification decision.ErrorClassification
	MatchedRule    string
	// Process says whether a process waits for the decision. Late reports whether the dead letter is open past its
	// deadline. The Service sets both; a Store knows neither.
	Process Process
	Late    bool
}

// ForceNeeded reports whether a retry needs Force: the limit is reached, or the deadline has passed.
func (i *Item) ForceNeeded() bool { return i.AtLimit() || i.Late }

// Count counts the dead letters that share cause, policy, state, team, reason and assignee.
type Count struct {
	Fingerprint, Policy string
	State               journal.DeadLetterState
	Team                decision.Team
	Reason              decision.Reason
	Assignee            string // empty for nobody
	N                   int64
	Cents               int64 // their total amount
	// Oldest and Newest are when the first and the last of them were created. Last is the newest one's record.
	Oldest, Newest time.Time
	Last           int64
}

// Add adds the dead letters that o counts.
func (c *Count) Add(o *Count) {
	c.N, c.Cents, c.Last = c.N+o.N, c.Cents+o.Cents, max(c.Last, o.Last)
	if c.Oldest.IsZero() || o.Oldest.Before(c.Oldest) {
		c.Oldest = o.Oldest
	}
	if o.Newest.After(c.Newest) {
		c.Newest = o.Newest
	}
}

// Reader reads dead letters while others write them. Its errors hold a *journal.StoreError. Every method is safe for
// concurrent use.
type Reader interface {
	// DeadLetter returns the dead letter with that id; false if there is none.
	DeadLetter(ctx context.Context, id string) (Item, bool, error)
	// DeadLetterPage returns the dead letters that match the filter, in its order, after the cursor (empty: from the
	// first): at most limit, which is clamped to 1 to MostItems. next is empty if no more follow. A dead letter that
	// Weigh moves between two pages may be returned twice or not at all. The error is ErrBadCursor, or holds a
	// *journal.StoreError.
	DeadLetterPage(
		ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int,
	) (items []Item, next string, err error)
	// DeadLettersOf returns the dead letters of those records, in order. Records without one are left out.
	DeadLettersOf(ctx context.Context, records []int64) ([]Item, error)
	// DeadLetterCounts counts the dead letters that match the filter, sorted by Count's fields. Its cost grows with the
	// number of dead letters in the filter's state.
	DeadLetterCounts(ctx context.Context, f journal.DeadLetterFilter) ([]Count, error)
}

// BulkStore reads bulk runs, and the dead letters for new ones, while others use the store. Its errors hold a
// *journal.StoreError. Every method is safe for concurrent use.
type BulkStore interface {
	// DeadLettersOpen returns the open dead letters that match f (its State is ignored) with a record of at most through
	// (0: the journal's last), ordered by record, at most limit. upTo is the last record it looked at. Error,
	// Classification and MatchedRule are not set.
	DeadLettersOpen(
		ctx context.Context, f journal.DeadLetterFilter, through int64, limit int,
	) (open []Item, upTo int64, err error)
	// BulkRun returns the run with that id; false if there is none.
	BulkRun(ctx context.Context, id string) (journal.BulkRun, bool, error)
	// BulkRuns returns at most limit runs with ids below after (empty: any), the greatest ids first.
	BulkRuns(ctx context.Context, after string, limit int) ([]journal.BulkRun, error)
	// ActiveBulkRuns returns the runs that are running or paused, the oldest first.
	ActiveBulkRuns(ctx context.Context) ([]journal.BulkRun, error)
	// BulkItems returns a run's items with that outcome (empty: any) and a number above after, in order, at most limit.
	BulkItems(
		ctx context.Context, run string, outcome journal.BulkOutcome, after int64, limit int,
	) ([]journal.BulkItem, error)
}

// Store is what a Service reads.
type Store interface {
	Reader
	BulkStore
	Causes(ctx context.Context, f journal.CauseFilter, after *journal.Fingerprint, limit int) ([]journal.Cause, error)
	// Story returns everything that is remembered of a subject; false if nothing is.
	Story(ctx context.Context, s journal.Subject) (journal.Story, bool, error)
}

// AlertAbove is how many dead letters, over all policies, may be open before an alert fires (TRD-0003).
const AlertAbove = 100

// Service lists dead letters, takes decisions on them, and plans, starts, steers and shows bulk runs. Its errors hold
// a *Refusal, or are the journal's: then the request may have taken effect, and sending it again shows whether it
// did. Safe for concurrent use. The caller checks permissions.
type Service struct {
	store    Store
	memory   *journal.Journal
	policies func() decision.Policies
	now      func() time.Time
	engineUp func() time.Time
}

// New returns a Service over store that records in memory. policies returns those in force. engineUp returns since
// when the engine has answered this worker; the zero time if it does not answer.
func New(
	store Store, memory *journal.Journal, policies func() decision.Policies, now, engineUp func() time.Time,
) *Service {
	return &Service{store, memory, policies, now, engineUp}
}

// Process says whether a process waits for a decision on a dead letter. The set is closed.
type Process string

// The states of a process.
const (
	// Waiting: its review job is known.
	Waiting Process = "waiting"
	// Expected: its review job has not come yet, and still may.
	Expected Process = "expected"
	// Nobody: its review job did not come in time, or the engine no longer knows it.
	Nobody Process = "nobody"
	// Answered: it has got its answer, or the subject went on without one.
	Answered Process = "answered"
)

// ExpectedFor is how long a process may take to reach its review task, once its dead letter exists and the engine is
// up.
const ExpectedFor = 60 * time.Second

// Process says, as far as is known now, whether a process waits for a decision on d.
func (s *Service) Process(d *journal.DeadLetter) Process {
	since, up := d.CreatedAt, s.engineUp()
	switch {
	case d.Delivery == journal.DeliveryNobody:
		return Nobody
	case d.Delivery == journal.DeliveryTaken, d.State != journal.DeadLetterOpen && d.Delivery != journal.DeliveryPending:
		return Answered
	case d.ReviewJobKey != 0:
		return Waiting
	case up.IsZero(): // no job can come
		return Expected
	}
	if up.After(since) {
		since = up
	}
	if s.now().Sub(since) < ExpectedFor {
		return Expected
	}
	return Nobody
}

// Code is the API's code of a refusal. The set is closed.
type Code string

// The codes. retry-failed-job.md and the contract name the first four.
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
	InvalidProtocol    Code = "invalid_protocol_number"
	InvalidState       Code = "invalid_state"
	InvalidSort        Code = "invalid_sort"
	InvalidQuery       Code = "invalid_query"
	InvalidCursor      Code = "invalid_cursor"
	InvalidReason      Code = "invalid_reason" // of a filter
	InvalidFingerprint Code = "invalid_fingerprint"
	InvalidIDs         Code = "invalid_ids"
	InvalidContext     Code = "invalid_context"
	InvalidSince       Code = "invalid_since"
	InvalidUntil       Code = "invalid_until"
	InvalidPeriod      Code = "invalid_period"
	InvalidFollowUp    Code = "invalid_follow_up"
	InvalidAssignee    Code = "invalid_assignee"

	// About causes and what people teach of them.

	CauseNotFound         Code = "cause_not_found"
	NothingTaught         Code = "nothing_taught"
	InvalidTeam           Code = "invalid_team"
	InvalidClassification Code = "invalid_classification"

	// About bulk runs and their commands.

	RunNotFound     Code = "run_not_found"
	InvalidRunState Code = "invalid_run_state" // the run's state does not allow the verb
	PlanOutdated    Code = "plan_outdated"     // the filter no longer matches what was planned
	NothingToDo     Code = "nothing_to_do"     // the filter matches nothing, or each match would be refused
	InvalidAction   Code = "invalid_action"
	InvalidPace     Code = "invalid_pace"
	InvalidPlan     Code = "invalid_plan"
	InvalidOutcome  Code = "invalid_outcome" // of a list of items
	InvalidFilter   Code = "invalid_filter"  // it matches more than a run may have
	NotRecordable   Code = "not_recordable"  // the journal can never hold the decision on that dead letter
)

// Refusal is why a list or a decision was refused. Nothing was changed.
type Refusal struct {
	Code Code
	// Message is one English line for the person: what was found, what was expected, what to do.
	Message string
	// State is the dead letter's; By set it at At. By is empty if no person did. All three are zero unless Code is
	// InvalidRetryState. By and At are also zero if the dead letter is open: then no process waits for it.
	By    string
	At    time.Time
	State journal.DeadLetterState
}

func (r *Refusal) Error() string { return r.Message }

// fields maps codes to the field of a filter or a command that they are about, by its name in the API.
var fields = map[Code]string{
	InvalidQuery: "q", InvalidPeriod: "until", InvalidPace: "perMinute", InvalidFollowUp: "followUp", InvalidSince: "since",
	InvalidUntil: "until", InvalidState: "state", InvalidSort: "sort", InvalidReason: "reason", ReasonRequired: "reason",
	ReasonTooLong: "reason", InvalidFingerprint: "fingerprint", InvalidIDs: "ids", InvalidContext: "context",
	InvalidAction: "action", InvalidWhen: "when",
}

// Field returns the field of a filter or a command that the refusal is about, by its name in the API; empty if there
// is none.
func (r *Refusal) Field() string { return fields[r.Code] }

// RefusalOf returns the refusal that err holds, or nil. With any other error, the outcome is unknown and asking again
// is safe (journal.ErrUnavailable), or the journal can never hold the decision (journal.ErrInvalid).
func RefusalOf(err error) *Refusal {
	r, _ := errors.AsType[*Refusal](err)
	return r
}

func refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

var (
	errNotFound      = refuse(JobNotFound, "there is no dead letter of this id; the list has their ids")
	errRunNotFound   = refuse(RunNotFound, "there is no bulk run of this id; the list has their ids")
	errCauseNotFound = refuse(CauseNotFound,
		"no failure had this cause; GET /api/v1/causes and `retry-worker causes list` have their ids")
	// errNotListed is why a dead letter cannot be closed as accepted (R33).
	errNotListed = refuse(InvalidRetryState, "the process could do nothing with the answer accepted: the header decisions "+
		"of its review task does not list it; discard it, or use a newer model")
	// ErrNoProtocol refuses a protocol number, without repeating it: it may be a person's.
	ErrNoProtocol = refuse(InvalidProtocol,
		"protocolNumber is no number of a protocol, expected at most 40 letters, digits, dots, slashes and hyphens")
)

func exceeded(d *journal.DeadLetter) *Refusal {
	return refuse(MaxRetriesExceeded,
		"%d of %d retries are made; set forceRetry for one more, and fresh with it for the whole ladder again",
		d.RetryCount, d.MaxRetries)
}

func missed(deadline time.Time) *Refusal {
	return refuse(DeadlineMissed, "it cannot be sent by its deadline %s; set forceRetry to send it all the same, or give a "+
		"new submissionDeadline", decision.Instant(deadline))
}

// settled refuses a decision on a dead letter that is no longer open.
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

// unattended refuses a decision that no process waits for, or none yet.
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

// MaxReason is how many characters a reason may have: the audit keeps all of them.
const MaxReason = 500

// CheckReason returns s without white space and invisible characters at its ends. The error is a *Refusal if nothing
// is left, or more than MaxReason characters are.
func CheckReason(s string) (string, error) {
	s = strings.TrimFunc(strings.ToValidUTF8(s, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || text.Hidden(r) || r == utf8.RuneError
	})
	switch {
	case s == "":
		return "", refuse(ReasonRequired, "a reason is required; say in a few words why")
	case utf8.RuneCountInString(s) > MaxReason:
		return "", refuse(ReasonTooLong, "the reason has more than %d characters; say it in fewer", MaxReason)
	}
	return s, nil
}
