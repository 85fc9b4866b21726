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

// Store is where the journal is kept. Its errors hold a *StoreError. Every method is safe for concurrent
// use; several processes may use one store where it is a server.
type Store interface {
	// Transact runs one transaction: it takes the ledger's head, so that all writers take turns, loads
	// the history of each lookup, and saves what decide makes of them. histories[i] belongs to lookups[i];
	// lookups name each subject once. decide is pure and may be called again. Nothing is saved where decide
	// returns no changes.
	Transact(ctx context.Context, lookups []Lookup, decide func(head Head, histories []History) *Changes) error
	// IdentityKey returns the journal's: who opens an empty one first makes it, and it never changes.
	IdentityKey() IdentityKey
	// Holds reports whether the ledger has that link. It takes the head first, so that a commit on its way has ended.
	Holds(ctx context.Context, l *Link) (bool, error)
	// Probe writes something that means nothing and tells whether that can be done.
	Probe(ctx context.Context) error
}

// Reader reads what a Store keeps, beside whoever writes it. Its errors hold a *StoreError. Every method is
// safe for concurrent use. With Transact they are RetryAttemptRepository of RN-BIL-005 §12.5: Story finds by
// claim, Transact saves, and counts for who decides (History.Attempts), PendingRetries finds pending retries.
type Reader interface {
	// Story is everything that is remembered of a subject; false where that is nothing.
	Story(ctx context.Context, s Subject) (Story, bool, error)
	// PendingRetries are the subjects whose retry lies ahead or is due, from behind a key on, at most limit. Its cost grows
	// with how many subjects there are.
	PendingRetries(ctx context.Context, after int64, limit int) ([]KeyedState, error)
	// Named are the subjects with that part in their id, as it stands or in capitals, the newest first, at most limit. Its
	// cost grows with how many subjects there are.
	Named(ctx context.Context, part string, limit int) ([]Subject, error)
}

// Holding reads what is held at gates, and how many passed. Its errors hold a *StoreError. Every method is safe for
// concurrent use.
type Holding interface {
	// Held calls take for the states of all destinations and of all subjects that are held, and returns the ledger's head
	// as of then; of one that cannot be read, KeyedState says why. Where it fails, it may have called take for some.
	Held(ctx context.Context, take func(*KeyedState)) (Head, error)
	// Admissions returns how many claims passed at once from a minute on.
	Admissions(ctx context.Context, since int64) ([]Admission, error)
}

// Admission is how many claims passed a destination's gate at once in a minute.
type Admission struct {
	Destination string
	// Minute counts from 1970.
	Minute int64
	Count  int
}

// AdmissionsKept is for how many minutes admissions are kept: longer than any threshold looks back.
const AdmissionsKept = 120

// Archive reads the audit's records, beside whoever writes. Its errors hold a *StoreError. Every method is safe for
// concurrent use.
type Archive interface {
	// Head is the ledger's end.
	Head(ctx context.Context) (Head, error)
	// Records that the filter lets through after the record of that number, in order, at most limit. What was
	// purged is not among them. A negative after also returns records that should have been purged. Beside an
	// ErrUnreadable they end with the one that it is about, undecoded.
	Records(ctx context.Context, f RecordFilter, after int64, limit int) ([]Record, error)
}

// Record is one record of the audit: an attempt, or an entry that is none; the other is nil.
type Record struct {
	Subject Subject
	Attempt *Attempt
	Entry   *Entry
}

// Number returns the record's.
func (r Record) Number() int64 {
	if r.Attempt != nil {
		return r.Attempt.Record
	}
	return r.Entry.Record
}

// RecordFilter chooses records. Its zero value lets all through.
type RecordFilter struct {
	// Subject whose records are wanted; the zero value: everybody's.
	Subject Subject
	// Since and Until bound the instant of the record (AnalysedAt, At): Since is included, Until is not; the
	// zero time is no bound. Until may miss what a clock more than a day behind recorded.
	Since, Until time.Time
}

// Statistics reads the sums that are kept up to date. Its errors hold a *StoreError. Every method is safe for
// concurrent use.
type Statistics interface {
	// Sums of the slots from that one on, with those names (all where there are none), but for those of causes (Sum.Cause).
	Sums(ctx context.Context, from int64, names ...SumName) ([]Sum, error)
	// Cases of those weeks (WeekOf), those of which most claims were closed first, then by cause and destination, at most
	// limit.
	Cases(ctx context.Context, weeks []int64, limit int) ([]Cases, error)
	// Causes that the filter lets through, the most failures first, then by id, behind one of them (nil: from the first
	// on), at most limit.
	Causes(ctx context.Context, f CauseFilter, after *Fingerprint, limit int) ([]Cause, error)
}

