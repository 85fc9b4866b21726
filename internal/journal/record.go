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

// Subject is whose failures a history tells: a claim, a message, a job.
type Subject struct{ Tenant, Policy, ID string }

// OutboxKey returns the key of a subject's messages: they are kept in order.
func (s *Subject) OutboxKey() string { return s.Tenant + "/" + s.Policy + "/" + s.ID }

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
	// LockedUntil tells the deliveries of one job apart: when the engine gives it to another, in milliseconds by its own
	// clock; 0 where it does not say.
	LockedUntil int64
	// ReceivedAt is when the job came.
	ReceivedAt time.Time
	// identity, and cause of the failure before anything is decided.
	identity Identity
	cause    *Fingerprint
}

// Attempt is one recorded decision: RetryAttempt of RN-BIL-005 §12.2 and the audit record of its §7.1. Its JSON,
// with short names and without what follows from the rest (keptAttempt), is the body of its record. It is never changed; a decision that had
// to be re-based is followed by a revision of itself.
type Attempt struct {
	// Record numbers everything the ledger vouches for, from 1 and without a gap.
	Record int64 `json:"-"`
	// At is the instant of its record.
	At time.Time `json:"-"`
	// Number of the attempt among its subject's, from 1; a revision keeps it.
	Number int64 `json:"n"`
	// Revision is 0, and one more each time the decision was re-based.
	Revision int64 `json:"rev,omitempty"`
	// Episode of the subject, from 1. Ends is what became of the open one before it, where it begins another.
	Episode int64 `json:"ep"`
	Ends    State `json:"ends,omitempty"`

	Identity           Identity              `json:"id"`
	JobKey             int64                 `json:"job"`
	ElementInstanceKey int64                 `json:"el"`
	ProcessInstanceKey int64                 `json:"proc"`
	LockedUntil        int64                 `json:"until,omitempty"`
	Rule               decision.BusinessRule `json:"rule"`
	// Error is the failure's text with nothing personal in it, Fingerprint that of its cause (Fingerprint.ID).
	Error       string `json:"err,omitempty"`
	Fingerprint string `json:"cause,omitempty"`
	// AnalysedCount is the retryCount that was decided on; GivenCount the one that came, below 0 where none did.
	AnalysedCount int64 `json:"-"`
	GivenCount    int64 `json:"-"`
	// ReceivedAt is when the job came, in milliseconds: Took before its record.
	ReceivedAt time.Time `json:"-"`
	// Took is how long the analysis needed up to its record, in microseconds.
	Took time.Duration `json:"took"`
	// DeadLetter is the id of the dead letter that was born with it; empty where another retry follows.
	DeadLetter string `json:"letter,omitempty"`
	// Context of the claim, with nothing personal in it.
	Context decision.Context `json:"context,omitempty"`
	// Deadline is the claim's own (R29); the zero time for none.
	Deadline time.Time `json:"deadline,omitzero"`
	// Chance that a retry is accepted, by what was learnt; 0 where too little is known.
	Chance float64 `json:"-"`
	// Destination of the claim, what the failure tells of it, and how long that asks to wait; empty for nothing.
	Destination string            `json:"dest,omitempty"`
	Tells       destination.Tells `json:"tells,omitempty"`
	RetryAfter  time.Duration     `json:"after,omitempty"`
	// Sent is what failed, where a gate let it go as a canary or in a ramp.
	Sent SentJob `json:"sent,omitzero"`

	decision.Decision
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
	Accepted     State = "accepted"     // the other side had it already (R33)
	Superseded   State = "superseded"   // another episode of the subject took its place
	Abandoned    State = "abandoned"    // nothing was heard for longer than the policy's total limit
	Expired      State = "expired"      // nothing was heard for as long as records are kept
)

// Open reports whether a failure of the subject can belong to an episode in this state: dead, but not
// settled by anybody, is open.
func (s State) Open() bool { return s == Scheduled || s == Dead || s == Reprocessing }

