package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"retry-worker/internal/destination"
	"retry-worker/internal/events"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
)

func (s *sim) checkDestination(r *journal.Entry) {
	name := r.Subject.ID
	b, err := journal.BodyOf[journal.DestinationBody](r)
	w := s.portals[name]
	if err == nil && b.Command != nil {
		s.ordered(name, b.Command)
		w.order = r.Record
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
	s.trail.state(name, r.At, b.State)
	s.checkOrder(name, b.State)
	s.checkOutage(name, b.State)
}

// canaryOf returns the gate's job of the claim that a portal is tested with; nil where there is none.
func (s *sim) canaryOf(b *destination.State) *job { return s.jobs[b.Canary.Claim] }

// checkOutage: an outage goes on until its portal is up, and a pause as long as that asked for.
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
	if time.Since(w.paused.since) > actTime && time.Until(w.paused.until) > clocksApart && time.Since(w.treated) > longestPause &&
		now.Phase != destination.Down && now.Flow.PauseUntil.Before(w.paused.until.Add(-clocksApart)) {
		s.fail("%s asked to wait until %s, and is %s", name, w.paused.until.Sub(s.began), now.Phase)
	}
	w.recorded = recorded{now, time.Now()}
}

// recorded is the state of a portal that was recorded last, and when.
type recorded struct {
	*destination.State
	at time.Time
}

// releaseAt is the pace at which people let claims through, a minute.
const releaseAt = 10

// checkCanary: one at a time goes, not too soon, and after a probe where the portal has one.
func (s *sim) checkCanary(name string, j *job) {
	w := s.portals[name]
	s.say("%s is the canary of %s", j.claim, name)
	if before := w.tested; before != nil && before != j.process && before.phase == atPortal && before.latest() == w.canary && s.begun(before.claim) == 1 && !s.wasStolen(gate.Lease) {
		unheard := s.jobs[w.canary].unheard || slices.MaxFunc([]time.Time{s.started, s.ledSince, s.forgot}, time.Time.Compare).After(before.since)
		if late := before.since.Sub(w.testedAt) > destination.CanaryTimeout-clocksApart; !late || !unheard && time.Since(before.since) > hearTime { // else nobody knows that it went
			s.fail("%s is the canary of %s, and %s is at the portal still", j.claim, name, before.claim)
		}
	}
	since := time.Since(w.testedAt)
	if !w.probed { // else a probe may have been under way
		since = min(since, time.Since(w.wasUp))
	}
	least := leastApart
	if !w.probed && w.testedAt.After(w.wasUp) && w.testedAt.After(w.ramped) && !w.word.IsZero() {
		least = nextApart
	}
	if since < min(least, time.Since(s.jumped)) && !s.isSlow() && w.testedAt.Sub(w.ordered) > actTime && time.Since(s.ledSince) > 2*time.Minute {
		s.fail("%s is the canary of %s, %s after the last one, or after it went down", j.claim, name, since)
	}
	if j.process.latest() != j.key || j.done { // who let it through at once was not heard of: the next may go
		return
	}
	if up := s.up(); !s.calm && len(up) > 0 && s.sometimes("holds a portal as its canary goes", 1, 12) { // and thinks better of it
		up[0].orderSoon(name, time.Second, 0)
		up[0].orderSoon(name, 6*time.Second, 3)
	}
	w.tested, w.canary, w.word, w.testedAt = j.process, j.key, time.Time{}, w.recorded.at
}

// Canaries are leastApart, and the first from when its portal went down; nextApart those of an outage that is not
// probed. Both are less what a record may take, and what clocks may be apart.
const leastApart, nextApart = 30 * time.Second, 210 * time.Second

// probeURL is what a portal's name follows in its URL, which is asked every probeEvery (R28); probeAnew is how long a portal
// whose probes fail is not tested otherwise.
const probeURL, probeEvery, probeAnew = "https://portal.example/", 5 * time.Minute, time.Hour

// probe asks a portal whether it answers.
func (r *replica) probe(_ context.Context, url string, _ []int) bool {
	name := strings.TrimPrefix(url, probeURL)
	r.port(r.name + " probes " + name)
	if !r.calm && r.draw("slow probe").IntN(10) == 0 { // a person orders meanwhile that nobody goes
		r.order(name, 0)
		r.Rest(r.life, 2*time.Second)
		r.port(r.name + " has probed " + name)
	}
	w, problem := r.portals[name], r.portals[name].problem(r.sim, r.draw("probe "+name))
	well := problem == "" || problem == permanentError // of a claim
	if w.probing.IsZero() || well == (w.bad > 0) {     // else as before
		r.say("%s probes %s, which answers: %t", r.name, name, well)
	}
	w.bad++
	w.probing = time.Now()
	if well {
		w.bad = 0
	}
	return well
}

