package sim

import (
	"slices"
	"strconv"
	"time"

	"retry-worker/internal/destination"
	"retry-worker/internal/events"
	"retry-worker/internal/journal"
)

func (s *sim) checkDestination(r *journal.Record) {
	name := r.Subject.ID
	b, err := journal.BodyOf[journal.DestinationBody](r.Entry)
	w := s.portals[name]
	if err == nil && b.Command != nil {
		s.ordered(name, b.Command)
		w.order = r.Number()
	}
	if err != nil || b.State == nil {
		return
	}
	if b.Follows >= w.order {
		w.order = 0
	}
	i := slices.IndexFunc(s.processes, func(p *process) bool {
		is := s.waits[p.latest()] // who is given up is no more in the queue
		return p.portal == name && s.isWaiting(p) && time.Since(is.since) > actTime && time.Until(w.lastChance(&is.HeldJob)) > clocksApart
	})
	if b.Went == destination.Down && b.State.Phase == destination.Up && b.State.Flow.Limit == 0 && time.Since(w.treated) > atOnce && w.treated.Before(w.recorded.at) && i >= 0 {
		p := s.processes[i]
		s.fail("%s was %s and is up, %s waits since %s, and nobody said so", name, b.Went, p.claim, s.waits[p.latest()].since.Sub(s.began))
	}
	s.say("%s is %s, its outage since %s; version %d", name, b.State.Phase, b.State.Outage.Since.Sub(s.began), b.Version)
	if w.version++; b.Version != w.version {
		s.fail("%s is recorded as version %d, not %d", name, b.Version, w.version)
	}
	s.trail.state(name, r.Entry.At, b.State)
	s.checkOrder(name, b.State)
	s.checkOutage(name, b.State)
	s.checkRamp(name, b.State)
}

// canaryOf returns the gate's job of the claim that a portal is tested with; nil where there is none.
func (s *sim) canaryOf(b *destination.State) *job {
	key, _ := strconv.ParseInt(b.Canary.Claim, 10, 64)
	return s.jobs[key]
}

// checkOutage: an outage goes on until its portal is up.
func (s *sim) checkOutage(name string, now *destination.State) {
	w, b := s.portals[name], s.portals[name].recorded
	if b.State != nil && b.Phase != destination.Up && now.Phase != destination.Up && !w.treated.After(b.at.Add(-time.Minute)) &&
		(!now.Outage.Since.Equal(b.Outage.Since) || now.Outage.FailedRamps < b.Outage.FailedRamps) {
		s.fail("%s has an outage since %s, and another began at %s before it was up", name, b.Outage.Since, now.Outage.Since)
	}
	was := b.State == nil || b.Phase == destination.Up
	switch {
	case was && now.Phase != destination.Up && now.Phase != destination.Ramping:
		s.expect(events.DestinationDown, name)
	case !was && now.Phase == destination.Up:
		s.expect(events.DestinationUp, name)
	}
	if was {
		w.wasUp = time.Now()
		if now.Phase == destination.Ramping && (now.Outage.Since.IsZero() || b.State != nil && now.Outage.Since.Equal(b.Outage.Since)) {
			s.fail("%s was up, and ramps", name)
		}
	}
	if now.Phase == destination.Ramping {
		w.ramped = time.Now()
		s.leave("ramp", 3)
	}
	if now.Phase != destination.Up {
		w.row = nil
	}
}

// recorded is the state of a portal that was recorded last, and when.
type recorded struct {
	*destination.State
	at time.Time
}

// checkRamp: a portal gets no more than it asked for, or a person said.
func (s *sim) checkRamp(name string, now *destination.State) {
	w := s.portals[name]
	if time.Since(w.paused.since) > actTime && time.Until(w.paused.until) > clocksApart && time.Since(w.treated) > longestPause &&
		now.Phase != destination.Down && now.Flow.PauseUntil.Before(w.paused.until.Add(-clocksApart)) {
		s.fail("%s asked to wait until %s, and is %s", name, w.paused.until.Sub(s.began), now.Phase)
	}
	if now.Phase == destination.Ramping && now.Flow.Fixed && now.Flow.Ramp > releaseAt {
		s.fail("a person lets %d claims a minute through to %s, and the pace is %.2f", releaseAt, name, now.Flow.Ramp)
	}
	w.recorded = recorded{now, time.Now()}
}

// releaseAt is the pace at which people let claims through, a minute.
const releaseAt = 10
