package journal

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
)

// Subject names what fails and is retried: a claim, a message or a job.
type Subject struct{ Tenant, Policy, ID string }

// OutboxKey returns the key by which a subject's messages stay in order.
func (s *Subject) OutboxKey() string { return s.Tenant + "/" + s.Policy + "/" + s.ID }

// DefaultTenant is the engine's name for the only tenant of a cluster without multi-tenancy.
const DefaultTenant = "<default>"

// Analysis is a failure to decide on, with the job that asks.
type Analysis struct {
	Subject Subject
	// JobKey, ElementInstanceKey and ProcessInstanceKey are the engine's; they start over when its data is wiped.
	JobKey, ElementInstanceKey, ProcessInstanceKey int64
	// Rule is the business rule that the job's type belongs to.
	Rule    decision.BusinessRule
	Policy  *decision.Policy
	Failure *decision.Failure
	// Error is the failure's text with nothing personal in it.
	Error string
	// LockedUntil tells the deliveries of one job apart: until when the engine locks it, in milliseconds by the
	// engine's clock; 0 where it does not say.
	LockedUntil int64
	// ReceivedAt is when the job came.
	ReceivedAt time.Time
	// identity and cause are set by Analyze.
	identity Identity
	cause    *Fingerprint
}

// Attempt is one recorded decision: RetryAttempt of RN-BIL-005 §12.2 and the audit record of its §7.1. Its record's
// body is its JSON without what follows from the rest (keptAttempt). It never changes; a re-based decision is a new
// revision.
type Attempt struct {
	// Record is its number among all records, from 1 without a gap.
	Record int64 `json:"-"`
	// At is when it was recorded.
	At time.Time `json:"-"`
	// Number is its number among the subject's attempts, from 1; a revision keeps it.
	Number int64 `json:"n"`
	// Revision counts how often the decision was re-based.
	Revision int64 `json:"rev,omitempty"`
	// Episode is the episode's number, from 1. Ends is how the attempt ends the episode before, if it begins one.
	Episode int64 `json:"ep"`
	Ends    State `json:"ends,omitempty"`

	Identity           Identity              `json:"id"`
	JobKey             int64                 `json:"job"`
	ElementInstanceKey int64                 `json:"el"`
	ProcessInstanceKey int64                 `json:"proc"`
	LockedUntil        int64                 `json:"until,omitempty"`
	Rule               decision.BusinessRule `json:"rule"`
	// Error is the failure's text with nothing personal in it, Fingerprint its cause (Fingerprint.ID).
	Error       string `json:"err,omitempty"`
	Fingerprint string `json:"cause,omitempty"`
	// AnalysedCount is the retryCount that was decided on, GivenCount the one that the job brought; -1 for none.
	AnalysedCount int64 `json:"-"`
	GivenCount    int64 `json:"-"`
	// ReceivedAt is when the job came, in milliseconds: Took before At.
	ReceivedAt time.Time `json:"-"`
	// Took is how long the analysis took, in microseconds.
	Took time.Duration `json:"took"`
	// DeadLetter is the id of the dead letter that it created; empty if a retry follows.
	DeadLetter string `json:"letter,omitempty"`
	// Context of the claim, with nothing personal in it.
	Context decision.Context `json:"context,omitempty"`
	// Deadline is the claim's own (R29); the zero time for none.
	Deadline time.Time `json:"deadline,omitzero"`
	// Chance is the learnt probability that a retry succeeds; 0 where too little is known.
	Chance float64 `json:"-"`
	// Destination is the claim's, Tells what the failure says about it, RetryAfter how long it asks to wait.
	Destination string            `json:"dest,omitempty"`
	Tells       destination.Tells `json:"tells,omitempty"`
	RetryAfter  time.Duration     `json:"after,omitempty"`
	// Sent is the claim that failed, if a gate let it go as a canary or in a ramp.
	Sent SentJob `json:"sent,omitzero"`

	decision.Decision
}

