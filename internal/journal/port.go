package journal

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"retry-worker/internal/decision"
)

// Store keeps the journal. Its errors hold a *StoreError. Its methods are safe for concurrent use; several processes
// may share a store that is a server.
type Store interface {
	// Transact runs one transaction: it locks the ledger's head, so that all writers take turns, loads the history of
	// each lookup, and saves the changes that decide returns, or nothing if they are nil. histories[i] belongs to
	// lookups[i]; lookups name each subject once. decide is pure and may be called again.
	Transact(ctx context.Context, lookups []Lookup, decide func(head Head, histories []History) *Changes) error
	// IdentityKey returns the journal's key, which is made with the empty journal and never changes.
	IdentityKey() IdentityKey
	// Holds reports whether the ledger has that link. It locks the head first, so that no commit is under way.
	Holds(ctx context.Context, l *Link) (bool, error)
	// Probe writes something without meaning, and fails if the store cannot be written.
	Probe(ctx context.Context) error
}

// Reader reads a Store while others write. Its errors hold a *StoreError. Its methods are safe for concurrent use. With
// Transact it is the RetryAttemptRepository of RN-BIL-005 §12.5: Story finds by claim, Transact saves and counts
// (History.Attempts), PendingRetries finds pending retries.
type Reader interface {
	// Story returns everything that is remembered of a subject, and reports whether that is anything.
	Story(ctx context.Context, s Subject) (Story, bool, error)
	// PendingRetries returns the subjects whose retry lies ahead or is due, with keys above after, at most limit. Its
	// cost grows with the number of subjects.
	PendingRetries(ctx context.Context, after int64, limit int) ([]KeyedState, error)
	// Named returns the subjects whose id contains part, as given or in capitals, the newest first, at most limit. Its
	// cost grows with the number of subjects.
	Named(ctx context.Context, part string, limit int) ([]Subject, error)
	// Held calls take for the states of all destinations and of all subjects with held claims, and returns the ledger's
	// head as of then. A state that cannot be read has Unreadable set. If Held fails, it may have called take for some.
	Held(ctx context.Context, take func(*KeyedState)) (Head, error)
	// Admissions returns how many claims passed at once, from the minute since on.
	Admissions(ctx context.Context, since int64) ([]Admission, error)
	// Head returns the ledger's end.
	Head(ctx context.Context) (Head, error)
	// Records returns the decoded records that the filter lets through, with numbers above after, in order, at most limit.
	// A negative after also returns records that should have been purged. With an ErrUnreadable they end with the
	// unreadable record, undecoded.
	Records(ctx context.Context, f RecordFilter, after int64, limit int) ([]Entry, error)
	// Sums returns the sums of the slots from from on, without those of causes.
	Sums(ctx context.Context, from int64) ([]Sum, error)
	// Cases returns the cases of those weeks (WeekOf), those with the most closed claims first, then by cause and
	// destination, at most limit.
	Cases(ctx context.Context, weeks []int64, limit int) ([]Cases, error)
	// Causes returns the causes that the filter lets through, those with the most failures first, then by id, at most
	// limit. They follow after, if that is not nil.
	Causes(ctx context.Context, f CauseFilter, after *Fingerprint, limit int) ([]Cause, error)
}

// Admission counts the claims that passed a destination's gate without waiting in one minute.
type Admission struct {
	Destination string
	// Minute is in minutes since 1970.
	Minute int64
	Count  int
}

// AdmissionsKept is how many minutes admissions are kept: longer than any threshold looks back.
const AdmissionsKept = 120

// RecordFilter chooses records. Its zero value lets all through.
type RecordFilter struct {
	// Subject is whose records are wanted; zero for all.
	Subject Subject
	// Since and Until bound the record's instant (AnalysedAt, At): Since is included, Until is not; the zero time is no
	// bound. Until may miss records of a clock that was more than a day slow.
	Since, Until time.Time
}

// CauseFilter chooses causes. Its zero value lets all through.
type CauseFilter struct {
	Policy string
	// IDs are those wanted (Fingerprint.ID); none for all.
	IDs []string
	// Taught lets through only those about which a person taught something.
	Taught bool
	// Began lets through those that are new, or back, since then; Told those announced then or later. The zero time
	// lets all through.
	Began, Told time.Time
}

