package journal

import (
	"time"

	"retry-worker/internal/decision"
)

// Due is the state of a scheduled episode whose time has come (PENDING). It is derived, never stored.
const Due State = "due"

// Status is a subject's state as other systems, such as a CRM, show it. The set is closed.
type Status string

// The statuses.
const (
	StatusPending   Status = "pendente"
	StatusResending Status = "reenviando"
	StatusFailed    Status = "falha"
	StatusDelivered Status = "entregue"
	StatusDiscarded Status = "descartada"
)

// StateAt returns the episode's state at now, where scheduled may be due.
func (e *Episode) StateAt(now time.Time) State {
	if e.State == Scheduled && !e.NextRetryTime.After(now) {
		return Due
	}
	return e.State
}

// Status returns what the state means to other systems. Abandoned and superseded claims did not arrive.
func (s State) Status() Status {
	switch s {
	case Scheduled:
		return StatusPending
	case Due, Reprocessing:
		return StatusResending
	case Recovered, Accepted:
		return StatusDelivered
	case Discarded:
		return StatusDiscarded
	default:
		return StatusFailed
	}
}

// Views returns the view of each element. It is never nil, which would be null in JSON.
func Views[T, V any](all []T, of func(*T) V) []V {
	views := make([]V, len(all))
	for i := range all {
		views[i] = of(&all[i])
	}
	return views
}

// OrNull returns nil, which is null in JSON, for an empty string.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// InstantOrNull returns decision.Instant of t, or nil for the zero time.
func InstantOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return OrNull(decision.Instant(t))
}
