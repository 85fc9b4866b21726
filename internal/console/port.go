package console

import (
	"context"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Source is what the pages are made from: the journal's store, read beside whoever writes it. Its errors hold a
// *journal.StoreError. Safe for concurrent use.
type Source interface {
	journal.Reader
	journal.Archive
	journal.Statistics
	deadletter.Reader
	// Backlog is how many messages wait, by the outbox's queue.
	Backlog(ctx context.Context) (map[string]int64, error)
}

// Reviewer groups dead letters and carries people's decisions on them out (deadletter.Service does). Safe for concurrent
// use. Its errors hold a *deadletter.Refusal where nothing was done; any other means that the decision is not recorded for
// sure, and may be sent again.
type Reviewer interface {
	Retry(ctx context.Context, c deadletter.Command) (deadletter.Item, error)
	Discard(ctx context.Context, c deadletter.Command) (deadletter.Item, error)
	// Process says whether a process waits for a decision on the dead letter.
	Process(d *journal.DeadLetter) deadletter.Process
	// Groups are the causes of dead letters, the one with the most first.
	Groups(ctx context.Context, f journal.DeadLetterFilter, cursor string, limit int) (groups []deadletter.Group, next string, err error)
}

// Bulk is one decision on many dead letters (deadletter.Service). Safe for concurrent use. Its errors are as Reviewer's; of
// Start's the run may be there all the same.
type Bulk interface {
	Plan(ctx context.Context, c deadletter.BulkCommand) (deadletter.Plan, error)
	Start(ctx context.Context, c deadletter.BulkCommand, token string) (run journal.BulkRun, started bool, err error)
	Run(ctx context.Context, id string) (journal.BulkRun, error)
	Runs(ctx context.Context, cursor string, limit int) (runs []journal.BulkRun, next string, err error)
	Items(ctx context.Context, id string, outcome journal.BulkOutcome, after int64, limit int) ([]journal.BulkItem, error)
	// Steer pauses, resumes or cancels a run.
	Steer(ctx context.Context, id string, verb journal.BulkVerb, by string) (journal.BulkRun, error)
}

// Health is what the worker says of itself.
type Health struct {
	// Journal can be written, Engine can be reached.
	Journal, Engine Signal
	// Rejection is why the catalogue's file is not the one in force; nil if it is.
	Rejection error
	// Notices to teams that could not be sent so far, the oldest first.
	Notices []Notice
	// Version of the program.
	Version string
}

// Notice is a message to a team that waits because its last try failed.
type Notice struct {
	Team decision.Team
	// Way it is sent: email or webhook.
	Way string
	// Since is when it was made.
	Since time.Time
	// Failure of its last try, in one line.
	Failure string
}

// Signal is whether something works. Its zero value says that it is not known yet.
type Signal struct {
	Known, Up bool
	// Since when it is so; the zero time where that is not kept.
	Since time.Time
}
