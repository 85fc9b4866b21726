package sim

import (
	"time"

	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
)

// checkOutage: an outage goes on until its portal is up.
func (s *sim) checkOutage(name string, now *destination.State) {
	if b := s.outages[name]; b != nil && b.Phase != destination.Up && now.Phase != destination.Up &&
		(!now.Outage.Since.Equal(b.Outage.Since) || now.Outage.FailedRamps < b.Outage.FailedRamps) {
		s.fail("%s has an outage since %s, and another began at %s before it was up", name, b.Outage.Since, now.Outage.Since)
	}
	s.outages[name] = now
}

func (s *sim) checkGate(r *journal.Record) {
	b, err := journal.ReadGate(r.Entry)
	if err != nil {
		s.fail("record %d: %v", r.Number(), err)
		return
	}
	s.trail.held(&b)
	if before, departed := s.left[b.JobKey]; departed && b.Action != journal.GateAnswered {
		s.fail("job %d is %s at the gate of %s, and was %s", b.JobKey, b.Action, b.Destination, before.Action)
	}
	if b.Action == journal.GateReleased || b.Action == journal.GateGivenUp {
		s.left[b.JobKey] = b
	}
	switch goes := b.Action == journal.GateReleased && b.Kind != destination.Test; {
	case goes && s.down(b.Destination, noLongerDown):
		s.fail("job %d is let go: %s, and %s is down", b.JobKey, b.Kind, b.Destination)
	case goes && s.isHeld(b.Destination):
		s.fail("job %d is let go: %s, and a person holds %s", b.JobKey, b.Kind, b.Destination)
	}
	switch j := s.jobs[b.JobKey]; {
	case b.Action == journal.GateReleased && b.Kind == destination.Test:
		s.say("%s is the canary of %s", j.claim, b.Destination)
		if before := s.tested[b.Destination]; before != nil && before != j.process && before.phase == "portal" {
			s.fail("%s is the canary of %s, and %s is at the portal still", j.claim, b.Destination, before.claim)
		}
		s.tested[b.Destination] = j.process
	case b.Action == journal.GateHeld:
		s.say("%s is held", j.claim)
	case b.Action == journal.GateReleased:
		s.say("%s is let go: %s", j.claim, b.Kind)
	}
}

// noLongerDown is how long a replica that lost its lease may take a portal for up that is down.
const noLongerDown = time.Minute

// down reports whether a portal is recorded as down for that long.
func (s *sim) down(name string, long time.Duration) bool {
	e := s.phases[name]
	if e == nil {
		return false
	}
	b, err := journal.ReadDestination(e)
	return err == nil && (b.State.Phase == destination.Down || b.State.Phase == destination.Testing) && time.Since(e.At) > long
}

// hold is a person's order to hold all claims.
type hold struct{ since, until time.Time }

// ordered notes what a person holds.
func (s *sim) ordered(name string, c *journal.DestinationCommand) {
	delete(s.held, name)
	switch c.Verb {
	case journal.HoldClaims:
		s.held[name] = hold{time.Now(), c.Until}
	case journal.TreatAsUp, journal.ReleaseAt:
		s.treated[name] = time.Now()
	}
}

// isHeld reports whether a person holds the claims of a portal, beside what clocks are apart.
func (s *sim) isHeld(name string) bool {
	h := s.held[name]
	return time.Since(h.since) > noLongerDown && time.Until(h.until) > clocksApart
}
