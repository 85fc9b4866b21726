package console

import (
	"context"
	"time"

	"retry-worker/internal/api"
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

// Reviewer lists dead letters and carries people's decisions on one and on many of them out (deadletter.Service does).
type Reviewer interface {
	api.DeadLetters
	api.Bulk
	// Teams are those that the policies name.
	Teams() []decision.Team
	// Process says whether a process waits for a decision on the dead letter.
	Process(d *journal.DeadLetter) deadletter.Process
	// Note takes what a person says of a dead letter without deciding on it.
	Note(ctx context.Context, c deadletter.Command, verb journal.NoteVerb) (deadletter.Item, error)
}

// Health is what the worker says of itself.
type Health struct {
	// Journal can be written, Engine can be reached.
	Journal, Engine Signal
	// Rejection is why the catalogue's file is not the one in force; nil if it is.
	Rejection error
	// Notices to teams that could not be sent so far, the oldest first.
	Notices []Notice
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
