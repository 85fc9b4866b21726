package journal

import (
	"context"
	"time"

	"retry-worker/internal/decision"
)

// DeadLetterItem is a dead letter as people see it, with what is known of its subject and of its review.
type DeadLetterItem struct {
	DeadLetter
	Subject Subject
	// Error of the attempt it was born with, with nothing personal in it; empty where a process reported the failure.
	Error          string
	Classification decision.ErrorClassification
	MatchedRule    string
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
	// Discard lets it go; otherwise it was sent again.
	Discard bool `json:"discard,omitempty"`
	Force   bool `json:"forceRetry,omitempty"`
	Fresh   bool `json:"fresh,omitempty"`
	// Reason and By are a person's words, redacted, and name.
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	At     time.Time `json:"at,omitzero"`
	// NextRetryTime of what was sent again.
	NextRetryTime time.Time `json:"nextRetryTime,omitzero"`
}

// DeadLetterCount is how many dead letters share policy, state, team and reason, kept up to date with each of them.
type DeadLetterCount struct {
	Policy string
	State  DeadLetterState
	Team   decision.Team
	Reason decision.Reason
	N      int64
	// Oldest is when the first of those that are open was born; the zero time for any other state.
	Oldest time.Time
}

// DeadLetterReader reads dead letters, beside whoever writes them. Its errors hold a *StoreError. Every method is safe for
// concurrent use, and its cost does not grow with how many there are.
type DeadLetterReader interface {
	// DeadLetter is the one with that id; false where there is none.
	DeadLetter(ctx context.Context, id string) (DeadLetterItem, bool, error)
	// DeadLetterPage are dead letters that the filter lets through, the newest first, from behind the cursor on (empty:
	// from the newest on): at most limit, which is held in 1 to 200. next is empty where no more follow. Where a query
	// fits many, a page may hold fewer than limit, none even, and more follow all the same. The error is ErrBadCursor,
	// ErrBadFilter, or holds a *StoreError.
	DeadLetterPage(ctx context.Context, f DeadLetterFilter, cursor string, limit int) (items []DeadLetterItem, next string, err error)
	// DeadLetterGroups are the causes of dead letters that the filter lets through, those with the most first, from behind
	// the cursor on: at most limit, which is held in 1 to 200. Of the filter's Query its words alone are looked at. Since
	// and Until are not allowed. Dead letters of which no cause is known are in no group. What is written between two pages
	// may bring a group twice or not at all. The error is ErrBadCursor, ErrBadFilter, or holds a *StoreError.
	DeadLetterGroups(ctx context.Context, f DeadLetterFilter, cursor string, limit int) (groups []DeadLetterGroup, next string, err error)
	// DeadLetterCounts are all that are not 0, in the order of policy, state, team and reason.
	DeadLetterCounts(ctx context.Context) ([]DeadLetterCount, error)
}