// Episode is one stretch of a subject's history, from a first failure to its end.
type Episode struct {
	// Number among its subject's, from 1; 0 where the subject has none.
	Number int64 `json:"n,omitempty"`
	State  State `json:"state,omitempty"`
	// ProcessInstanceKey of who asked last.
	ProcessInstanceKey int64 `json:"proc"`
	// Retries made once the last decision is carried out (R12).
	Retries int64 `json:"count,omitempty"`
	// Scheduled is how many retries this worker scheduled in it, and how many had been made when it was first analysed:
	// a journal begun late must not lose them. The episode has retries where that is above 0 (R19).
	Scheduled int64 `json:"sched,omitempty"`
	// Presumed is how many of its failures were presumed permanent (R25).
	Presumed int64 `json:"presumed,omitempty"`
	// FirstFailure starts its clock (R23). OpenedAt and ClosedAt are the journal's own instants, which its story tells; no
	// decision needs them.
	FirstFailure time.Time `json:"failed,omitzero"`
	OpenedAt     time.Time `json:"-"`
	ClosedAt     time.Time `json:"-"`
	// NextRetryTime of the last decision; zero where none is scheduled.
	NextRetryTime time.Time `json:"next,omitzero"`
	// Retried tells that a retry was scheduled since it was begun, or sent again by a person.
	Retried bool `json:"retried,omitempty"`
	// DeadLetter is the id of the open one; empty where there is none.
	DeadLetter string `json:"letter,omitempty"`
	// Counted tells that it has ended, or died, and counts as closed (R19).
	Counted bool `json:"counted,omitempty"`
}

// DeadLetterState is what became of a dead letter. The set is closed.
type DeadLetterState string

// The states of the contract, and what a newer decision left behind.
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

// DeadLetter is what the worker gave up on and hands to people.
type DeadLetter struct {
	// ID is a name-based UUID over the analysis's identity. What has a column of its own is not in the row's JSON.
	ID    string          `json:"-"`
	State DeadLetterState `json:"-"`
	// Episode of the subject, and the Record of the attempt, or of the outcome, that it was born with.
	Episode int64            `json:"episode"`
	Record  int64            `json:"-"`
	Outcome decision.Outcome `json:"outcome"`
	Reason  decision.Reason  `json:"-"`
	Team    decision.Team    `json:"-"`
	// Fingerprint groups the dead letters of one cause (Fingerprint.ID); empty where nothing is known of it.
	Fingerprint string `json:"-"`
	// RetryCount and MaxRetries of the decision.
	RetryCount int64 `json:"retryCount"`
	MaxRetries int64 `json:"maxRetries"`
	// Context of the claim, and what it is worth (decision.Context.Cents).
	Context decision.Context `json:"context,omitempty"`
	Cents   int64            `json:"-"`
	// Chance that a retry is accepted, in thousandths (ChanceOf). It follows what is learnt, and is no record.
	Chance int64 `json:"-"`
	// Deadline is the claim's own (R29); the zero time for none.
	Deadline time.Time `json:"-"`
	// ProcessInstanceKey of the process that was told.
	ProcessInstanceKey int64 `json:"processInstanceKey,string"`
	// FirstFailure of its episode.
	FirstFailure time.Time `json:"firstFailure,omitzero"`
	CreatedAt    time.Time `json:"-"`
	ChangedAt    time.Time `json:"changedAt,omitzero"`
	// ReviewJobKey of the job by which the process waits for a review; 0 where none was seen.
	ReviewJobKey int64 `json:"reviewJobKey,string,omitempty"`
	// ReviewProcess is the process instance of that job, where it is another than ProcessInstanceKey.
	ReviewProcess int64 `json:"reviewProcess,string,omitempty"`
	// Accepts tells that this process knows what to do with what the other side has already (its task's header decisions).
	Accepts bool `json:"accepts,omitempty"`
	// Review that decided on it, and whether the process took the answer.
	Review   ReviewNote `json:"review,omitzero"`
	Delivery Delivery   `json:"delivery,omitempty"`
	// Answer is the Record of the answer that is on its way to the process (Answer.Record); 0 where none is.
	Answer int64 `json:"answer,omitempty"`
	// Run is the bulk run that Review belongs to; empty where a person decided on this one alone.
	Run string `json:"bulkRun,omitempty"`
	// Assigned is what a note of the verb Assign left, Later what RetryLater or DiscardLater did, while it is open.
	Assigned Assignment `json:"assigned,omitzero"`
	Later    Later      `json:"later,omitzero"`
}

// Delivery is what became of the answer to the process that waits for a review. The set is closed.
type Delivery string

// The deliveries.
const (
	// DeliveryNone: nothing was decided.
	DeliveryNone Delivery = ""
	// DeliveryPending: decided, and on its way to the process.
	DeliveryPending Delivery = "pending"
	// DeliveryTaken: the process took it.
	DeliveryTaken Delivery = "taken"
	// DeliveryNobody: no process waits for it.
	DeliveryNobody Delivery = "nobody"
)