// CauseFilter chooses causes. Its zero value lets all through.
type CauseFilter struct {
	Policy, ID string
	// Taught lets those through of which a person taught something.
	Taught bool
	// Began lets those through that are new, or back, since then, and Told those that were told of then or later; the zero
	// time lets all through.
	Began, Told time.Time
}

// Outbox reads the messages on their way, which Journal.Published lets go of, and has what replicas agree on. Its errors
// hold a *StoreError. Every method is safe for concurrent use.
type Outbox interface {
	// Pending messages of a queue with a sequence above after, in order of sequence, at most limit.
	Pending(ctx context.Context, queue string, after int64, limit int) ([]Message, error)
	// Backlog is how many messages wait, by queue.
	Backlog(ctx context.Context) (map[string]int64, error)
	// Lease takes, or renews, the lease of that name for holder, by the store's clock; false where another
	// holds it. One that lies further ahead than span is of a wrong clock, and has ended. A span of 0 gives it back.
	Lease(ctx context.Context, name, holder string, span time.Duration) (bool, error)
	// AddAdmissions adds to the counts of claims that passed at once, and forgets those older than AdmissionsKept. They
	// are no part of the audit, as leases are not.
	AddAdmissions(ctx context.Context, all []Admission) error
	// Weigh sets the chance of each open dead letter anew (DeadLetter.Chance), by what a Learner's Probability says of its
	// cause and destination.
	Weigh(ctx context.Context, probability func(cause *Fingerprint, destination string) float64) error
}

// Lookup asks for what is remembered of a subject when one analysis of it is decided.
type Lookup struct {
	Subject Subject
	// Identity of the analysis; the zero value asks for none.
	Identity Identity
	// DeadLetter asks for one by its id; empty for none.
	DeadLetter string
	// Run asks for a bulk run by its id; empty for none. Its lookup may be without a subject. Item asks for one of its
	// dead letters by its number; 0 for none.
	Run  string
	Item int64
}

// History is what is remembered of a subject. Its zero value means nothing. The fold brings it up to date.
type History struct {
	// Key of the subject in the store; 0 where it is not known yet.
	Key int64
	SubjectState
	// Last is the latest attempt, in its latest revision; nil where there is none.
	Last *Attempt
	// Same is the latest attempt with the identity that was asked for, in its latest revision; nil where
	// there is none.
	Same *Attempt
	// SameAnswered tells that the engine took an answer to Same, and SameUntil the latest LockedUntil of those that it
	// was taken from, as far as that is known.
	SameAnswered bool
	SameUntil    int64
	// SameDeadLetter is the state of Same's dead letter, empty where it has none.
	SameDeadLetter DeadLetterState
	// DeadLetter of the episode, or the one that was asked for; nil where there is none.
	DeadLetter *DeadLetter
	// Run is the bulk run that was asked for, with its Counts where no subject was; Item is its dead letter; nil where
	// there is none.
	Run  *BulkRun
	Item *BulkItem
	// Teaching is what was taught of the cause that was asked for; nil where nothing was.
	Teaching *Teaching
	// What the fold knows: whose history it is, the episodes before the latest, and dead letters by their ids.
	subject Subject
	ended   []Episode
	letters map[string]*DeadLetter
}

// Story is what is remembered of one subject, all in the order it happened.
type Story struct {
	Subject  Subject
	Episodes []Episode
	// Attempts with all their revisions.
	Attempts    []Attempt
	DeadLetters []DeadLetter
	// Entries that are no attempts: rejections, outcomes, reviews.
	Entries []Entry
	// Held are its processes that wait at a gate.
	Held []HeldJob
}

// Context returns what was known of the claim last.
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

