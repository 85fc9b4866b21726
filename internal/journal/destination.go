package journal

import (
	"context"
	"errors"
	"slices"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/redact"
)

// DestinationSubject returns the Subject of a destination's records. It has neither tenant nor policy.
func DestinationSubject(name string) Subject { return Subject{ID: name} }

// tells returns what the failure says about the claim's destination, and how long the destination asks to wait.
func (a *Analysis) tells(now time.Time) (destination.Tells, time.Duration) {
	f := a.Failure
	if f.Destination == "" {
		return "", 0
	}
	wait := decision.RetryAfter(f.RetryAfter, a.Error, now)
	return destination.TellsOf(&f.Match, wait), wait
}

// DestinationState is a destination's last recorded State. Version counts the recorded ones.
type DestinationState struct {
	Version int64             `json:"version,omitempty"`
	State   destination.State `json:"state,omitzero"`
	// Read is the last record that State takes in.
	Read int64 `json:"read,omitempty"`
	// Orders are what people ordered and State does not follow yet, the oldest first.
	Orders []DestinationOrder `json:"orders,omitempty"`
}

// DestinationOrder is a person's order and its record.
type DestinationOrder struct {
	Record int64 `json:"record"`
	destination.Order
}

// mostOrders is how many orders are kept until State follows them; older ones are dropped.
const mostOrders = 16

// DestinationBody is the body of a destination's record: a new State, or a person's order.
type DestinationBody struct {
	// Version is State's, one more than the last; 0 where the record has no State.
	Version int64              `json:"version,omitempty"`
	State   *destination.State `json:"state,omitempty"`
	// Read is the last record that State takes in.
	Read int64 `json:"read,omitempty"`
	// Follows is the record of the last order that State follows; 0 if there was none. Later orders are still open.
	Follows int64 `json:"follows,omitempty"`
	// Went is the phase that was left; empty if it did not change.
	Went    destination.Phase  `json:"went,omitempty"`
	Command *destination.Order `json:"command,omitempty"`
}

// ErrStale is why a destination's State was not recorded: another process has recorded one since.
var ErrStale = errors.New("another process has recorded a later state of the destination")

// RecordDestination records a destination's new State or a person's order. It returns ErrStale unless the State's
// version follows the last recorded one. Its other errors are those of Analyze.
func (j *Journal) RecordDestination(ctx context.Context, name string, body DestinationBody) error {
	if c := body.Command; c != nil {
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
		b.entry(h, s, DestinationEntry, &body)
		return nil
	}})
}

// Fold folds a destination's record into d.
func (d *DestinationState) Fold(b *DestinationBody, record int64) {
	if b.State != nil {
		d.Version, d.State, d.Read = b.Version, *b.State, b.Read
		d.Orders = slices.DeleteFunc(slices.Clone(d.Orders), func(o DestinationOrder) bool { return o.Record <= b.Follows })
	}
	if b.Command != nil {
		d.Orders = append(slices.Clone(d.Orders), DestinationOrder{record, *b.Command})
		d.Orders = d.Orders[max(len(d.Orders)-mostOrders, 0):]
	}
}

func (b *DestinationBody) fold(p *projection, h *History) {
	d := DestinationState{}
	if h.Destination != nil {
		d = *h.Destination
	}
	d.Fold(b, p.record)
	h.Destination = &d
}
