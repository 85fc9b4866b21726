package journal

import (
	"errors"
	"time"

	"retry-worker/internal/redact"
)

// Review is a person's decision on a dead letter (R17).
type Review struct {
	Subject    Subject
	DeadLetter string
	// Discard lets it go; otherwise it is sent again.
	Discard bool
	// Force sends it again at or above the limit; Fresh begins the whole ladder anew, and needs Force.
	Force, Fresh bool
	// NextRetryTime of what is sent again; the zero time, and one that has passed, mean now.
	NextRetryTime time.Time
	// Reason and By are a person's words and name.
	Reason, By string
}

// What a review is refused with; the texts are the API's error codes.
var (
	ErrDeadLetterUnknown  = errors.New("job_not_found")
	ErrMaxRetriesExceeded = errors.New("max_retries_exceeded")
	ErrInvalidRetryState  = errors.New("invalid_retry_state")
)

// maxReasonBytes of a person's words, which may tell of a patient: they are redacted like any text.
const maxReasonBytes = 1000

type reviewBody struct {
	Decision   DeadLetterState `json:"decision"`
	DeadLetter string          `json:"deadLetterId"`
	Reason     string          `json:"reason"`
	By         string          `json:"by"`
	Episode    int64           `json:"episode"`
	RetryCount int64           `json:"retryCount"`
}

// Reviewed says what a review came to.
type Reviewed struct {
	Episode Episode
	// RetryCount the process goes on with.
	RetryCount int64
}

// review applies a review. The episode goes on one retry further, or a fresh one begins at 0.
func (b *batch) review(r *Review, h *History) (Reviewed, error) {
	d := h.DeadLetter
	switch {
	case d == nil || d.ID != r.DeadLetter:
		return Reviewed{}, ErrDeadLetterUnknown
	case d.State != DeadLetterOpen || h.Episode.DeadLetter != d.ID:
		return Reviewed{}, ErrInvalidRetryState
	case r.Discard:
		return b.discard(r, h), nil
	case d.RetryCount >= d.MaxRetries && !r.Force:
		return Reviewed{}, ErrMaxRetriesExceeded
	}
	e := h.Episode
	if r.Fresh && r.Force {
		e.State, e.ClosedAt, e.DeadLetter = Superseded, b.milli(), ""
		b.changes.Episodes = append(b.changes.Episodes, KeyedEpisode{h.Key, e})
		e = Episode{Number: e.Number + 1, OpenedAt: b.milli(), FirstFailure: b.milli(), ProcessInstanceKey: e.ProcessInstanceKey}
	} else {
		e.Retries = max(d.RetryCount, d.RetryCount+1) // the largest count there is has none above it
	}
	e.State, e.DeadLetter, e.NextRetryTime = Reprocessing, d.ID, r.NextRetryTime.UTC().Truncate(time.Millisecond)
	if e.NextRetryTime.Before(b.milli()) { // R7: never in the past
		e.NextRetryTime = b.milli()
	}
	b.settle(h.Key, h, DeadLetterReprocessing)
	return b.reviewed(r, h, e, DeadLetterReprocessing), nil
}

func (b *batch) discard(r *Review, h *History) Reviewed {
	e := h.Episode
	e.State, e.ClosedAt, e.DeadLetter, e.NextRetryTime = Discarded, b.milli(), "", time.Time{}
	b.settle(h.Key, h, DeadLetterDiscarded)
	return b.reviewed(r, h, e, DeadLetterDiscarded)
}

func (b *batch) reviewed(r *Review, h *History, e Episode, as DeadLetterState) Reviewed {
	b.changes.Episodes = append(b.changes.Episodes, KeyedEpisode{h.Key, e})
	body := reviewBody{as, r.DeadLetter, storable(redact.Line(r.Reason, maxReasonBytes)), storable(r.By), e.Number, e.Retries}
	b.entry(ReviewEntry, body, Happening{Subject: r.Subject, Episode: e, Review: r})
	return Reviewed{e, e.Retries}
}
