package events

import (
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
)

// destinationEvent returns the begin or the end of an outage; no data where h is neither.
func destinationEvent(h *journal.Happening) (name string, says data) {
	if h.Entry == nil || h.Entry.Kind != journal.DestinationEntry {
		return "", nil
	}
	b, err := journal.ReadDestination(h.Entry)
	switch {
	case err != nil || b.State == nil || b.Went == "":
		return "", nil
	case b.Went == destination.Up && b.State.Phase != destination.Ramping: // which a person may order
		return DestinationDown, func(o object, h *journal.Happening) object { return wentDown(o, h.Subject.ID, b.State) }
	case b.Went != destination.Up && b.State.Phase == destination.Up:
		return DestinationUp, func(o object, h *journal.Happening) object { return cameUp(o, h.Subject.ID, b.State) }
	}
	return "", nil
}

// wentDown says since when a destination is down, and why.
func wentDown(o object, name string, s *destination.State) object {
	outage := &s.Outage
	return append(append(o, '{').text("destination", name).text("cause", string(outage.Cause)).
		text("since", decision.Instant(outage.Since)).
		number("failed", int64(outage.Failed)).number("admitted", int64(outage.Admitted)), '}')
}

// cameUp says how long a destination was not up, and what it took.
func cameUp(o object, name string, s *destination.State) object {
	outage := &s.Outage
	return append(append(o, '{').text("destination", name).text("since", decision.Instant(outage.Since)).
		text("answeredAt", decision.Instant(outage.Until)).text("upAt", decision.Instant(s.Since)).
		text("duration", decision.ISODuration(s.Since.Sub(outage.Since))).number("canaries", int64(outage.Tests)).
		number("held", int64(outage.Held)), '}')
}
