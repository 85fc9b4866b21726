package bulk

import (
	"fmt"
	"time"

	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

// checked is c with everything filled in, or the *review.Refusal of what can never be carried out.
func (c Command) checked() (Command, error) {
	if c.PerMinute == 0 {
		c.PerMinute = DefaultPerMinute
	}
	if c.When == "" {
		c.When = review.Backoff
	}
	switch {
	case c.Action != journal.BulkRetry && c.Action != journal.BulkDiscard:
		return c, refuse(InvalidAction, "action is %.60q, expected retry or discard", c.Action)
	case c.PerMinute < 1 || c.PerMinute > MostPerMinute:
		return c, refuse(InvalidPace, "perMinute is %d, expected 1 to %d", c.PerMinute, MostPerMinute)
	case c.When != review.Backoff && c.When != review.Now:
		return c, refuse(review.InvalidWhen, "when is %.60q, expected backoff (after each policy's delay) or now", c.When)
	case c.Action == journal.BulkDiscard && (c.Force || c.Fresh || c.When == review.Now):
		return c, refuse(InvalidAction, "what is discarded is not retried: leave forceRetry, fresh and when out, or retry")
	case c.Fresh && !c.Force:
		return c, refuse(review.ForceRequired, "fresh begins the whole ladder anew and needs forceRetry; set both, or neither")
	}
	return c.checkedFilter()
}

// checkedFilter is c with its filter as it is kept: the open ones, by the millisecond.
func (c Command) checkedFilter() (Command, error) {
	f := c.Filter
	f.State, f.Since, f.Until = "", milli(f.Since), milli(f.Until)
	f, err := review.CheckFilter(f)
	c.Filter = f
	return c, err
}

func milli(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

// interval between two decisions.
func interval(perMinute int64) time.Duration { return time.Minute / time.Duration(max(perMinute, 1)) }

func refuse(code review.Code, format string, args ...any) *review.Refusal {
	return &review.Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}