// State is the state of an episode. The set is closed.
type State string

// The states, with the business rules' words in brackets. A scheduled episode whose time has come is Due.
const (
	Scheduled    State = "scheduled"    // a retry lies ahead (DELAYED)
	Dead         State = "dead"         // given up, a person must act (FAILED, "falha")
	Reprocessing State = "reprocessing" // a person sent it again
	Recovered    State = "recovered"    // a retry succeeded (COMPLETED)
	Discarded    State = "discarded"    // a person let it go
	Accepted     State = "accepted"     // the other side had the claim already (R33)
	Superseded   State = "superseded"   // another episode of the subject took its place
	Abandoned    State = "abandoned"    // nothing was heard for longer than the policy's total limit
	Expired      State = "expired"      // nothing was heard for the whole retention
)

// Open reports whether the subject's next failure can belong to an episode in this state. Dead is open until it is
// settled.
func (s State) Open() bool { return s == Scheduled || s == Dead || s == Reprocessing }

// Episode holds a subject's attempts from a first failure to an end.
type Episode struct {
	// Number is its number among the subject's, from 1; 0 where the subject has none.
	Number int64 `json:"n,omitempty"`
	State  State `json:"state,omitempty"`
	// ProcessInstanceKey is that of the latest process.
	ProcessInstanceKey int64 `json:"proc"`
	// Retries is how many are made once the last decision is carried out (R12).
	Retries int64 `json:"count,omitempty"`
	// Scheduled is how many retries were scheduled in it, including those made before its first analysis: a journal
	// that began late must count them. The episode has retries if it is above 0 (R19).
	Scheduled int64 `json:"sched,omitempty"`
	// Presumed counts its failures that were presumed permanent (R25).
	Presumed int64 `json:"presumed,omitempty"`
	// FirstFailure starts the total limit (R23). OpenedAt and ClosedAt are the journal's instants, only for display.
	FirstFailure time.Time `json:"failed,omitzero"`
	OpenedAt     time.Time `json:"-"`
	ClosedAt     time.Time `json:"-"`
	// NextRetryTime is the last decision's; zero where no retry is scheduled.
	NextRetryTime time.Time `json:"next,omitzero"`
	// Retried reports whether a retry was scheduled since it began, or since a person sent it again.
	Retried bool `json:"retried,omitempty"`
	// DeadLetter is the id of the open one; empty where there is none.
	DeadLetter string `json:"letter,omitempty"`
	// Counted reports whether it has ended or died, and so counts as closed (R19).
	Counted bool `json:"counted,omitempty"`
}

// DeadLetterState is the state of a dead letter. The set is closed.
type DeadLetterState string

// The states of the contract, and superseded.
const (
	DeadLetterOpen         DeadLetterState = "open"
	DeadLetterReprocessing DeadLetterState = "reprocessing"
	DeadLetterDiscarded    DeadLetterState = "discarded"
	DeadLetterAccepted     DeadLetterState = "accepted"
	DeadLetterRecovered    DeadLetterState = "recovered"
	DeadLetterSuperseded   DeadLetterState = "superseded"
)

// DeadLetterStates lists every state, for metrics that start at 0.
func DeadLetterStates() []DeadLetterState {
	return []DeadLetterState{DeadLetterOpen, DeadLetterReprocessing, DeadLetterDiscarded, DeadLetterAccepted,
		DeadLetterRecovered, DeadLetterSuperseded}
}

