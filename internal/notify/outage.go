package notify

import (
	"slices"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
)

// Outage is a time in which a destination does not answer.
type Outage struct {
	Destination string `json:"destination"`
	// Label is what people call it, if the catalogue says so.
	Label string `json:"label,omitempty"`
	// Cause is why it counts as down: failures (Failed of Admitted claims), probe or person.
	Cause    string `json:"cause"`
	Failed   int64  `json:"failed,omitempty"`
	Admitted int64  `json:"admitted,omitempty"`
	// Since is when it went down, Until when it was up again.
	Since time.Time `json:"since"`
	Until time.Time `json:"until,omitzero"`
	// Held is how many claims wait for it or, once it is up, waited.
	Held int64 `json:"held"`
	// Deadline is the nearest of the waiting claims, NextTest when the next of them is sent ahead.
	Deadline time.Time `json:"deadline,omitzero"`
	NextTest time.Time `json:"nextTest,omitzero"`
}

// outageOf returns the outage of a destination that is, or was, down.
func outageOf(d *gate.Destination) *Outage {
	of := &d.State.Outage
	o := &Outage{Destination: clean(d.Name, maxPattern), Label: clean(d.Settings.Label.String(), maxWord),
		Cause: string(of.Cause), Failed: int64(of.Failed), Admitted: int64(of.Admitted), Since: second(of.Since)}
	if d.State.Phase == destination.Up {
		o.Until, o.Held = second(d.State.Since), int64(of.Held)
		return o
	}
	o.Held, o.Deadline = int64(d.Held), second(d.Deadline)
	if d.State.Phase == destination.Down {
		o.NextTest = second(d.State.NextTest)
	}
	return o
}

// outage makes a notice of a destination that went down, or that is up again after an outage that was told, and
// reports whether there is one. The team must act when a policy with a destination gives up. An outage soon after
// another is told once Interval has passed since that one began, if it lasts so long.
func (l *look) outage(r Receiver) bool {
	acts := func(p *decision.Policy) bool { return p.Destination != nil && p.LimitTeam == r.Team }
	policies := l.Catalogue().Policies
	if !slices.ContainsFunc(policies.Names(), func(name string) bool { return acts(policies[name]) }) {
		return false
	}
	for i := range l.destinations {
		d := &l.destinations[i]
		from := l.watermark(r, deadletter.OutageNotice+deadletter.NoticeKind(d.Name))
		to, kind := from, TypeDown
		to.At, to.Record = d.State.Outage.Since.Truncate(time.Millisecond), downTold
		told, phase := !from.At.IsZero() && to.At.Equal(from.At), d.State.Phase
		switch {
		case d.Unrecorded: // told once it is recorded
			continue
		case !told && (phase == destination.Down || phase == destination.Testing) && !l.lately(from.At):
		case told && from.Record == downTold && phase == destination.Up:
			to.Record, kind = upTold, TypeUp
		default:
			continue
		}
		l.tell(r, from, to, kind, func(data *Data) { data.Outage, data.URL = outageOf(d), l.page("/destinations") })
		return true
	}
	return false
}

// The Records of an outage's watermark.
const downTold, upTold = 0, 1