// heardOf notes that what came of a canary is recorded.
func (s *sim) heardOf(of journal.SentJob) {
	if w := s.portals[of.Destination]; w != nil && w.canary == of.JobKey {
		w.word = time.Now()
	}
}

// wordTime is how long a portal may be tested still when its canary's outcome, or what a person orders, is recorded.
const wordTime = 5 * time.Minute

// checkOrder: what a person orders stands until the time that he said, or he orders something else; a portal that refused a
// claim for coming too fast is given less.
func (s *sim) checkOrder(name string, is *destination.State) {
	w := s.portals[name]
	if c := w.command; w.order == 0 && time.Until(c.Until) > clocksApart {
		held, up := c.Verb == destination.HoldClaims, c.Verb == destination.TreatAsUp
		if held && (is.Phase != destination.Down || !is.HeldUntil.Equal(c.Until)) || up && (is.Phase != destination.Up || !is.UpUntil.Equal(c.Until)) {
			s.fail("%s was ordered: %s until %s, and is %s, held until %s, up until %s", name, c.Verb, c.Until, is.Phase, is.HeldUntil, is.UpUntil)
		}
	}
	if time.Since(w.heard) > actTime && s.undisturbed(w, w.heard.Add(-actTime)) && is.Flow.LimitAt.Before(w.limited) {
		s.fail("%s refused a claim of %s for coming too fast, and was given less at %s", name, w.limited, is.Flow.LimitAt)
	}
}

// seenByPeople: each replica shows of portals what is recorded, unless something is being recorded, as at a first look.
func (s *sim) seenByPeople(first bool) {
	if min(time.Since(s.seenAt), time.Since(s.storeAway), time.Since(s.forgot), time.Since(s.started)) < actTime {
		return
	}
	for _, r := range s.up() {
		all, _ := r.gates.Destinations()
		for _, d := range all {
			w, n, oldest, nearest := s.portals[d.Name], 0, time.Time{}, time.Time{}
			for key, is := range s.waits {
				if _, left := s.left[key]; !left && is.Destination == d.Name {
					if n++; oldest.IsZero() || is.Since.Before(oldest) {
						oldest = is.Since
					}
					if by := w.sendBy(is.Deadline); !by.IsZero() && (nearest.IsZero() || by.Before(nearest)) {
						nearest = by
					}
				}
			}
			if d.Held != n || !d.Oldest.Equal(oldest) || !d.Deadline.Equal(nearest) && !w.hoursChanged() || d.Unrecorded != (w.order > 0) || w.recorded.State != nil && d.State.Phase != w.recorded.Phase {
				if first {
					s.in(actTime, func() { s.seenByPeople(false) })
					return
				}
				s.fail("%s shows of %s: %s, unrecorded: %t, %d wait since %s with a deadline at %s, and it is %v, %d wait since %s, at %s", r.name, d.Name,
					d.State.Phase, d.Unrecorded, d.Held, d.Oldest.Sub(s.began), d.Deadline, w.recorded.State, n, oldest.Sub(s.began), nearest)
			}
		}
	}
}

// unprobed: a portal with a URL is asked by it as often as its settings say, unless a person holds it.
func (s *sim) unprobed() {
	for _, name := range s.portalNames() {
		w := s.portals[name]
		held := time.Since(w.ordered) < atOnce || w.recorded.State != nil && !w.recorded.HeldUntil.IsZero()
		if most := probeEvery + lateness; w.probed && !held && min(time.Since(w.probing), time.Since(w.recorded.at), w.openSince(), s.quiet(w, w.probing)) > most {
			s.fail("nobody asks %s by its URL since %s", name, w.probing.Sub(s.began))
		}
	}
}

// untaken: nobody waits for what came of a canary once that is recorded, and no canary waits itself.
func (s *sim) untaken() {
	for _, name := range s.portalNames() {
		w := s.portals[name]
		if b := w.recorded; b.State != nil && b.Phase == destination.Testing && s.quiet(w, b.at) > lateness {
			if j := s.canaryOf(b.State); j != nil && j.process.latest() == j.key && s.isWaiting(j.process) {
				s.fail("%s is tested with %s, which waits at its gate", name, j.claim)
			}
		}
		j := s.jobs[w.canary]
		if b := w.recorded; !w.word.IsZero() && !j.two && s.begun(j.claim) == 1 && b.Phase == destination.Testing && b.Canary.Claim == w.canary &&
			min(time.Since(w.word), time.Since(s.storeAway), time.Since(s.ledSince)) > wordTime {
			s.fail("%s is tested still, and since %s is recorded what came of the canary", name, w.word.Sub(s.began))
		}
	}
}
