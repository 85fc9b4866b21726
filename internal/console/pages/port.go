package pages

import (
	"context"
	"time"

	"retry-worker/internal/journal"
)

// Source is what the pages are made from: the journal's store, read beside whoever writes it. Its errors hold a
// *journal.StoreError. Safe for concurrent use.
type Source interface {
	journal.Reader
	journal.Archive
	journal.Statistics
	journal.DeadLetterReader
	// Backlog is how many messages wait, by the outbox's queue.
	Backlog(ctx context.Context) (map[string]int64, error)
}

// Command is a person's decision on a dead letter (R17).
type Command struct {
	// ID of the dead letter.
	ID string
	// Reason and By are the person's words, never empty, and name.
	Reason, By string
	// Force sends it again at or above the limit; Fresh begins the whole ladder anew, and needs Force.
	Force, Fresh bool
	// Now sends it at once, not after the policy's backoff.
	Now bool
}

// Reviewer carries people's decisions out. Safe for concurrent use. Its errors are journal.ErrDeadLetterUnknown,
// journal.ErrMaxRetriesExceeded and journal.ErrInvalidRetryState (somebody was faster); any other means that the decision
// is not recorded for sure, and may be sent again.
type Reviewer interface {
	Retry(ctx context.Context, c Command) error
	Discard(ctx context.Context, c Command) error
	// Process says whether a process waits for a decision on the dead letter.
	Process(d *journal.DeadLetterItem) Process
}

// Process says whether a process waits for a decision. The set is closed.
type Process string

// Waiting: its review job is known. Expected: it may still come. Nobody: none came, or the engine knows it no longer.
const (
	Waiting  Process = "waiting"
	Expected Process = "expected"
	Nobody   Process = "nobody"
)

// Health is what the worker says of itself.
type Health struct {
	// Journal can be written, Engine can be reached.
	Journal, Engine Signal
	// Rejection is why the catalogue's file is not the one in force; nil if it is.
	Rejection error
	// Version of the program.
	Version string
}

// Signal is whether something works. Its zero value says that it is not known yet.
type Signal struct {
	Known, Up bool
	// Since when it is so; the zero time where that is not kept.
	Since time.Time
}
