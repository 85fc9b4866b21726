package journal

import (
	"context"
	"errors"
	"math"
	"strconv"
	"time"
)

// Store is where the journal is kept. Its errors hold a *StoreError. Every method is safe for concurrent
// use; several processes may use one store where it is a server.
type Store interface {
	// Transact runs one transaction: it takes the ledger's head, so that all writers take turns, loads
	// the history of each lookup, and saves what decide makes of them. histories[i] belongs to lookups[i];
	// lookups name each subject once. decide is pure and may be called again. Nothing is saved where decide
	// returns no changes.
	Transact(ctx context.Context, lookups []Lookup, decide func(head Head, histories []History) *Changes) error
	// Probe writes something that means nothing and tells whether that can be done.
	Probe(ctx context.Context) error
}

// Reader reads what a Store keeps, beside whoever writes it. Its errors hold a *StoreError. Every method is
// safe for concurrent use. With Transact they are RetryAttemptRepository of RN-BIL-005 §12.5: Story finds by
// claim, Transact saves, CountAttempts counts, PendingRetries finds pending retries.
type Reader interface {
	// Story is everything that is remembered of a subject; false where that is nothing.
	Story(ctx context.Context, s Subject) (Story, bool, error)
	// CountAttempts made of a subject, revisions not counted; 0 for one that is not known.
	CountAttempts(ctx context.Context, s Subject) (int64, error)
	// PendingRetries are the retries of a policy (all where it is empty) that lie ahead or are due, the
	// earliest first, after a given one (nil: from the first on), at most limit.
	PendingRetries(ctx context.Context, policy string, after *PendingRetry, limit int) ([]PendingRetry, error)
}

// Archive reads the audit's records and the ledger that vouches for them, beside whoever writes. Its errors hold
// a *StoreError. Every method is safe for concurrent use.
type Archive interface {
	// Head is the ledger's end.
	Head(ctx context.Context) (Head, error)
	// Links after the link of that number, in order, at most limit.
	Links(ctx context.Context, after int64, limit int) ([]Link, error)
	// Records that the filter lets through after the record of that number, in order, at most limit. What was
	// purged is not among them; what stands there below the purge all the same is, where after is negative.
	Records(ctx context.Context, f RecordFilter, after int64, limit int) ([]Record, error)
}

// Record is one record of the audit: an attempt or an entry, the other is nil.
type Record struct {
	Subject Subject
	Attempt *Attempt
	Entry   *Entry
}

// RecordFilter chooses records. Its zero value lets all through.
type RecordFilter struct {
	// Subject whose records are wanted; the zero value: everybody's.
	Subject Subject
	// Since and Until bound the instant of the record (AnalysedAt, At): Since is included, Until is not; the
	// zero time is no bound.
	Since, Until time.Time
}

// Statistics reads the sums that are kept up to date. Its errors hold a *StoreError. Every method is safe for
// concurrent use.
type Statistics interface {
	// Figures of the slots from that one on, and the running totals (slot 0).
	Figures(ctx context.Context, from int64) ([]Figure, error)
	// Fingerprints of a policy (all where it is empty), the most failures first, at most limit.
	Fingerprints(ctx context.Context, policy string, limit int) ([]Fingerprint, error)
}

// Purger forgets what is older than it must be kept. Links and their digests, figures and fingerprints stay; of the
// figures, the running totals of dead letters fall by those that go.
// Its errors hold a *StoreError. Every method is safe for concurrent use.
type Purger interface {
	// LastRecordBefore is the last record of the ledger's links that, from the first on, were all written before
	// t; 0 where there is none.
	LastRecordBefore(ctx context.Context, t time.Time) (int64, error)
	// Purge deletes at most limit records (attempts and entries) up to the given one, in one short transaction,
	// with the dead letters, episodes and subjects of which nothing else is left. It returns how many records
	// it deleted: fewer than limit when there are no more.
	Purge(ctx context.Context, through int64, limit int) (int, error)
}

// Outbox reads the messages on their way. Journal.Published lets go of them. Its errors hold a *StoreError.
// Every method is safe for concurrent use.
type Outbox interface {
	// Pending messages of a queue with a sequence above after, in order of sequence, at most limit.
	Pending(ctx context.Context, queue string, after int64, limit int) ([]Message, error)
	// Backlog is how many messages wait, by queue.
	Backlog(ctx context.Context) (map[string]int64, error)
	// Lease takes, or renews, the lease of that name for holder, by the store's clock; false where another
	// holds it. A span of 0 gives it back.
	Lease(ctx context.Context, name, holder string, span time.Duration) (bool, error)
}

// Lookup asks for what is remembered of a subject when one analysis of it is decided.
type Lookup struct {
	Subject Subject
	// Identity of the analysis; the zero value asks for none.
	Identity Identity
	// DeadLetter asks for one by its id; empty for none.
	DeadLetter string
	// Run asks for a bulk run by its id; empty for none. Its lookup may be without a subject.
	Run string
}