// ReviewNote is what a person decided on a dead letter. Its zero value is nothing.
type ReviewNote struct {
	// Discard lets it go, Accepted closes what the other side has already; otherwise it was sent again.
	Discard  bool        `json:"discard,omitempty"`
	Accepted *Acceptance `json:"accepted,omitempty"`
	Force    bool        `json:"forceRetry,omitempty"`
	Fresh    bool        `json:"fresh,omitempty"`
	// Reason and By are a person's words, redacted, and name.
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	At     time.Time `json:"at,omitzero"`
	// NextRetryTime of what was sent again, and the Deadline that it was given anew; zero where it was not.
	NextRetryTime time.Time `json:"nextRetryTime,omitzero"`
	Deadline      time.Time `json:"submissionDeadline,omitzero"`
}

// EntryKind is what a record of the audit tells. The set is closed.
type EntryKind string

// The kinds.
const (
	AttemptEntry   EntryKind = "attempt"
	RejectionEntry EntryKind = "rejection"
	OutcomeEntry   EntryKind = "outcome"
	ReviewEntry    EntryKind = "review"
	DeliveryEntry  EntryKind = "delivery"
	PurgeEntry     EntryKind = "purge"
	BulkEntry      EntryKind = "bulk"
	RebuildEntry   EntryKind = "rebuild"
	ErasureEntry   EntryKind = "erasure"
	// GateEntry is of a claim that a destination's gate holds, DestinationEntry of the destination.
	GateEntry        EntryKind = "gate"
	DestinationEntry EntryKind = "destination"
	// NoteEntry is of what a person said of a dead letter.
	NoteEntry EntryKind = "note"
	// TeachingEntry is of a cause.
	TeachingEntry EntryKind = "teaching"
)

// Entry is a record of the audit as it is kept and signed.
type Entry struct {
	Record int64
	// Key of the subject in the store; 0 where it is of none.
	Key  int64 `json:"-"`
	Kind EntryKind
	// Subject is the zero value where a rejected job named none that can be told.
	Subject Subject
	At      time.Time
	// Body is a JSON object with nothing personal in it, as it is kept and signed. Of an attempt it is the Attempt. It
	// ends with a salt: once it is gone, the digest that stays tells nothing of it.
	Body string
}

const (
	// saltField begins the salt, which has saltLength characters: 96 random bits in base64.
	saltField  = `,"salt":"`
	saltLength = 16
)

// salted returns a body with a salt that nobody can guess.
func salted(body string) string {
	var b [saltLength * 6 / 8]byte
	_, _ = rand.Read(b[:]) // never fails
	return strings.TrimSuffix(body, "}") + saltField + base64.RawURLEncoding.EncodeToString(b[:]) + `"}`
}

// Told returns what people are told of an entry: its body, without the salt and what the fold starts from.
func (e *Entry) Told() json.RawMessage {
	if e.Kind != PurgeEntry && e.Kind != ErasureEntry {
		body := e.Body
		if at := len(body) - len(saltField) - saltLength - 2; at > 0 && strings.HasPrefix(body[at:], saltField) {
			body = body[:at] + "}"
		}
		return json.RawMessage(body)
	}
	b, _ := BodyOf[expungeBody](e) // one that somebody edited says nothing
	if e.Kind == PurgeEntry {
		b.Gone = nil
	}
	return encoded(expungeBody{Reason: b.Reason, By: b.By, Through: b.Through, Confirmed: b.Confirmed, Gone: b.Gone})
}

// EntryOf returns the record of an attempt, without a salt.
func EntryOf(s Subject, a *Attempt) Entry {
	return Entry{Record: a.Record, Kind: AttemptEntry, Subject: s, At: a.At, Body: string(encoded(a.kept()))}
}

// keptAttempt is an Attempt as its record keeps it: nil is what mostly follows from the rest.
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
	// Backoff is its Delay and its Raw, and 1 where it is AtMaximum.
	Backoff []int64 `json:"backoff,omitempty"`
}

