package sim

import (
	"context"
	"slices"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

// fails and answers note what is recorded of a portal.
func (w *portal) fails() {
	w.failures, w.row = append(w.failures, time.Now()), append(w.row, time.Now())
}

func (w *portal) answers() { w.answered, w.row = append(w.answered, time.Now()), nil }

// unfollowed: what people order of a portal is followed.
func (s *sim) unfollowed() {
	for _, name := range s.portalNames() {
		w := s.portals[name]
		if w.order > 0 && min(time.Since(w.ordered), time.Since(s.ledSince), time.Since(s.storeAway), time.Since(s.started)) > wordTime {
			s.fail("%s was ordered about at %s, and nobody follows", name, w.ordered.Sub(s.began))
		}
	}
}

// since is how many instants are no longer ago than that.
func since(all []time.Time, ago time.Duration) (n int) {
	for _, at := range all {
		if time.Since(at) <= ago {
			n++
		}
	}
	return n
}

const (
	// hearTime is how long a replica may not know what was recorded, while it reads that.
	hearTime = 3 * time.Second
	// failedWithin is how long failures speak for a portal being down, at most; inARow are, whenever they were.
	failedWithin = 2*time.Minute + clocksApart
	inARow       = 5
	// longestPause is how long a portal may ask claims to wait.
	longestPause = 15 * time.Minute
	// goneWithin is how long claims may wait for a portal that is up, at most.
	goneWithin = 25 * time.Minute
)

// isWaiting reports whether a claim is recorded as held, and did not leave.
func (s *sim) isWaiting(p *process) bool {
	key := p.latest()
	_, waits := s.waits[key]
	_, left := s.left[key]
	return p.ended == "" && waits && !left
}

// anybodyWaits reports whether a claim waits at the gate of a portal.
func (s *sim) anybodyWaits(portal string) bool {
	return slices.ContainsFunc(s.processes, func(p *process) bool { return p.portal == portal && s.isWaiting(p) })
}

// checkWaiting: a claim does not wait at the gate of a portal that is up, nor for longer than people need to act on it.
func (s *sim) checkWaiting(p *process, most time.Duration) {
	if !s.isWaiting(p) {
		return
	}
	is := s.waits[p.latest()]
	w := s.portals[p.portal]
	giveUp, calm := w.lastChance(&is.HeldJob), min(time.Since(is.since), time.Since(s.away))
	if late := time.Since(giveUp); min(late, time.Since(w.changed), calm) > most || min(late, s.quiet(w, is.since)) > atOnce {
		s.fail("%s waits at a gate %s after it was to be given up", p.claim, time.Since(giveUp))
	}
	if b := w.recorded; s.down(p.portal, 0) {
		last := slices.MaxFunc([]time.Time{b.Outage.Since, b.Outage.LastTest, b.HeldUntil, b.Since}, time.Time.Compare)
		idle := min(time.Since(last), calm, w.openSince(), time.Since(s.storeAway), time.Since(s.ledSince), time.Since(s.jumped))
		most := longestPause
		if w.probed {
			most = probeAnew
		}
		if idle > most+lateness+s.apart() {
			s.fail("%s waits, and nobody tests %s since %s", p.claim, p.portal, last.Sub(s.began))
		}
	}
	if b := w.recorded; b.State != nil && b.Phase == destination.Up && !w.held.holds() &&
		min(time.Since(b.Since), time.Since(w.paused.until), calm, w.openSince()) > goneWithin && time.Since(s.started) > lateness {
		s.fail("%s waits at the gate of %s since %s, which is up since %s", p.claim, p.portal, is.since.Sub(s.began), b.Since.Sub(s.began))
	}
}

// quiet is how long nothing has disturbed who acts on a claim that waits for a portal since then.
func (s *sim) quiet(w *portal, since time.Time) time.Duration {
	return time.Since(slices.MaxFunc([]time.Time{since, w.changed, s.away, s.storeAway, s.ledSince, s.started, s.jumped, s.forgot}, time.Time.Compare))
}

// undisturbed reports whether nothing has disturbed who acts for a portal since then.
func (s *sim) undisturbed(w *portal, since time.Time) bool {
	return s.quiet(w, time.Time{}) > time.Since(since)
}

// lastChance is when a claim is to be given up: people need an hour for it, or half of the time that it had.
func (w *portal) lastChance(h *journal.HeldJob) time.Time {
	last := w.sendBy(h.Deadline)
	if last.IsZero() || !h.Limit.IsZero() && h.Limit.Before(last) {
		last = h.Limit
	}
	if last.IsZero() { // never
		return h.Since.AddDate(100, 0, 0)
	}
	return last.Add(-min(time.Hour, max(last.Sub(h.Since)/2, 0)))
}

// waiting is how a claim waits at a gate, and since when.
type waiting struct {
	journal.HeldJob
	since time.Time
}

// departed is how a claim left a gate, and when.
type departed struct {
	journal.GateBody
	at, recorded time.Time
}

// unanswered is a claim that was let go a while ago, which the engine was not told; nil for none.
func (s *sim) unanswered() *process {
	i := slices.IndexFunc(s.processes, func(p *process) bool {
		l, left := s.left[p.latest()]
		return left && p.phase == worker.SubmissionGate && !s.isSlow() && min(time.Since(l.at), time.Since(s.away)) > actTime
	})
	if i < 0 {
		return nil
	}
	return s.processes[i]
}

// limited reports whether the policies set portals a pace, and all replicas know.
func (s *sim) limited() bool {
	return s.settings.Destinations.Named["portal-0"].Pace.Limited && time.Since(s.configured) > time.Minute
}

// admit asks the gates, and holds against what may be what they let through.
func (r *replica) admit(name string, job int64, deadline time.Time) bool {
	admits := r.gates.Admit(name, job, deadline)
	if admits {
		r.admitted(get(&r.mu, &r.settings).Destinations.Label(name))
	}
	return admits
}

// admitted: a replica lets a claim through at once while the portal is up. Where that has a pace, only the one that acts does,
// and only where nobody waits.
func (r *replica) admitted(name string) {
	w := r.portals[name]
	paused := w.paused.holds() && r.started.Before(w.paused.since)          // who started since may not know
	down := r.down(name, noLongerDown) && since(w.answered, 2*actTime) == 0 // else it ramps, and that is being recorded, by writes that may hang
	if w.isClosed() {
		r.fail("%s lets a claim through to %s, which is closed until %s", r.name, name, w.nextOpen(time.Now()).Sub(r.began))
	}
	if (down || w.held.holds() || paused) && time.Since(w.treated) > longestPause {
		r.fail("%s lets a claim through to %s at once, which is held until %s, and asked to wait until %s", r.name, name, w.held.until, w.paused.until)
	}
	if !r.limited() {
		return
	}
	r.leads(gate.Lease)
	r.paced(name, false)
	known := hearTime
	if time.Since(r.led) < actTime {
		known = actTime
	}
	for _, p := range r.processes {
		if from := r.waits[p.latest()].since; p.portal == name && r.isWaiting(p) && time.Since(from) > known && !r.isSlow() {
			r.fail("%s lets a claim through to %s, and %s waits since %s", r.name, name, p.claim, from.Sub(r.began))
		}
	}
}

func (s *sim) checkGate(r *journal.Entry) {
	b, err := journal.BodyOf[journal.GateBody](r)
	if err != nil {
		s.fail("record %d: %v", r.Record, err)
		return
	}
	s.trail.held(&b)
	s.tally.gate(r.Subject.ID, &b, r.At)
	w := s.portals[b.Destination]
	if l, left := s.left[b.JobKey]; left && time.Since(l.at) >= departedFor { // nobody knows that any more
		return
	}
	if _, waits := s.waits[b.JobKey]; waits && b.Action == journal.GateHeld {
		s.fail("job %d is held at the gate of %s twice", b.JobKey, b.Destination)
	}
	if b.Action == journal.GateReleased {
		s.paced(b.Destination, true)
	}
	if before, departed := s.left[b.JobKey]; departed && b.Action != journal.GateAnswered {
		s.fail("job %d is %s at the gate of %s, and was %s", b.JobKey, b.Action, b.Destination, before.Action)
	}
	if p := s.unanswered(); p != nil && b.Action == journal.GateReleased {
		s.fail("job %d is let go, and the engine was not told that %s is", b.JobKey, p.claim)
	}
	if b.Action == journal.GateReleased || b.Action == journal.GateGivenUp {
		s.left[b.JobKey] = departed{b, time.Now(), r.At}
		if j := s.jobs[b.JobKey]; time.Since(b.Since) > clocksApart && s.sometimes("offered as it goes", 1, 10) { // all know that it waits
			s.offerAgain(j, time.Duration(s.draw("offered when").IntN(500))*time.Millisecond)
		} else if b.Kind == destination.Pass && !s.steady && !s.anybodyWaits(b.Destination) &&
			s.sometimes("engine away as the last one goes", 1, 6) { // and gives it to somebody as it is back
			s.goAway(20 * time.Second)
			s.offerAgain(j, 20*time.Second+time.Millisecond)
		}
	}
	switch goes := b.Action == journal.GateReleased && b.Kind != destination.Test; {
	case goes && s.down(b.Destination, noLongerDown):
		s.fail("job %d is let go: %s, and %s is down", b.JobKey, b.Kind, b.Destination)
	case goes && w.paused.holds() && time.Since(w.treated) > longestPause:
		s.fail("job %d is let go, and %s asked to wait until %s", b.JobKey, b.Destination, w.paused.until.Sub(s.began))
	case b.Action == journal.GateReleased && w.isClosed():
		s.fail("job %d is let go: %s, and %s is closed until %s", b.JobKey, b.Kind, b.Destination, w.nextOpen(time.Now()).Sub(s.began))
	case b.Action == journal.GateReleased && w.held.holds():
		s.fail("job %d is let go: %s, and a person holds %s", b.JobKey, b.Kind, b.Destination)
	}
	switch j := s.jobs[b.JobKey]; {
	case b.Action == journal.GateReleased && b.Kind == destination.Test:
		s.checkCanary(b.Destination, j)
	case b.Action == journal.GateGivenUp:
		d := journal.DeadLetter{ID: b.DeadLetter, Episode: b.Episode, Outcome: decision.MaxRetriesExceeded, Reason: b.GiveUp, Team: b.Team, Destination: b.Destination,
			RetryCount: b.Retries, MaxRetries: b.MaxRetries, Context: b.Context, Deadline: b.Deadline, ProcessInstanceKey: b.ProcessInstanceKey,
			FirstFailure: s.tally.episodes[r.Subject.ID].first, PossiblyAccepted: s.tally.episodes[r.Subject.ID].doubt}
		if a := s.last[r.Subject.ID]; a != nil && !b.Opens {
			d.Fingerprint = a.Fingerprint
		}
		s.born(r.Subject.ID, r.Record, r.At, &d)
		s.expect("MaxRetriesExceeded", r.Subject.ID)
		limit := b.Deadline.IsZero() || !b.Limit.IsZero() && b.Limit.Before(w.sendBy(b.Deadline))
		early := w.lastChance(&b.HeldJob).Sub(r.At)
		if !w.hoursChanged() && (early > clocksApart || limit != (b.GiveUp == decision.ReasonTimeLimit)) {
			s.fail("%s is given up for %s %s before its time", j.claim, b.GiveUp, early)
		}
		if late := min(-early, s.quiet(w, s.waits[b.JobKey].since)); late > lateness {
			s.fail("%s is given up %s after its time", j.claim, late)
		}
	case b.Action == journal.GateHeld:
		s.heldWell(r.Subject, &b, j)
		s.waits[b.JobKey] = waiting{b.HeldJob, time.Now()}
		s.say("%s is held", j.claim)
		if deadline := b.Deadline; !deadline.IsZero() && s.sometimes("hours change", 1, 12) {
			s.in(time.Duration(s.draw("when hours change").IntN(20))*time.Minute, func() { s.changeHours(b.Destination, deadline) })
		}
	case b.Action == journal.GateReleased:
		s.say("%s is let go: %s", j.claim, b.Kind)
	}
}

// departedFor is how long it is remembered that a claim was let go.
const departedFor = 3 * time.Hour

// heldWell: a claim waits with the count and the clock of its retries (R27); what a person sent late counts no more (R29).
func (s *sim) heldWell(of journal.Subject, b *journal.GateBody, j *job) {
	w := s.portals[b.Destination]
	want := journal.HeldJob{Deadline: j.deadline, Limit: w.openFor(s.limit, b.Since)}
	told, _, _ := s.memory.Story(context.Background(), of)
	if n := len(told.Episodes) - 1; n >= 0 {
		switch e := &told.Episodes[n]; e.State {
		case journal.Reprocessing, journal.Scheduled:
			if !b.Since.After(w.openFor(s.limit, e.NextRetryTime)) { // else it is abandoned, and begins anew
				want.Limit, want.Retries = w.openFor(s.limit, e.FirstFailure), e.Retries
			}
			if e.State != journal.Reprocessing {
				break
			}
			if !want.Limit.After(b.Since) {
				want.Limit = time.Time{}
			}
			if by := s.letter(e.DeadLetter).Review; !by.Deadline.IsZero() { // another process was told of that
				want.Deadline = by.Deadline
			} else if !want.Deadline.After(b.Since) && (by.Force || !want.Deadline.After(by.NextRetryTime)) {
				want.Deadline = time.Time{}
			}
		}
	}
	if b.Retries != want.Retries || !b.Limit.Equal(want.Limit) && !w.hoursChanged() || !b.Deadline.Equal(want.Deadline) {
		s.fail("%s is held after %d retries until %s or %s, and has made %d: until %s or %s", j.claim, b.Retries, b.Limit, b.Deadline,
			want.Retries, want.Limit, want.Deadline)
	}
}

// noLongerDown is how long a replica that lost its lease may take a portal for up that is down; actTime is how long one
// that acts may be at what it began.
const noLongerDown, actTime = time.Minute, 30 * time.Second

// down reports whether a portal is recorded as down for that long.
func (s *sim) down(name string, long time.Duration) bool {
	b := s.portals[name].recorded
	return b.State != nil && (b.Phase == destination.Down || b.Phase == destination.Testing) && time.Since(b.Since) > long
}