// DeadLetter is a failure that the worker gave up on and hands to people.
type DeadLetter struct {
	// Key is its subject's in the store. Fields with a column of their own are not in the row's JSON.
	Key     int64   `json:"-"`
	Subject Subject `json:"-"`
	// ID is a name-based UUID over the analysis's identity.
	ID    string          `json:"-"`
	State DeadLetterState `json:"-"`
	// Episode is the subject's, Record that of the attempt, outcome or gate's give-up that created it.
	Episode int64            `json:"episode"`
	Record  int64            `json:"-"`
	Outcome decision.Outcome `json:"outcome"`
	Reason  decision.Reason  `json:"-"`
	Team    decision.Team    `json:"-"`
	// Fingerprint is the cause (Fingerprint.ID); empty where it is unknown.
	Fingerprint string `json:"-"`
	// RetryCount and MaxRetries are the decision's.
	RetryCount int64 `json:"retryCount"`
	MaxRetries int64 `json:"maxRetries"`
	// PossiblyAccepted reports whether the other side may already have accepted it (R33).
	PossiblyAccepted bool `json:"perhaps,omitempty"`
	// Context is the claim's, Cents its value (decision.Context.Cents).
	Context decision.Context `json:"context,omitempty"`
	Cents   int64            `json:"-"`
	// Chance is the probability that a retry succeeds, in thousandths (ChanceOf), as it was foretold when it was made.
	Chance int64 `json:"-"`
	// Deadline is the claim's own (R29); the zero time for none.
	Deadline time.Time `json:"-"`
	// Destination is the one at whose gate the claim was given up; empty where it failed.
	Destination string `json:"destination,omitempty"`
	// ProcessInstanceKey is the failed process's.
	ProcessInstanceKey int64 `json:"processInstanceKey,string"`
	// FirstFailure is its episode's.
	FirstFailure time.Time `json:"firstFailure,omitzero"`
	CreatedAt    time.Time `json:"-"`
	ChangedAt    time.Time `json:"changedAt,omitzero"`
	// ReviewJobKey is the job by which the process waits for a review; 0 where none was seen.
	ReviewJobKey int64 `json:"reviewJobKey,string,omitempty"`
	// ReviewProcess is that job's process instance, if it is not ProcessInstanceKey.
	ReviewProcess int64 `json:"reviewProcess,string,omitempty"`
	// Accepts reports whether that process understands the answer "accepted" (its task's header decisions).
	Accepts bool `json:"accepts,omitempty"`
	// Review is the decision on it, Delivery whether the process took the answer.
	Review   ReviewNote `json:"review,omitzero"`
	Delivery Delivery   `json:"delivery,omitempty"`
	// Answer is the record of the answer on its way to the process (Answer.Record); 0 for none.
	Answer int64 `json:"answer,omitempty"`
	// Run is the bulk run that decided; empty if a person decided on this one alone.
	Run string `json:"bulkRun,omitempty"`
	// Assigned is what the verb Assign set, Later what RetryLater or DiscardLater did, while it is open.
	Assigned Assignment `json:"assigned,omitzero"`
	Later    Later      `json:"later,omitzero"`
}

// Delivery is the state of the answer to the process that waits for a review. The set is closed.
type Delivery string

// The deliveries.
const (
	DeliveryNone    Delivery = ""        // nothing was decided
	DeliveryPending Delivery = "pending" // the answer is on its way to the process
	DeliveryTaken   Delivery = "taken"   // the process took the answer
	DeliveryNobody  Delivery = "nobody"  // no process waits for an answer
)

// ReviewNote is what a person decided on a dead letter. Its zero value is nothing.
type ReviewNote struct {
	// Discard discards it, Accepted closes it because the other side has it already; otherwise it was sent again.
	Discard  bool        `json:"discard,omitempty"`
	Accepted *Acceptance `json:"accepted,omitempty"`
	Force    bool        `json:"forceRetry,omitempty"`
	Fresh    bool        `json:"fresh,omitempty"`
	// Reason and By are a person's words, redacted, and name.
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	At     time.Time `json:"at,omitzero"`
	// NextRetryTime is when it is sent again, Deadline its new deadline; zero for none.
	NextRetryTime time.Time `json:"nextRetryTime,omitzero"`
	Deadline      time.Time `json:"submissionDeadline,omitzero"`
}

// EntryKind is the kind of a record. The set is closed.
type EntryKind string