// Outbox reads the messages on their way, which Journal.Published removes, and keeps what replicas share. Its errors
// hold a *StoreError. Its methods are safe for concurrent use.
type Outbox interface {
	// Pending returns the messages of a queue with sequences above after, in order, at most limit.
	Pending(ctx context.Context, queue string, after int64, limit int) ([]Message, error)
	// Backlog returns how many messages wait, by queue.
	Backlog(ctx context.Context) (map[string]int64, error)
	// Lease takes or renews the lease of that name for holder, by the store's clock, and reports whether holder has it.
	// A lease that ends more than twice span ahead is of a wrong clock, and counts as ended. A span of 0 gives it back.
	Lease(ctx context.Context, name, holder string, span time.Duration) (bool, error)
	// AddAdmissions adds to the admissions, and removes those older than AdmissionsKept. Like leases they are no part
	// of the audit.
	AddAdmissions(ctx context.Context, all []Admission) error
}

// Lookup says what to load into a History.
type Lookup struct {
	Subject Subject
	// Identity asks for the attempt with that identity; zero for none.
	Identity Identity
	// DeadLetter asks for one by its id; empty for none.
	DeadLetter string
	// Run asks for a bulk run by its id, even without a subject; empty for none. Item asks for its dead letter of that
	// number; 0 for none.
	Run  string
	Item int64
}

// History is what is remembered of a subject. The fold keeps it up to date. Its zero value is nothing.
type History struct {
	KeyedState
	// Last is the latest attempt, in its latest revision; nil where there is none.
	Last *Attempt
	// Same is the attempt with the identity that was asked for, in its latest revision; nil where there is none.
	Same *Attempt
	// SameAnswered reports whether the engine took an answer to Same. SameUntil is the latest known LockedUntil of the
	// deliveries that were answered.
	SameAnswered bool
	SameUntil    int64
	// SameDeadLetter is the state of Same's dead letter; empty if it has none.
	SameDeadLetter DeadLetterState
	// DeadLetter is the episode's, or the one that was asked for; nil where there is none.
	DeadLetter *DeadLetter
	// Run is the bulk run that was asked for, with Counts if no subject was. Item is its item that was asked for. Both
	// may be nil.
	Run  *BulkRun
	Item *BulkItem
	// Teaching is what was taught about the failure's cause; nil for nothing.
	Teaching *Teaching
	// The fold's own: the episodes before the latest, and the dead letters by their ids.
	ended   []Episode
	letters map[string]*DeadLetter
}

// Story is what is remembered of one subject, in the order it happened.
type Story struct {
	Subject  Subject
	Episodes []Episode
	// Attempts includes all revisions.
	Attempts    []Attempt
	DeadLetters []DeadLetter
	// Entries are the records that are no attempts, such as rejections, outcomes and reviews.
	Entries []Entry
	// Held are its processes that wait at a gate.
	Held []HeldJob
}

// Context returns the claim's latest known context.
func (s *Story) Context() decision.Context {
	switch {
	case len(s.Held) > 0:
		return s.Held[len(s.Held)-1].Context
	case len(s.Attempts) > 0:
		return s.Attempts[len(s.Attempts)-1].Context
	case len(s.DeadLetters) > 0:
		return s.DeadLetters[len(s.DeadLetters)-1].Context
	}
	return nil
}

// SubjectState is what the next decision needs of a subject's records: its row in a store.
type SubjectState struct {
	// Attempts is the last attempt's number; revisions do not count.
	Attempts int64 `json:"n,omitempty"`
	// LastRecord is the record of the latest attempt, in its latest revision; 0 where there is none.
	LastRecord int64 `json:"last,omitempty"`
	// Seen are the beginnings of the latest attempts' identities (MayBe).
	Seen string `json:"seen,omitempty"`
	// Episode is the latest.
	Episode Episode `json:"ep,omitzero"`
	// PossiblyAccepted reports whether a failure left open whether the portal took the claim, still unsettled (R33).
	PossiblyAccepted bool `json:"perhaps,omitempty"`
	// Held are the processes that wait at a gate. Sent is the claim that a gate let through last, if its outcome is
	// wanted.
	Held []HeldJob `json:"held,omitempty"`
	Sent *SentJob  `json:"sent,omitempty"`
	// Departed are the jobs that a gate let go or gave up, the latest last.
	Departed []DepartedJob `json:"departed,omitempty"`
	// Concluded is the job that reported its latest outcome.
	Concluded *DeliveredJob `json:"concluded,omitempty"`
	// Destination is set if the subject is a destination (DestinationSubject).
	Destination *DestinationState `json:"destination,omitempty"`
	// Taught is what a person taught, if the subject is a cause (CauseSubject).
	Taught *Teaching `json:"taught,omitempty"`
}

// destination returns the name of the destination that the subject is or waits for; empty for none.
func (s *KeyedState) destination() string {
	switch {
	case s.Destination != nil:
		return s.Subject.ID
	case len(s.Held) > 0:
		return s.Held[0].Destination
	}
	return ""
}