// History is what is remembered of a subject. Its zero value means nothing.
type History struct {
	// Key of the subject in the store; 0 where it is not known yet.
	Key int64
	// Attempts made, revisions not counted: the last attempt's number.
	Attempts int64
	// Episode is the latest.
	Episode Episode
	// Last is the latest attempt, in its latest revision; nil where there is none.
	Last *Attempt
	// Same is the latest attempt with the identity that was asked for, in its latest revision; nil where
	// there is none.
	Same *Attempt
	// SameAnswered tells that the engine took an answer to Same.
	SameAnswered bool
	// SameDeadLetter is the state of Same's dead letter, empty where it has none.
	SameDeadLetter DeadLetterState
	// DeadLetter of the episode, or the one that was asked for; nil where there is none.
	DeadLetter *DeadLetter
	// Run is the bulk run that was asked for; nil where there is none.
	Run *BulkRun
	// subject that it is the history of.
	subject Subject
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
}

// PendingRetry is a retry that lies ahead or is due.
type PendingRetry struct {
	Subject       Subject
	Key           int64 // of the subject in the store
	NextRetryTime time.Time
	RetryCount    int64
	State         State
}

// Head is the ledger's end: what the next link continues.
type Head struct {
	// Link is the number of the last link, Record that of the last record, Subject the last subject's key;
	// 0 in an empty journal.
	Link, Record, Subject int64
	// Hash of the last link.
	Hash Digest
	// At is when it was written, by the clock of who wrote it.
	At time.Time
}

// String is the head as `audit verify --head` takes it: the link's number and its hash.
func (h Head) String() string { return strconv.FormatInt(h.Link, 10) + ":" + h.Hash.String() }

// Changes are what one transaction saves: all of them or none.
type Changes struct {
	// Link to append to the ledger. Its Records are numbered from the head's on.
	Link Link
	// Subjects that were not known yet.
	Subjects []KeyedSubject
	// Episodes that are new or changed.
	Episodes []KeyedEpisode
	Attempts []KeyedAttempt
	// DeadLetters that are new or changed.
	DeadLetters []KeyedDeadLetter
	// Runs are bulk runs that are new or changed. Of one that is there, what it is stays: its states, instants and ChangedBy
	// are saved. Total and Counts are the store's own.
	Runs    []BulkRun
	Entries []Entry
	// Figures are what the sums grow by; Fingerprints too, but for FirstSeen, of which the earlier stays, and
	// LastSeen, of which the later does.
	Figures      []Figure
	Fingerprints []Fingerprint
	Outbox       []Message
	// Published are the sequences of the outbox's messages that need not be kept any longer.
	Published []int64
	// Answered are the records of the attempts whose answer the engine took.
	Answered []Run
}

// Instants are the earliest and the latest of the records', in milliseconds. There must be a record.
func (c *Changes) Instants() (earliest, latest int64) {
	earliest, latest = math.MaxInt64, math.MinInt64
	for i := range c.Attempts {
		at := Milli(c.Attempts[i].Attempt.Decision.AnalysedAt)
		earliest, latest = min(earliest, at), max(latest, at)
	}
	for i := range c.Entries {
		at := Milli(c.Entries[i].At)
		earliest, latest = min(earliest, at), max(latest, at)
	}
	return earliest, latest
}

// MergeRecords puts attempts and entries, each in order, in the order of their records.
func MergeRecords(attempts, entries []Record) []Record {
	all := make([]Record, 0, len(attempts)+len(entries))
	for len(attempts) > 0 && len(entries) > 0 {
		if attempts[0].Attempt.Record < entries[0].Entry.Record {
			all, attempts = append(all, attempts[0]), attempts[1:]
		} else {
			all, entries = append(all, entries[0]), entries[1:]
		}
	}
	return append(append(all, attempts...), entries...)
}

// Keyed rows belong to the subject with this key in the store.
type (
	// KeyedSubject is a subject and its key.
	KeyedSubject struct {
		Key     int64
		Subject Subject
	}
	// KeyedEpisode is an episode of a subject.
	KeyedEpisode struct {
		Key     int64
		Episode Episode
	}
	// KeyedAttempt is an attempt of a subject.
	KeyedAttempt struct {
		Key     int64
		Attempt *Attempt
	}
	// KeyedDeadLetter is a dead letter of a subject. Policy is the subject's; Fingerprint that of its cause
	// (Fingerprint.ID), empty where nothing is known of it. It is saved with a dead letter that is new, and stays.
	KeyedDeadLetter struct {
		Key         int64
		Policy      string
		DeadLetter  DeadLetter
		Fingerprint string
	}
)

// Run is a run of records without a gap, both ends included.
type Run struct{ First, Last int64 }

// Kind is what a store's error means to who asked. The set is closed.
type Kind int

// The kinds. Unavailable: not done, may work later. Ambiguous: whether it was done is not known; doing
// it again is safe. Invalid: what was to be saved cannot be, now or ever.
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

// Unwrap is the cause.
func (e *StoreError) Unwrap() error { return e.Err }

// kindOf an error; one that says nothing is Unavailable.
func kindOf(err error) Kind {
	if e, ok := errors.AsType[*StoreError](err); ok {
		return e.Kind
	}
	return Unavailable
}
