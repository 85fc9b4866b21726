package events

import (
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
)

// destinationEvent returns the begin or the end of an outage; no data where h is neither.
func destinationEvent(h *journal.Happening, label func(string) string) (kind string, data any) {
	if h.Entry == nil || h.Entry.Kind != journal.DestinationEntry {
		return "", nil
	}
	b, err := journal.BodyOf[journal.DestinationBody](h.Entry)
	switch {
	case err != nil || b.State == nil || b.Went == "":
		return "", nil
	case b.Went == destination.Up && b.State.Phase != destination.Ramping: // which a person may order
		return DestinationDown, wentDown(label(h.Subject.ID), b.State)
	case b.Went != destination.Up && b.State.Phase == destination.Up:
		return DestinationUp, cameUp(label(h.Subject.ID), b.State)
	}
	return "", nil
}

// wentDown says since when a destination is down, and why.
func wentDown(name string, s *destination.State) any {
	outage := &s.Outage
	return object{"destination": name, "cause": outage.Cause, "since": decision.Instant(outage.Since),
		"failed": outage.Failed, "admitted": outage.Admitted}
}

// cameUp says how long a destination was not up, and what it took.
func cameUp(name string, s *destination.State) any {
	outage := &s.Outage
	return object{"destination": name, "since": decision.Instant(outage.Since),
		"answeredAt": decision.Instant(outage.Until), "upAt": decision.Instant(s.Since),
		"duration": decision.ISODuration(s.Since.Sub(outage.Since)), "canaries": outage.Tests, "held": outage.Held}
}
