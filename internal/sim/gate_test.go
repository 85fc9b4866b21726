package sim

import (
	"fmt"
	"slices"
	"time"

	"retry-worker/internal/destination"
	"retry-worker/internal/journal"
)

func (s *sim) checkDestination(r *journal.Record) {
	name := r.Subject.ID
	b, err := journal.ReadDestination(r.Entry)
	if err == nil && b.Command != nil {
		s.ordered(name, b.Command)
	}
	if err != nil || b.State == nil {
		return
	}
	if b.Went != "" {
		s.phases[name] = r.Entry
	}
	waits := func(p *process) bool { return p.portal == name && s.isWaiting(p) }
	if b.Went == destination.Down && b.State.Phase == destination.Up && time.Since(s.treated[name]) > clocksApart &&
		slices.ContainsFunc(s.processes, waits) {
		s.fail("%s was %s and is up, claims wait, and nobody said so", name, b.Went)
	}
	s.say("%s is %s, its outage since %s; version %d", name, b.State.Phase, b.State.Outage.Since.Sub(s.began), b.Version)
	s.trail.state(name, r.Entry.At, b.State)
	s.checkOutage(name, b.State, b.Version)
}

// checkOutage: an outage goes on until its portal is up.
func (s *sim) checkOutage(name string, now *destination.State, version int64) {
	if b := s.outages[name]; b != nil && b.Phase != destination.Up && now.Phase != destination.Up &&
		(!now.Outage.Since.Equal(b.Outage.Since) || now.Outage.FailedRamps < b.Outage.FailedRamps) {
		s.fail("%s has an outage since %s, and another began at %s before it was up", name, b.Outage.Since, now.Outage.Since)
	}
	was := s.outages[name] == nil || s.outages[name].Phase == destination.Up
	if was {
		s.wasUp[name] = time.Now()
	}
	if o := now.Outage; was && now.Phase == destination.Down && o.Cause == destination.CauseFailures {
		late := slices.DeleteFunc(slices.Clone(s.failures[name]), func(at time.Time) bool { return time.Since(at) > failedWithin })
		if most := max(len(late), inARow); o.Failed > most {
			s.fail("%s is down as %d of %d claims failed, and %d did", name, o.Failed, o.Admitted, most)
		}
	}
	s.outages[name] = now
	if now.Phase == destination.Ramping && !s.calm && s.draw("engine away in a ramp").IntN(3) == 0 && s.may(fmt.Sprint("away in ramp of ", name, " ", version)) {
		s.away = time.Now().Add(time.Duration(s.draw("away in a ramp").IntN(120)) * time.Second)
	}
}

const (
	// failedWithin is how long failures speak for a portal being down, at most; inARow are, whenever they were.
	failedWithin = 2*time.Minute + clocksApart
	inARow       = 5
	// goneWithin is how long claims may wait for a portal that is up, at most.
	goneWithin = 25 * time.Minute
)

// isWaiting reports whether a claim is recorded as held, and did not leave.
func (s *sim) isWaiting(p *process) bool {
	key := p.key + 10*p.jobs
	_, waits := s.waits[key]
	_, left := s.left[key]
	return p.ended == "" && waits && !left
}

// checkWaiting: a claim does not wait at the gate of a portal that is up, nor for longer than people need to act on it.
func (s *sim) checkWaiting(p *process, most time.Duration) {
	if !s.isWaiting(p) {
		return
	}
	since := s.waits[p.key+10*p.jobs]
	giveUp, calm := p.deadline.Add(-min(time.Hour, max(p.deadline.Sub(since)/2, 0))), min(time.Since(since), time.Since(s.away))
	if !p.deadline.IsZero() && min(time.Since(giveUp), calm) > most {
		s.fail("%s waits at a gate %s after it was to be given up", p.claim, time.Since(giveUp))
	}
	if b := s.outages[p.portal]; b != nil && b.Phase == destination.Up && min(time.Since(b.Since), calm) > goneWithin && !s.isHeld(p.portal) {
		s.fail("%s waits at the gate of %s since %s, which is up since %s", p.claim, p.portal, since.Sub(s.began), b.Since.Sub(s.began))
	}
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
		s.waits[b.JobKey] = time.Now()
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