// SubjectState is the projection of a subject's records that the next decision needs: its row in a store.
type SubjectState struct {
	// Attempts made, revisions not counted: the last attempt's number.
	Attempts int64 `json:"n,omitempty"`
	// LastRecord is that of the latest attempt, in its latest revision; 0 where there is none.
	LastRecord int64 `json:"last,omitempty"`
	// Seen are the beginnings of the latest attempts' identities (MayBe).
	Seen string `json:"seen,omitempty"`
	// Episode is the latest.
	Episode Episode `json:"ep,omitzero"`
	// PossiblyAccepted tells that a failure left open whether the portal took the claim, and that nobody settled it since
	// (R33).
	PossiblyAccepted bool `json:"perhaps,omitempty"`
	// Held are the processes that wait at a gate, Sent the claim that one let through last, where its outcome is wanted.
	Held []HeldJob `json:"held,omitempty"`
	Sent *SentJob  `json:"sent,omitempty"`
	// Departed are the processes that waited at a gate and were let go, or given up, the latest last.
	Departed []DepartedJob `json:"departed,omitempty"`
	// Concluded is the job by which its latest outcome was reported.
	Concluded *DeliveredJob `json:"concluded,omitempty"`
	// Destination is set where the subject is one (DestinationSubject).
	Destination *DestinationState `json:"destination,omitempty"`
	// Taught is what a person taught, where the subject is a cause (CauseSubject).
	Taught *Teaching `json:"taught,omitempty"`
}

// destination returns the name of the one that the subject is, or that it waits for; empty for none.
func (s *KeyedState) destination() string {
	switch {
	case s.State.Destination != nil:
		return s.Subject.ID
	case len(s.State.Held) > 0:
		return s.State.Held[0].Destination
	}
	return ""
}

// Head is the ledger's end: what the next link continues.
type Head struct {
	// Link is the number of the last link, Record that of the last record, Subject the last subject's key, Message the
	// number of the last message; 0 in an empty journal.
	Link, Record, Subject, Message int64
	// Hash of the last link.
	Hash Digest
	// At is when it was written, by the clock of who wrote it.
	At time.Time
}

// ErrNoHead is what a damaged store is met with.
var ErrNoHead = errors.New("found no row in ledger_head, expected one: restore the database from a backup")

// String returns the head as `audit verify --head` takes it: the link's number and its hash. Who keeps that outside the
// database, in a log or on paper, can tell a ledger that was cut behind it or written anew.
func (h Head) String() string { return strconv.FormatInt(h.Link, 10) + ":" + h.Hash.String() }

// MarshalText is String.
func (h Head) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// ParseHead reads what String wrote. Its error says what was found and expected.
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

// Changes are what one transaction saves: all of them or none.
type Changes struct {
	// Link to append to the ledger. Its Records are numbered from the head's on.
	Link    Link
	Records []Entry
	// Subjects that are new or changed. A new one's key is the next behind the head's.
	Subjects []KeyedState
	// DeadLetters that are new or changed.
	DeadLetters []KeyedDeadLetter
	// Runs are bulk runs that are new or changed, each whole but for Counts; NewItems are in those that are new.
	Runs     []BulkRun
	NewItems []BulkItem
	// Items are what became of others, by Run and Record.
	Items []BulkItem
	// Sums and Fingerprints are what is added to those that are kept (Fingerprint.Add).
	Sums         []Sum
	Fingerprints []Fingerprint
	// Outbox are the messages, numbered from the head's on (Seal).
	Outbox []Message
	// Published are the sequences of the outbox's messages that need not be kept any longer.
	Published []int64
	// Expunged is what goes; nil where nothing does.
	Expunged *Expunged
}

// KeyedState is the state of a subject and its key in the store.
type KeyedState struct {
	Key     int64
	Subject Subject
	State   SubjectState
	// Unreadable is why State is not what is kept, where Holding.Held tells of it.
	Unreadable error
}

// KeyedDeadLetter is a dead letter of the subject with that key in the store, and its name.
type KeyedDeadLetter struct {
	Key        int64
	Subject    Subject
	DeadLetter DeadLetter
}

// Run is a run of records without a gap, both ends included.
type Run struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
	// Until is the LockedUntil of who answered, where the record is of an earlier delivery: a run of that record alone.
	Until int64 `json:"until,omitempty"`
}

// Kind is what a store's error means to who asked. The set is closed.
type Kind int

// The kinds. Unavailable: not done, may work later. Ambiguous: whether it was done is not known, and the ledger is to be
// asked (Store.Holds). Invalid: what was to be saved cannot be, now or ever.
const (
	Unavailable Kind = iota
	Ambiguous
	Invalid
)

// StoreError tells what went wrong in a store. Its text is one line with nothing personal in it.
type StoreError struct {
	Kind Kind
	Err  error
}

func (e *StoreError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// kindOf an error; one that says nothing is Unavailable.
func kindOf(err error) Kind {
	if e, ok := errors.AsType[*StoreError](err); ok {
		return e.Kind
	}
	return Unavailable
}

// Tell folds the records of a subject, in their order, to its story.
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
