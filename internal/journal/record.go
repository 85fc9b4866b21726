package journal

import (
	"time"

	"retry-worker/internal/decision"
)

// Subject is whose failures a history tells: a claim, a message, a job.
type Subject struct{ Tenant, Policy, ID string }

// DefaultTenant is the engine's own name for the one tenant of a cluster without multi-tenancy.
const DefaultTenant = "<default>"

// Analysis is one failure to be decided on: the job that asks and what it says.
type Analysis struct {
	Subject Subject
	// JobKey, ElementInstanceKey and ProcessInstanceKey are the engine's; they start over when its data is wiped.
	JobKey, ElementInstanceKey, ProcessInstanceKey int64
	// Rule is the document whose job type asks.
	Rule    decision.BusinessRule
	Policy  *decision.Policy
	Failure *decision.Failure
	// Error is the failure's text with nothing personal in it.
	Error string
	// ReceivedAt is when the job came.
	ReceivedAt time.Time
	// Identity, as IdentityOf gives it.
	Identity Identity
}

// Attempt is one recorded decision: RetryAttempt of RN-BIL-005 §12.2 and the audit record of its §7.1.
// It is never changed; a decision that had to be re-based is followed by a revision of itself.
type Attempt struct {
	// Record numbers everything the ledger vouches for, from 1 and without a gap.
	Record int64
	// Number of the attempt among its subject's, from 1; a revision keeps it.
	Number int64
	// Revision is 0, and one more each time the decision was re-based.
	Revision int64
	// Episode of the subject, from 1.
	Episode                                        int64
	Identity                                       Identity
	JobKey, ElementInstanceKey, ProcessInstanceKey int64
	Rule                                           decision.BusinessRule
	// Error is the failure's text with nothing personal in it.
	Error string
	// AnalysedCount is the retryCount that was decided on; GivenCount the one that came, below 0 where none did.
	AnalysedCount, GivenCount int64
	// ReceivedAt is when the job came, in milliseconds.
	ReceivedAt time.Time
	// Took is how long the analysis needed up to its record, in microseconds.
	Took time.Duration
	// DeadLetter is the id of the dead letter that was born with it; empty where another retry follows.
	DeadLetter string
	Decision   decision.Decision
}

// State of an episode. The set is closed.
type State string

// The states; the documents' words in brackets. A scheduled episode whose time has come is due (PENDING),
// which is derived and not stored.
const (
	Scheduled    State = "scheduled"    // a retry lies ahead (DELAYED)
	Dead         State = "dead"         // given up, a person must act (FAILED, "falha")
	Reprocessing State = "reprocessing" // a person sent it again
	Recovered    State = "recovered"    // a retry succeeded (COMPLETED)
	Discarded    State = "discarded"    // a person let it go
	Superseded   State = "superseded"   // another episode of the subject took its place
	Abandoned    State = "abandoned"    // nothing was heard for longer than the policy's total limit
)

// Open tells whether a failure of the subject can belong to an episode in this state: dead, but not
// settled by anybody, is open.
func (s State) Open() bool { return s == Scheduled || s == Dead || s == Reprocessing }

// Episode is one stretch of a subject's history, from a first failure to its end.
type Episode struct {
	// Number among its subject's, from 1; 0 where the subject has none.
	Number int64
	State  State
	// ProcessInstanceKey of who asked last.
	ProcessInstanceKey int64
	// Retries made once the last decision is carried out (R12).
	Retries int64
	// Scheduled is how many retries this worker scheduled in it, and how many had been made when it was first analysed:
	// a journal begun late must not lose them. The episode has retries where that is above 0 (R19).
	Scheduled int64
	// Presumed is how many of its failures were presumed permanent (R25).
	Presumed int64
	// FirstFailure starts its clock (R23); OpenedAt and ClosedAt are the journal's own instants.
	FirstFailure, OpenedAt, ClosedAt time.Time
	// NextRetryTime of the last decision; zero where none is scheduled.
	NextRetryTime time.Time
	// DeadLetter is the id of the open one; empty where there is none.
	DeadLetter string
}

// DeadLetterState is what became of a dead letter. The set is closed.
type DeadLetterState string

// The states of the contract, and what a newer decision left behind.
const (
	DeadLetterOpen         DeadLetterState = "open"
	DeadLetterReprocessing DeadLetterState = "reprocessing"
	DeadLetterDiscarded    DeadLetterState = "discarded"
	DeadLetterRecovered    DeadLetterState = "recovered"
	DeadLetterSuperseded   DeadLetterState = "superseded"
)

// DeadLetterStates lists every state, for metrics that start at 0.
func DeadLetterStates() []DeadLetterState {
	return []DeadLetterState{DeadLetterOpen, DeadLetterReprocessing, DeadLetterDiscarded, DeadLetterRecovered, DeadLetterSuperseded}
}

// DeadLetter is what the worker gave up on and hands to people.
type DeadLetter struct {
	// ID is a name-based UUID over the analysis's identity.
	ID    string
	State DeadLetterState
	// Episode of the subject, and the Record of the attempt, or of the outcome, that it was born with.
	Episode, Record int64
	Outcome         decision.Outcome
	Reason          decision.Reason
	Team            decision.Team
	// RetryCount and MaxRetries of the decision.
	RetryCount, MaxRetries int64
	// ProcessInstanceKey of the process that was told.
	ProcessInstanceKey   int64
	CreatedAt, ChangedAt time.Time
	// ReviewJobKey of the job by which the process waits for a review, and when it was last seen; 0 where none was.
	ReviewJobKey int64
	ReviewSeen   time.Time
	// Review that decided on it, and whether the process took the answer.
	Review   ReviewNote
	Delivery Delivery
	// Answer is the Record of the answer that is on its way to the process (Answer.Record); 0 where none is.
	Answer int64
	// Run is the bulk run that Review belongs to; empty where a person decided on this one alone.
	Run string
}

// EntryKind is what an entry of the audit tells that is no attempt. The set is closed.
type EntryKind string

// The kinds of entries.
const (
	RejectionEntry EntryKind = "rejection"
	OutcomeEntry   EntryKind = "outcome"
	ReviewEntry    EntryKind = "review"
	DeliveryEntry  EntryKind = "delivery"
	PurgeEntry     EntryKind = "purge"
	BulkEntry      EntryKind = "bulk"
)

// Entry is a record of the audit that is no attempt.
type Entry struct {
	Record int64
	Kind   EntryKind
	// Subject is the zero value where a rejected job named none that can be told.
	Subject Subject
	At      time.Time
	// Body is a JSON object with nothing personal in it.
	Body string
}

// Message is one row of the outbox: an event on its way to a destination.
type Message struct {
	// Sequence is its place in the outbox, from 1; the store gives it.
	Sequence int64
	// ID by which consumers tell a repetition.
	ID string
	// Queue is the destination, Key what is kept in order there.
	Queue, Key string
	// Type is the event's name in the contract; Body what is sent.
	Type, Body string
	At         time.Time
}
