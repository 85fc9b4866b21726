package journal

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/destination"
	"retry-worker/internal/redact"
)

// DestinationSubject returns the Subject that a destination's records are of: it has neither tenant nor policy.
func DestinationSubject(name string) Subject { return Subject{ID: name} }

// Tells is what an attempt or an outcome tells of its destination. The set is closed; empty is nothing.
type Tells string

// What they tell.
const (
	TellsFailed      Tells = "failed"
	TellsAnswered    Tells = "answered"
	TellsRateLimited Tells = "rateLimited"
)

// tells is what a failure says of the claim's destination, and how long that asks to wait.
func (a *Analysis) tells(now time.Time) (Tells, time.Duration) {
	f := a.Failure
	if f.Destination == "" {
		return "", 0
	}
	switch e := destination.FailureEvent(&f.Match, "", time.Time{},
		destination.RetryAfter(f.RetryAfter, a.Error, now)).(type) {
	case destination.Failed:
		return TellsFailed, 0
	case destination.Answered:
		return TellsAnswered, 0
	case destination.RateLimited:
		return TellsRateLimited, e.RetryAfter
	}
	return "", 0
}

// DestinationState is a destination's State as it was recorded last. Its Version is one more each time.
type DestinationState struct {
	Version int64             `json:"version,omitempty"`
	State   destination.State `json:"state,omitzero"`
	// Orders are what people ordered since, the oldest first.
	Orders []DestinationOrder `json:"orders,omitempty"`
}

// DestinationOrder is what a person ordered, and its record.
type DestinationOrder struct {
	Record int64 `json:"record"`
	DestinationCommand
}

// mostOrders are kept while nobody follows them, the latest.
const mostOrders = 16

// DestinationBody is the body of a destination's record: what it is in now, or what a person ordered.
type DestinationBody struct {
	// Version is that of State, one more than the last one's; 0 where the record has no State.
	Version int64              `json:"version,omitempty"`
	State   *destination.State `json:"state,omitempty"`
	// Follows is the record of the last order that State follows, 0 where none was left to follow. Later ones are still to
	// be followed.
	Follows int64 `json:"follows,omitempty"`
	// Went is the phase that was left, where it is another.
	Went    destination.Phase   `json:"went,omitempty"`
	Command *DestinationCommand `json:"command,omitempty"`
}

// DestinationVerb is what a person orders. The set is closed.
type DestinationVerb string

// The verbs.
const (
	HoldClaims DestinationVerb = "hold"    // all, until a time
	SendCanary DestinationVerb = "probe"   // one claim ahead, now
	ReleaseAt  DestinationVerb = "release" // at a pace
	TreatAsUp  DestinationVerb = "up"      // whatever fails, until a time
)

// DestinationCommand is a person's order.
type DestinationCommand struct {
	Verb      DestinationVerb `json:"verb"`
	Until     time.Time       `json:"until,omitzero"`
	PerMinute float64         `json:"perMinute,omitempty"`
	// Reason and By are a person's words, redacted, and name.
	Reason string `json:"reason"`
	By     string `json:"by"`
}

// ErrStale is why a destination's State was not recorded: another process has recorded one since.
var ErrStale = errors.New("another process has recorded a later state of the destination")

// RecordDestination records what became of a destination, or what a person ordered. A State follows the one of the
// version before, or is refused with ErrStale. It returns as Analyze does, or ErrReasonRequired.
func (j *Journal) RecordDestination(ctx context.Context, name string, body DestinationBody) error {
	if c := body.Command; c != nil {
		if strings.TrimSpace(c.Reason) == "" {
			return ErrReasonRequired
		}
		c.Reason, c.By = storable(redact.Line(c.Reason, maxReasonBytes)), bounded(c.By)
	}
	s := DestinationSubject(name)
	return j.submit(ctx, &item{lookup: Lookup{Subject: s}, apply: func(b *batch, h *History) error {
		version := int64(1)
		if h.Destination != nil {
			version += h.Destination.Version
		}
		if body.State != nil && version != body.Version {
			return ErrStale
		}
		b.entry(h, s, DestinationEntry, &body, Happening{}, 0)
		return nil
	}})
}

// destination folds a destination's record.
func (l *life) destination(b *DestinationBody, record int64) {
	d := DestinationState{}
	if l.Destination != nil {
		d = *l.Destination
	}
	if b.State != nil {
		d.Version, d.State = b.Version, *b.State
		d.Orders = slices.DeleteFunc(slices.Clone(d.Orders), func(o DestinationOrder) bool { return o.Record <= b.Follows })
	}
	if b.Command != nil {
		d.Orders = append(slices.Clone(d.Orders), DestinationOrder{record, *b.Command})
		d.Orders = d.Orders[max(len(d.Orders)-mostOrders, 0):]
	}
	l.Destination = &d
}
