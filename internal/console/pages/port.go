package pages

import (
	"context"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/review"
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

// Reviewer carries people's decisions out (review.Service does). Safe for concurrent use. Its errors hold a
// *review.Refusal where nothing was done; any other means that the decision is not recorded for sure, and may be sent
// again.
type Reviewer interface {
	Retry(ctx context.Context, c review.Command) (review.Decided, error)
	Discard(ctx context.Context, c review.Command) (review.Decided, error)
	// Process says whether a process waits for a decision on the dead letter.
	Process(d *journal.DeadLetterItem) review.Process
}

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
