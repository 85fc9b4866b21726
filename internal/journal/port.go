package journal

import (
	"context"
	"errors"
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

// Lookup asks for what is remembered of a subject when one analysis of it is decided.
type Lookup struct {
	Subject Subject
	// Identity of the analysis; the zero value asks for none.
	Identity Identity
	// DeadLetter asks for one by its id; empty for none.
	DeadLetter string
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
	Entries     []Entry
	Outbox      []Message
	// Answered are the records of the attempts whose answer the engine took.
	Answered []Run
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
	// KeyedDeadLetter is a dead letter of a subject.
	KeyedDeadLetter struct {
		Key        int64
		DeadLetter DeadLetter
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
