package review

import (
	"time"

	"retry-worker/internal/journal"
)

// Process says whether a process waits for a decision on a dead letter. The set is closed.
type Process string

// The answers.
const (
	// Waiting: the job by which it waits is known.
	Waiting Process = "waiting"
	// Expected: that job has not come yet, and may.
	Expected Process = "expected"
	// Nobody: it did not come in time, or the engine knows it no longer.
	Nobody Process = "nobody"
	// Answered: nobody waits any more, for the process has got its answer or the subject went on without one.
	Answered Process = ""
)

// ExpectedFor is how long after its birth a dead letter's process may take to come to its review task, while the engine
// is up.
const ExpectedFor = 60 * time.Second

// ProcessOf is whether a process waits for a decision on d, as far as is known at instant now. engineUp is since when the
// engine answers; the zero time where it does not: no job can come then.
func ProcessOf(d *journal.DeadLetter, now, engineUp time.Time) Process {
	switch {
	case d.Delivery == journal.DeliveryNobody:
		return Nobody
	case d.Delivery == journal.DeliveryTaken, d.State != journal.DeadLetterOpen && d.Delivery != journal.DeliveryPending:
		return Answered
	case d.ReviewJobKey != 0:
		return Waiting
	case engineUp.IsZero():
		return Expected
	}
	since := d.CreatedAt
	if engineUp.After(since) {
		since = engineUp
	}
	if now.Sub(since) < ExpectedFor {
		return Expected
	}
	return Nobody
}
