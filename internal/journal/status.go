package journal

import (
	"time"

	"retry-worker/internal/decision"
)

// Due is the state of a scheduled episode whose time has come (PENDING); it is derived, never stored.
const Due State = "due"

// Status is what a CRM shows of a subject. The set is closed.
type Status string

// The states of an episode as people outside read them.
const (
	StatusPending   Status = "pendente"
	StatusResending Status = "reenviando"
	StatusFailed    Status = "falha"
	StatusDelivered Status = "entregue"
	StatusDiscarded Status = "descartada"
)

// StateAt returns the episode's state at instant now: scheduled turns due by itself.
func (e *Episode) StateAt(now time.Time) State {
	if e.State == Scheduled && !e.NextRetryTime.After(now) {
		return Due
	}
	return e.State
}

// Status returns what the state means to people outside. What was abandoned or superseded did not arrive.
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

// OrNull returns nil for what is empty, which JSON shows as null.
func OrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// InstantOrNull returns t as decision.Instant has it, and nil for the zero time.
func InstantOrNull(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return OrNull(decision.Instant(t))
}