// The kinds.
const (
	AttemptEntry     EntryKind = "attempt"
	RejectionEntry   EntryKind = "rejection"
	OutcomeEntry     EntryKind = "outcome"
	ReviewEntry      EntryKind = "review"
	DeliveryEntry    EntryKind = "delivery"
	PurgeEntry       EntryKind = "purge"
	BulkEntry        EntryKind = "bulk"
	RebuildEntry     EntryKind = "rebuild"
	ErasureEntry     EntryKind = "erasure"
	GateEntry        EntryKind = "gate"        // about a claim at a destination's gate
	DestinationEntry EntryKind = "destination" // about the destination
	NoteEntry        EntryKind = "note"        // what a person said about a dead letter
	TeachingEntry    EntryKind = "teaching"    // what a person taught about a cause
)

// Entry is a record as it is stored and signed.
type Entry struct {
	Record int64
	// Key is the subject's key in the store; 0 for no subject.
	Key  int64 `json:"-"`
	Kind EntryKind
	// Subject is zero where a rejected job named none.
	Subject Subject
	At      time.Time
	// Body is a JSON object with nothing personal in it; an attempt's is a keptAttempt. It ends with a salt, so that
	// the digest of a removed record reveals nothing.
	Body string
	// Attempt is the decoded body of an attempt (Decode); nil for other kinds.
	Attempt *Attempt `json:"-"`
	// Forged is set for an Expunging by the store if it is not what was signed.
	Forged bool `json:"-"`
}

const (
	// saltField stands before the salt's saltLength characters: 96 random bits in base64.
	saltField  = `,"salt":"`
	saltLength = 16
)

// salted returns the body with a random salt.
func salted(body string) string {
	var b [saltLength * 6 / 8]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.TrimSuffix(body, "}") + saltField + base64.RawURLEncoding.EncodeToString(b[:]) + `"}`
}

// Told returns the entry's body for people: without the salt and the sums that the fold starts from.
func (e *Entry) Told() json.RawMessage {
	if e.Kind != PurgeEntry && e.Kind != ErasureEntry {
		body := e.Body
		if at := len(body) - len(saltField) - saltLength - 2; at > 0 && strings.HasPrefix(body[at:], saltField) {
			body = body[:at] + "}"
		}
		return json.RawMessage(body)
	}
	b, _ := BodyOf[expungeBody](e) // an edited one is shown empty
	if e.Kind == PurgeEntry {
		b.Gone = nil
	}
	return encoded(expungeBody{Reason: b.Reason, By: b.By, Through: b.Through, Confirmed: b.Confirmed, Gone: b.Gone})
}

// EntryOf returns the record of an attempt, without a salt.
func EntryOf(s Subject, a *Attempt) Entry {
	return Entry{Record: a.Record, Kind: AttemptEntry, Subject: s, At: a.At, Body: string(encoded(a.kept()))}
}

// keptAttempt is an Attempt as its record keeps it. A nil field has the value that follows from the others.
type keptAttempt struct {
	*Attempt
	Rule          *decision.BusinessRule        `json:"rule,omitempty"`
	GivenCount    *int64                        `json:"given,omitempty"`
	AnalysedAt    *time.Time                    `json:"at,omitempty"`
	NextRetryTime *time.Time                    `json:"next,omitempty"`
	MatchedText   *string                       `json:"text,omitempty"`
	Outcome       *decision.Outcome             `json:"out,omitempty"`
	Class         *decision.ErrorClassification `json:"class,omitempty"`
	Reason        *decision.Reason              `json:"why,omitempty"`
	RetryReason   *string                       `json:"says,omitempty"`
	FirstFailure  *time.Time                    `json:"first,omitempty"`
	DeadLetter    *string                       `json:"letter,omitempty"`
	// Backoff holds Delay and Raw, and a 1 if AtMaximum.
	Backoff []int64 `json:"backoff,omitempty"`
}

