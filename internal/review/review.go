// Package review is people's part: they see what the worker gave up on and decide on it.
//
// It lists, shows and decides (R17) for the API, the pages and the command line, and knows none of them. The jobs by which
// processes wait are the worker's (worker/review.go).
package review

import (
	"context"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// Letters reads dead letters and the stories of their subjects. Its errors hold a *journal.StoreError.
type Letters interface {
	journal.DeadLetterReader
	// Story is everything that is remembered of a subject; false where that is nothing.
	Story(ctx context.Context, s journal.Subject) (journal.Story, bool, error)
}

// Recorder records decisions (journal.Journal does). Its errors are those of Journal.Review.
type Recorder interface {
	Review(ctx context.Context, r *journal.Review) (journal.Reviewed, error)
}

// When a retry that a person asks for is made (R17).
type When string

// The moments. The zero value is Backoff.
const (
	// Backoff: after the policy's own delay.
	Backoff When = "backoff"
	// Now: at once.
	Now When = "now"
)

// Command is a person's decision on a dead letter.
type Command struct {
	// ID of the dead letter.
	ID string
	// Reason and By are the person's words, 1 to MaxReason characters, and name.
	Reason, By string
	// Force sends it again at or above the limit; Fresh begins the whole ladder anew, and needs Force. May they? That is
	// the caller's to know (roles).
	Force, Fresh bool
	When         When
	// Run is the bulk run that decides; empty for a person's decision on this dead letter alone.
	Run string
}

// MaxReason is how many characters a reason may have: the audit keeps all of them.
const MaxReason = 500

// Decided is what a decision came to: recorded for good, and on its way to the process.
type Decided struct {
	// Item as it stands after it.
	Item Item
	// Episode of the subject that goes on, or ended.
	Episode int64
	// RetryCount the process goes on with; the dead letter's own where it was discarded.
	RetryCount int64
	// Backoff and NextRetryTime of a retry; zero on a discard. Backoff is 0 where it is made at once.
	Backoff       time.Duration
	NextRetryTime time.Time
}

// Item is a dead letter and whether a process waits for a decision on it.
type Item struct {
	journal.DeadLetterItem
	Process Process
}

const (
	// MostItems of a page.
	MostItems = 200
	// DefaultItems of a page where nobody says.
	DefaultItems = 50
	// maxQuery characters that are searched for.
	maxQuery = 200
)

// AlertAbove so many open dead letters, all policies together, is an alert (TRD-0003).
const AlertAbove = 100

// Service lists dead letters and takes decisions on them. Safe for concurrent use.
type Service struct {
	letters  Letters
	memory   Recorder
	policies func() decision.Policies
	now      func() time.Time
	engineUp func() time.Time
}

// New is a Service over letters that records in memory. policies gives those in force. engineUp tells since when the
// engine answers this worker; the zero time where it does not.
func New(letters Letters, memory Recorder, policies func() decision.Policies, now, engineUp func() time.Time) *Service {
	return &Service{letters, memory, policies, now, engineUp}
}
