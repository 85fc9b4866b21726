package notify

import (
	"context"
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
	// Since is when it went down, Until when it was up again; RFC 3339 in UTC.
	Since string `json:"since"`
	Until string `json:"until,omitempty"`
	// Held is how many claims wait for it or, once it is up, waited.
	Held int64 `json:"held"`
	// Deadline is the nearest of the waiting claims, NextTest when the next of them is sent ahead.
	Deadline string `json:"deadline,omitempty"`
	NextTest string `json:"nextTest,omitempty"`
}

// outageOf returns the outage of a destination that is, or was, down.
func outageOf(d *gate.Destination) *Outage {
	of := &d.State.Outage
	o := &Outage{Destination: clean(d.Name, maxPattern), Label: clean(d.Settings.Label.String(), maxWord),
		Cause: string(of.Cause), Failed: int64(of.Failed), Admitted: int64(of.Admitted), Since: instant(of.Since)}
	if d.State.Phase == destination.Up {
		o.Until, o.Held = instant(d.State.Since), int64(of.Held)
		return o
	}
	o.Held, o.Deadline = int64(d.Held), instantOrNone(d.Deadline)
	if d.State.Phase == destination.Down {
		o.NextTest = instantOrNone(d.State.NextTest)
	}
	return o
}

func instantOrNone(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return instant(t)
}

// outage makes a notice of a destination that went down, or that is up again after an outage that was told, and
// reports whether there is one. The team must act when a policy with a destination gives up. An outage soon after
// another is told once Interval has passed since that one began, if it lasts so long.
func (l *glance) outage(ctx context.Context, r *receiver) (bool, error) {
	acts := func(p *decision.Policy) bool { return p.Destination != nil && p.LimitTeam == r.team }
	policies := l.Catalogue().Policies
	if !slices.ContainsFunc(policies.Names(), func(name string) bool { return acts(policies[name]) }) {
		return false, nil
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
		return l.tell(ctx, from, to, kind, func(data *Data) { data.Outage, data.URL = outageOf(d), l.page("/destinations") })
	}
	return false, nil
}

// The Records of an outage's watermark.
const downTold, upTold = 0, 1