// Head is the ledger's end: what the next link continues.
type Head struct {
	// Link, Record and Message are the last numbers, Subject is the last key; 0 in an empty journal.
	Link, Record, Subject, Message int64
	// Hash is the last link's.
	Hash Digest
	// At is when the last link was written, by the writer's clock.
	At time.Time
}

// ErrNoHead is the error of a store that lost its head's row.
var ErrNoHead = errors.New("found no row in ledger_head, expected one: restore the database from a backup")

// String returns the head as `audit verify --head` takes it: the link's number and hash. Kept outside the database, in
// a log or on paper, it reveals a ledger that was cut or rewritten.
func (h Head) String() string { return strconv.FormatInt(h.Link, 10) + ":" + h.Hash.String() }

// MarshalText implements encoding.TextMarshaler by String.
func (h Head) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// ParseHead parses a head as String writes it. Its error says what was found and expected.
func ParseHead(s string) (Head, error) {
	number, hash, _ := strings.Cut(strings.TrimSpace(s), ":")
	link, err := strconv.ParseUint(number, 10, 63)
	sum, notHex := hex.DecodeString(hash)
	h := Head{Link: int64(link)}
	if err != nil || link == 0 || notHex != nil || copy(h.Hash[:], sum) != len(sum) || len(sum) != len(h.Hash) {
		return Head{}, fmt.Errorf("%q is no head, expected LINK:HASH as a log line has it: a number from 1 on, "+
			"a colon, 64 hexadecimal digits", s)
	}
	return h, nil
}

// Changes is what one transaction saves, as a whole or not at all.
type Changes struct {
	// Link is appended to the ledger. Records are numbered from the head's on.
	Link    Link
	Records []Entry
	// Subjects are new or changed. New keys follow the head's.
	Subjects []KeyedState
	// DeadLetters are new or changed.
	DeadLetters []DeadLetter
	// Runs are new or changed bulk runs, without Counts. NewItems are the new ones' items.
	Runs     []BulkRun
	NewItems []BulkItem
	// Items are changed items, by Run and Record.
	Items []BulkItem
	// Sums are added to the stored ones, Fingerprints merged into them (Fingerprint.Add).
	Sums         []Sum
	Fingerprints []Fingerprint
	// Outbox are new messages, numbered from the head's on (Seal).
	Outbox []Message
	// Published are the sequences of messages to remove from the outbox.
	Published []int64
	// Expunged is what to remove; nil for nothing.
	Expunged *Expunged
}

// KeyedState is the state of a subject and its key in the store.
type KeyedState struct {
	Key     int64 // 0 if it is new
	Subject Subject
	SubjectState
	// Unreadable is why the state could not be read; Reader.Held sets it.
	Unreadable error
}

// Run is a range of record numbers, both ends included.
type Run struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Until is the LockedUntil of the delivery that was answered, if it is later than the record's. Such a run has one
	// record.
	Until int64 `json:"until,omitempty"`
}

// Kind is what a store's error means to the caller. The set is closed.
type Kind int

// The kinds. Unavailable: nothing was done, and it may work later. Ambiguous: it may have been done; ask the ledger
// (Store.Holds). Invalid: the changes can never be saved.
const (
	Unavailable Kind = iota
	Ambiguous
	Invalid
)

// StoreError is an error of a store. Its text is one line with nothing personal in it.
type StoreError struct {
	Kind Kind
	Err  error
}

func (e *StoreError) Error() string { return e.Err.Error() }

func (e *StoreError) Unwrap() error { return e.Err }

// kindOf returns the Kind of a store's error; Unavailable for other errors.
func kindOf(err error) Kind {
	if e, ok := errors.AsType[*StoreError](err); ok {
		return e.Kind
	}
	return Unavailable
}

// Tell folds the records of a subject, in their order, into its story.
func Tell(s Subject, records []Entry) (Story, error) {
	story, p, l := Story{Subject: s}, newProjection(), (&History{}).of(s)
	for i := range records {
		e := &records[i]
		body, err := bodyOf(e)
		if err != nil {
			return story, err
		}
		if a, ok := body.(*Attempt); ok {
			story.Attempts = append(story.Attempts, *a)
		} else {
			story.Entries = append(story.Entries, *e)
		}
		p.apply(l, e, body)
	}
	if story.Episodes = l.ended; l.Episode.Number > 0 {
		story.Episodes = append(story.Episodes, l.Episode)
	}
	story.Held, story.DeadLetters = l.Held, l.deadLetters()
	return story, nil
}