func (a *Attempt) kept() keptAttempt {
	k := keptAttempt{Attempt: a}
	if b := &a.Backoff; *b != (decision.Backoff{}) {
		if k.Backoff = []int64{int64(b.Delay), int64(b.Raw)}; b.AtMaximum {
			k.Backoff = append(k.Backoff, 1)
		}
	}
	k.derive(false)
	return k
}

// derive leaves out the fields that follow from the rest, or restores them.
func (k *keptAttempt) derive(restore bool) {
	a := k.Attempt
	derive(restore, &k.Rule, &a.Rule, decision.RNBIL005)
	derive(restore, &k.Outcome, &a.Outcome, decision.Retry)
	derive(restore, &k.Class, &a.ErrorClassification, decision.Transient)
	if restore {
		a.AnalysedCount, a.ReceivedAt = analysedCount(&a.Decision), a.At.Add(-a.Took).Truncate(time.Millisecond)
	}
	derive(restore, &k.GivenCount, &a.GivenCount, a.AnalysedCount)
	derive(restore, &k.AnalysedAt, &a.AnalysedAt, a.At.Truncate(time.Second))
	var next time.Time
	if a.ShouldRetry() {
		next = a.AnalysedAt.Add(a.Backoff.Delay)
	}
	derive(restore, &k.NextRetryTime, &a.NextRetryTime, next)
	derive(restore, &k.MatchedText, &a.MatchedText, a.MatchedRule)
	derive(restore, &k.Reason, &a.Reason, decision.Reason(a.MatchedRule))
	derive(restore, &k.RetryReason, &a.RetryReason, a.Sentence())
	derive(restore, &k.FirstFailure, &a.FirstFailure, a.AnalysedAt)
	derive(restore, &k.DeadLetter, &a.DeadLetter, a.deadLetterID())
}

// derive sets kept to value unless that is what follows from the rest, or restores value.
func derive[T comparable](restore bool, kept **T, value *T, follows T) {
	switch {
	case restore:
		*value = *cmp.Or(*kept, &follows)
	case *value != follows:
		*kept = value
	}
}

// Decode sets the Attempt of an attempt's record.
func (e *Entry) Decode() error {
	if e.Kind != AttemptEntry {
		return nil
	}
	a := &Attempt{}
	k := keptAttempt{Attempt: a}
	if err := e.decode(&k); err != nil {
		return err
	}
	a.Record, a.At, a.Decision.Policy, a.Decision.SubjectID = e.Record, e.At, e.Subject.Policy, e.Subject.ID
	if b := k.Backoff; len(b) > 1 {
		a.Backoff = decision.Backoff{Delay: time.Duration(b[0]), Raw: time.Duration(b[1]), AtMaximum: len(b) > 2}
	}
	k.derive(true)
	e.Attempt = a
	return nil
}

// Message is one row of the outbox.
type Message struct {
	// Sequence is its number in the outbox, from 1 without a gap (Changes.Seal).
	Sequence int64
	// ID lets consumers recognise a repetition.
	ID string
	// Queue says what it is for. Messages with the same Key stay in order. Subject is the key of its subject; 0 for
	// none.
	Queue, Key string
	Subject    int64
	// Type is an event's name in the contract; Body is what is sent.
	Type, Body string
	At         time.Time
	// Forged is set by the store if it is not what was signed; it must not be sent.
	Forged bool
}

// Held returns why the message must not be sent; nil if it may.
func (m *Message) Held() error {
	if !m.Forged {
		return nil
	}
	return fmt.Errorf("message %d of the queue %s is not what was signed, expected the one that its link vouches for: "+
		"`audit verify` says more, `journal rebuild` makes it anew", m.Sequence, m.Queue)
}

// BodyOf returns the entry's body as a T, such as GateBody. For attempts use Decode.
func BodyOf[T any](e *Entry) (body T, err error) {
	err = e.decode(&body)
	return body, err
}

func (e *Entry) decode(into any) error {
	if err := json.Unmarshal([]byte(e.Body), into); err != nil {
		return fmt.Errorf("%w record %d: %w", ErrUnreadable, e.Record, err)
	}
	return nil
}
