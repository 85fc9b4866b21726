package journal

import (
	"errors"
	"fmt"
	"time"

	"retry-worker/internal/decision"
)

// Refusal is why something that a person asked for was refused. Nothing was changed.
type Refusal struct {
	Code Code
	// Message is one English line for the person: what was found, what was expected, what to do.
	Message string
	// State is the dead letter's; By set it at At. By is empty if no person did. All three are zero unless Code is
	// InvalidRetryState. By and At are also zero if the dead letter is open: then no process waits for it.
	By    string
	At    time.Time
	State DeadLetterState
}

// Code is the API's code of a refusal.
type Code string

// The codes of the journal's refusals. retry-failed-job.md and the contract name the first three.
const (
	JobNotFound        Code = "job_not_found"
	MaxRetriesExceeded Code = "max_retries_exceeded"
	InvalidRetryState  Code = "invalid_retry_state"
	DeadlineMissed     Code = "deadline_missed"
	NothingTaught      Code = "nothing_taught"
	RunNotFound        Code = "run_not_found"
	InvalidRunState    Code = "invalid_run_state" // the run's state does not allow the verb
	SubjectNotFound    Code = "subject_not_found"
	SubjectBusy        Code = "subject_busy" // it cannot be erased yet
)

func (r *Refusal) Error() string { return r.Message }

// Refuse returns a refusal with that code and message.
func Refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// RefusalOf returns the refusal that err holds, or nil. With any other error, the outcome is unknown and asking again
// is safe (ErrUnavailable), or the journal can never hold what was asked for (ErrInvalid).
func RefusalOf(err error) *Refusal {
	r, _ := errors.AsType[*Refusal](err)
	return r
}

// CodeOf returns the code of the refusal that err holds; empty if it holds none.
func CodeOf(err error) Code {
	if r := RefusalOf(err); r != nil {
		return r.Code
	}
	return ""
}

// Refusals that say all that there is to say.
var (
	ErrDeadLetterUnknown = Refuse(JobNotFound, "there is no dead letter of this id; the list has their ids")
	ErrBulkRunUnknown    = Refuse(RunNotFound, "there is no bulk run of this id; the list has their ids")
	// ErrReassigned refuses an assignment in place of one that is no longer there.
	ErrReassigned = Refuse(InvalidRetryState, "somebody took the dead letter, passed it on or gave it back meanwhile; look "+
		"at it again")
	// ErrNotListed is why a dead letter cannot be closed as accepted (R33).
	ErrNotListed = Refuse(InvalidRetryState, "the process could do nothing with the answer accepted: the header decisions "+
		"of its review task does not list it; discard it, or use a newer model")
)

// Exceeded refuses a retry beyond the limit.
func (d *DeadLetter) Exceeded() *Refusal {
	return Refuse(MaxRetriesExceeded,
		"%d of %d retries are made; set forceRetry for one more, and fresh with it for the whole ladder again",
		d.RetryCount, d.MaxRetries)
}

// Missed refuses a retry after the deadline.
func Missed(deadline time.Time) *Refusal {
	return Refuse(DeadlineMissed, "it cannot be sent by its deadline %s; set forceRetry to send it all the same, or give a "+
		"new submissionDeadline", decision.Instant(deadline))
}

// Unattended refuses a decision that no process waits for.
func (d *DeadLetter) Unattended() *Refusal {
	r := Refuse(InvalidRetryState, "no process waits for this dead letter, so nothing would carry a retry out; start the "+
		"process again for its subject, or discard it")
	r.State = d.State
	return r
}

// Decided refuses a decision on a dead letter that is no longer open.
func (d *DeadLetter) Decided() *Refusal {
	by, at := "", d.ChangedAt
	if d.State == DeadLetterReprocessing || d.State == DeadLetterDiscarded ||
		d.State == DeadLetterAccepted && d.Review.Accepted != nil {
		by = d.Review.By
		if !d.Review.At.IsZero() { // zero without a note
			at = d.Review.At
		}
	}
	return settled(d.State, at, by)
}

// settled refuses a decision on a dead letter on which somebody has decided. by is empty if no person did.
func settled(as DeadLetterState, at time.Time, by string) *Refusal {
	who := ""
	if by != "" {
		who = " by " + by
	}
	r := Refuse(InvalidRetryState, "the dead letter is %s since %s%s; only an open one can be decided on", as,
		decision.Instant(at), who)
	r.By, r.At, r.State = by, at, as
	return r
}