func (a *Attempt) kept() keptAttempt {
	k := keptAttempt{Attempt: a}
	keep(&k.Rule, &a.Rule, decision.RNBIL005)
	keep(&k.GivenCount, &a.GivenCount, a.AnalysedCount)
	keep(&k.AnalysedAt, &a.AnalysedAt, a.At.Truncate(time.Second))
	keep(&k.NextRetryTime, &a.NextRetryTime, a.afterBackoff())
	keep(&k.MatchedText, &a.MatchedText, a.MatchedRule)
	keep(&k.Outcome, &a.Outcome, decision.Retry)
	keep(&k.Class, &a.ErrorClassification, decision.Transient)
	keep(&k.Reason, &a.Reason, decision.Reason(a.MatchedRule))
	keep(&k.RetryReason, &a.RetryReason, a.Sentence())
	keep(&k.FirstFailure, &a.FirstFailure, a.AnalysedAt)
	keep(&k.DeadLetter, &a.DeadLetter, a.deadLetterID())
	if b := &a.Backoff; *b != (decision.Backoff{}) {
		if k.Backoff = []int64{int64(b.Delay), int64(b.Raw)}; b.AtMaximum {
			k.Backoff = append(k.Backoff, 1)
		}
	}
	return k
}

// keep has k point to v where that is not what follows from the rest.
func keep[T comparable](k **T, v *T, follows T) {
	if *v != follows {
		*k = v
	}
}

// afterBackoff returns the NextRetryTime of an attempt that is retried, unless its destination is closed then.
func (a *Attempt) afterBackoff() time.Time {
	if !a.ShouldRetry() {
		return time.Time{}
	}
	return a.AnalysedAt.Add(a.Backoff.Delay)
}

// restore sets what was left out.
func (k *keptAttempt) restore() {
	a := k.Attempt
	a.Outcome = *cmp.Or(k.Outcome, new(decision.Retry))
	a.ErrorClassification = *cmp.Or(k.Class, new(decision.Transient))
	if b := k.Backoff; len(b) > 1 {
		a.Backoff = decision.Backoff{Delay: time.Duration(b[0]), Raw: time.Duration(b[1]), AtMaximum: len(b) > 2}
	}
	a.Rule = *cmp.Or(k.Rule, new(decision.RNBIL005))
	a.AnalysedCount, a.ReceivedAt = analysedCount(&a.Decision), a.At.Add(-a.Took).Truncate(time.Millisecond)
	a.GivenCount = *cmp.Or(k.GivenCount, &a.AnalysedCount)
	a.AnalysedAt = *cmp.Or(k.AnalysedAt, new(a.At.Truncate(time.Second)))
	a.NextRetryTime = *cmp.Or(k.NextRetryTime, new(a.afterBackoff()))
	a.MatchedText = *cmp.Or(k.MatchedText, &a.MatchedRule)
	a.Reason = *cmp.Or(k.Reason, new(decision.Reason(a.MatchedRule)))
	a.RetryReason = *cmp.Or(k.RetryReason, new(a.Sentence()))
	a.FirstFailure = *cmp.Or(k.FirstFailure, &a.AnalysedAt)
	a.DeadLetter = *cmp.Or(k.DeadLetter, new(a.deadLetterID()))
}

// Decode returns the record with its attempt read, where it is one and no error tells that it cannot be.
func (e *Entry) Decode() (Record, error) {
	if e.Kind != AttemptEntry {
		return Record{Subject: e.Subject, Entry: e}, nil
	}
	a := &Attempt{}
	k := keptAttempt{Attempt: a}
	if err := json.Unmarshal([]byte(e.Body), &k); err != nil {
		return Record{Subject: e.Subject, Entry: e}, fmt.Errorf("%w attempt %d: %w", ErrUnreadable, e.Record, err)
	}
	a.Record, a.At, a.Decision.Policy, a.Decision.SubjectID = e.Record, e.At, e.Subject.Policy, e.Subject.ID
	k.restore()
	return Record{Subject: e.Subject, Attempt: a}, nil
}

// Message is one row of the outbox: an event on its way to a destination.
type Message struct {
	// Sequence is its place in the outbox, from 1 and without a gap (Changes.Seal).
	Sequence int64
	// ID by which consumers tell a repetition.
	ID string
	// Queue is the destination, Key what is kept in order there, Subject the key of the subject that it is about; 0 for none.
	Queue, Key string
	Subject    int64
	// Type is the event's name in the contract; Body what is sent.
	Type, Body string
	At         time.Time
	// Forged tells that it is not what was signed: a store says so, and it must not be sent.
	Forged bool
}

// Held returns why the message must not be sent; nil where it may.
func (m *Message) Held() error {
	if !m.Forged {
		return nil
	}
	return fmt.Errorf("message %d of the queue %s is not what was signed, expected the one that its link vouches for: "+
		"`audit verify` says more, `journal rebuild` makes it anew", m.Sequence, m.Queue)
}

// BodyOf returns the entry's body as a T, such as GateBody. Of an attempt use Decode.
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
