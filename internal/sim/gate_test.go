package sim

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/events"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

func (s *sim) checkDestination(r *journal.Record) {
	name := r.Subject.ID
	b, err := journal.ReadDestination(r.Entry)
	w := s.portals[name]
	if err == nil && b.Command != nil {
		s.ordered(name, b.Command)
		w.order = r.Number()
	}
	if t := b.Traffic; err == nil && t != nil && s.stolen[gate.Lease].IsZero() { // two that lead at once count twice
		w.counts[*t] = true
		s.counted(name, false)
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
	s.checkState(name, b.State, r.Entry.At)
	s.checkOutage(name, b.State)
	s.checkRamp(name, b.State, r.Entry.At)
}

// checkState: nothing that a state says has happened lies ahead; canaries follow one another by the clock, and are counted one by
// one, as ramps that failed are; claims wait as long as their portal asked for, and a rate limit is less than the pace.
func (s *sim) checkState(name string, now *destination.State, at time.Time) {
	w, b, o := s.portals[name], s.portals[name].recorded, &now.Outage
	ahead := func(t time.Time) bool { return t.Sub(at) > clocksApart }
	first, step := firstTest, now.NextTest.Sub(o.LastTest)
	if w.probed {
		first = probeAnew
	}
	right := !ahead(now.Since) && !ahead(now.Canary.Sent) && !ahead(o.LastTest) && !ahead(o.Since) && !ahead(now.Flow.At)
	if now.Phase == destination.Down && now.Since.Equal(o.Since) && o.Cause == destination.CauseFailures && w.ordered.Before(o.Since) && w.bad < 2 && w.well.Before(o.Since.Add(-actTime)) {
		right = right && now.NextTest.Sub(now.Since) == first
	}
	if now.Phase == destination.Testing {
		sent, _ := strconv.ParseInt(now.Canary.Claim, 10, 64)
		j := s.jobs[sent]
		right = right && j != nil && j.portal == name && !now.Canary.Sent.Before(o.LastTest) && (now.Since.After(o.LastTest) || step >= first && step <= max(longestPause, first))
	}
	if b.State != nil && o.Since.Equal(b.Outage.Since) {
		right = right && o.Tests-b.Outage.Tests <= 1 && o.FailedRamps-b.Outage.FailedRamps <= 1
	}
	if f := &now.Flow; b.State != nil && !f.LimitAt.Equal(b.Flow.LimitAt) {
		right = right && f.Limit <= max(1, max(s.paceBefore, s.settings.Configured[name].Pace.Most)/2)
	}
	if !right || now.Flow.PauseUntil.After(w.asks.Add(clocksApart)) {
		s.fail("%s is recorded at %s as %+v, and has asked to wait until %s", name, at, *now, w.asks)
	}
}

// firstTest is after what time the first canary goes.
const firstTest = time.Minute

// checkOutage: an outage goes on until its portal is up.
func (s *sim) checkOutage(name string, now *destination.State) {
	w, b := s.portals[name], s.portals[name].recorded
	if b.State != nil && b.Phase != destination.Up && now.Phase != destination.Up && !w.treated.After(b.at.Add(-time.Minute)) &&
		(!now.Outage.Since.Equal(b.Outage.Since) || now.Outage.FailedRamps < b.Outage.FailedRamps) {
		s.fail("%s has an outage since %s, and another began at %s before it was up", name, b.Outage.Since, now.Outage.Since)
	}
	was := b.State == nil || b.Phase == destination.Up
	outage := outageTold{string(now.Outage.Cause), now.Outage.Failed, now.Outage.Admitted, -1, now.Outage.Since.Truncate(time.Second), ""}
	if now.Phase == destination.Up {
		outage.held, outage.until = now.Outage.Held, now.Since.Truncate(time.Second).Format(time.RFC3339)
	}
	w.outages[outage] = true
	switch {
	case was && now.Phase != destination.Up && now.Phase != destination.Ramping:
		s.expected[said{Kind: events.DestinationDown, Destination: name, Since: decision.Instant(now.Outage.Since), Cause: string(now.Outage.Cause),
			Failed: now.Outage.Failed, Admitted: now.Outage.Admitted}]++
	case !was && now.Phase == destination.Up:
		s.expected[said{Kind: events.DestinationUp, Destination: name, Since: decision.Instant(now.Outage.Since), UpAt: decision.Instant(now.Since),
			AnsweredAt: decision.Instant(now.Outage.Until), Canaries: now.Outage.Tests, Held: now.Outage.Held,
			Duration: decision.ISODuration(now.Since.Sub(now.Outage.Since))}]++
		o, kept := &now.Outage, min(len(b.Lasted)+1, keptOutages)
		if o.Cause != destination.CausePerson && o.Since.Equal(b.Outage.Since) && (len(now.Lasted) != kept || now.Lasted[kept-1].For != o.Until.Sub(o.Since)) {
			s.fail("%s had an outage from %s to %s, and remembers %v, and %v before", name, o.Since, o.Until, now.Lasted, b.Lasted)
		}
	}
	if was {
		w.wasUp = time.Now()
	}
	if now.Phase == destination.Down && was && now.Outage.Cause == destination.CauseProbe && w.bad < 2 && time.Since(w.well) > actTime && s.undisturbed(w, w.well) {
		s.fail("%s is down by its probes, of which %d failed in a row", name, w.bad)
	}
	if o := now.Outage; was && now.Phase == destination.Down && o.Cause == destination.CauseFailures {
		if most := max(since(w.failures, failedWithin), inARow); o.Failed > most || o.Admitted > max(since(w.asked, failedWithin), most) {
			s.fail("%s is down as %d of %d claims failed, and %d did", name, o.Failed, o.Admitted, most)
		}
		from := s.began
		if b.State != nil && !b.Outage.Until.IsZero() {
			from = b.Outage.Until.Add(-s.apart())
		}
		if n := since(w.failures, time.Since(from)); n < inARow {
			s.fail("%s is down after %d failures, since %s", name, n, from.Sub(s.began))
		}
	}
	admitted := 0
	for _, n := range now.Evidence.Admitted {
		admitted += n
	}
	most := since(w.asked, failedWithin) + 1                    // one goes once this is recorded
	if admitted > most && time.Since(s.forgot) > failedWithin { // else some did not go after all
		s.fail("%s counts %d claims that went of late, and %d asked to", name, admitted, most)
	}
	if now.Phase == destination.Ramping {
		w.ramped = time.Now()
		s.leave("ramp", 3)
	}
	if now.Phase != destination.Up {
		w.row = nil
	}
}

// recorded is the state of a portal that was recorded last, and when. Answers since basis count for its pace: until then
// those were known by which it was multiplied last.
type recorded struct {
	*destination.State
	at, basis time.Time
}

// checkRamp: the pace of a ramp is doubled once for each claim that is answered, unless all were.
func (s *sim) checkRamp(name string, now *destination.State, at time.Time) {
	w, b := s.portals[name], s.portals[name].recorded
	if time.Since(w.paused.since) > actTime && time.Until(w.paused.until) > clocksApart && time.Since(w.treated) > longestPause &&
		now.Phase != destination.Down && now.Flow.PauseUntil.Before(w.paused.until.Add(-clocksApart)) {
		s.fail("%s asked to wait until %s, and is %s", name, w.paused.until.Sub(s.began), now.Phase)
	}
	known := recorded{now, time.Now(), time.Now().Add(now.Flow.At.Sub(at) - hearTime)}
	ramped := b.State != nil && b.Phase == destination.Ramping
	if ramped && now.Phase == destination.Ramping && b.Outage.Until.Equal(now.Outage.Until) {
		n, doubled := b.Flow.Answers+since(w.answered, time.Since(b.basis)), math.Log2(now.Flow.Ramp/b.Flow.Ramp)
		if !now.Flow.Fixed && n < b.Flow.Unanswered && doubled > float64(n)+0.01 {
			s.fail("the pace of %s grows from %.2f to %.2f, and %d of %d were answered", name, b.Flow.Ramp, now.Flow.Ramp, n, b.Flow.Unanswered)
		}
		if b.Flow.Stepped.Equal(now.Flow.Stepped) || time.Since(b.at) > 2*actTime/3 { // who acts was at something, and heard late
			known.basis = b.basis
		}
	}
	if b.State != nil && !ramped && now.Phase == destination.Ramping && !now.Flow.Fixed {
		steps := math.Floor(max(at.Sub(now.Since), 0).Seconds()/rampStep) + 1 - float64(min(now.Outage.FailedRamps, 4))
		if now.Flow.Ramp > math.Exp2(steps)+0.01 {
			s.fail("a ramp of %s begins at %.2f a minute after %d that failed", name, now.Flow.Ramp, now.Outage.FailedRamps)
		}
	}
	if now.Phase == destination.Ramping && now.Flow.Fixed && now.Flow.Ramp > releaseAt {
		s.fail("a person lets %d claims a minute through to %s, and the pace is %.2f", releaseAt, name, now.Flow.Ramp)
	}
	failed := ramped && now.Phase == destination.Down && now.Outage.Cause != destination.CausePerson
	if failed && now.Outage.Since.Equal(b.Outage.Since) && now.Outage.FailedRamps <= b.Outage.FailedRamps {
		s.fail("a ramp of %s failed, and is not counted", name)
	}
	if failed && b.Outage.Tests > 0 && w.failed.Before(b.Outage.Until.Add(-s.apart()-time.Second)) {
		s.fail("a ramp of %s ended, and the last claim that failed went at %s", name, w.failed.Sub(s.began))
	}
	w.recorded = known
}

// releaseAt is the pace at which people let claims through, a minute.
const releaseAt = 10

// rampStep is after how many seconds the pace of a ramp may be doubled.
const rampStep = 15

// fails notes a failure that speaks of a portal, and whether it is down by that: most of many claims failed.
func (w *portal) fails() {
	w.failures = append(w.failures, time.Now())
	n := since(w.failures, 100*time.Second)
	w.row = append(w.row, time.Now())
	first := w.row[max(len(w.row)-inARow, 0)]
	row := len(w.row) >= inARow && time.Since(first) < 100*time.Second && since(w.asked, time.Since(first)+time.Duration(w.slowest)*time.Second) <= inARow
	if up := w.recorded.State == nil || w.recorded.Phase == destination.Up; up && w.opens.IsZero() && (row || n >= 20 && since(w.asked, 130*time.Second) <= 2*n) {
		w.opens = time.Now()
	}
}

func (w *portal) answers() { w.answered, w.row = append(w.answered, time.Now()), nil }

// unopened: no claims go to a portal for long where most of many failed.
func (s *sim) unopened() {
	for _, name := range s.portalNames() {
		w := s.portals[name]
		began := w.opens.Add(-failedWithin) // of what is evidence
		if s.down(name, 0) || s.forgot.After(began) || s.ledSince.After(began) || time.Since(w.treated) < longestPause && w.held.since.Before(w.treated) || time.Until(w.upUntil) > -clocksApart ||
			min(time.Since(w.wasUp), time.Since(s.storeAway)) < atOnce {
			w.opens = time.Time{}
		} else if !w.opens.IsZero() && time.Since(w.opens) > actTime {
			s.fail("most claims fail at %s since %s, and it is %v", name, w.opens.Sub(s.began), w.recorded.State)
		}
	}
}

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
	// keptOutages of a portal are remembered.
	keptOutages = 20
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

// admitted: a replica lets a claim through at once where nobody waits, and not just after it joined others.
func (r *replica) admitted(name string) {
	if r.say("%s lets a claim through", r.name); time.Since(r.joined) < joinTime {
		r.fail("%s lets a claim through %s after it joined others", r.name, time.Since(r.joined))
	}
	w := r.portals[name]
	paused := w.paused.holds() && r.started.Before(w.paused.since)        // who started since may not know
	down := r.down(name, noLongerDown) && since(w.answered, actTime) == 0 // else it ramps, and that is being recorded
	if w.isClosed() {
		r.fail("%s lets a claim through to %s, which is closed until %s", r.name, name, w.nextOpen(time.Now()).Sub(r.began))
	}
	if (down || w.held.holds() || paused) && time.Since(w.treated) > longestPause {
		r.fail("%s lets a claim through to %s at once, which is held until %s, and asked to wait until %s", r.name, name, w.held.until, w.paused.until)
	}
	r.paced(name)
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

func (s *sim) checkGate(r *journal.Record) {
	b, err := journal.ReadGate(r.Entry)
	if err != nil {
		s.fail("record %d: %v", r.Number(), err)
		return
	}
	s.trail.held(&b)
	s.tally.gate(r.Subject.ID, &b, r.Entry.At)
	w := s.portals[b.Destination]
	if l, left := s.left[b.JobKey]; left && time.Since(l.at) >= departedFor { // nobody knows that any more
		return
	}
	if _, waits := s.waits[b.JobKey]; waits && b.Action == journal.GateHeld {
		s.fail("job %d is held at the gate of %s twice", b.JobKey, b.Destination)
	}
	if b.Action == journal.GateReleased {
		s.paced(b.Destination)
	}
	if before, departed := s.left[b.JobKey]; departed && b.Action != journal.GateAnswered {
		s.fail("job %d is %s at the gate of %s, and was %s", b.JobKey, b.Action, b.Destination, before.Action)
	}
	if p := s.unanswered(); p != nil && b.Action == journal.GateReleased {
		s.fail("job %d is let go, and the engine was not told that %s is", b.JobKey, p.claim)
	}
	if b.Action == journal.GateReleased || b.Action == journal.GateGivenUp {
		s.left[b.JobKey] = departed{b, time.Now(), r.Entry.At}
		w.asked = append(w.asked, time.Now())
		if j := s.jobs[b.JobKey]; time.Since(b.Since) > clocksApart && s.sometimes("offered as it goes", 1, 10) { // all know that it waits
			j.locked = time.Time{}
			s.offer(j, time.Duration(s.draw("offered when").IntN(500))*time.Millisecond)
		} else if b.Kind == destination.Pass && !s.steady && !slices.ContainsFunc(s.processes, func(p *process) bool { return p.portal == b.Destination && s.isWaiting(p) }) &&
			s.sometimes("engine away as the last one goes", 1, 6) { // and gives it to somebody as it is back
			s.goAway(20 * time.Second)
			j.locked = time.Time{}
			s.offer(j, 20*time.Second+time.Millisecond)
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
	case b.Action == journal.GateReleased && !s.wasStolen(gate.Lease) && !w.hoursChanged():
		s.inTurn(&b)
	}
	switch j := s.jobs[b.JobKey]; {
	case b.Action == journal.GateReleased && b.Kind == destination.Test:
		s.checkCanary(b.Destination, j)
	case b.Action == journal.GateGivenUp:
		d := journal.DeadLetter{ID: b.DeadLetter, Episode: b.Episode, Outcome: decision.MaxRetriesExceeded, Reason: b.GiveUp, Team: b.Team,
			RetryCount: b.Retries, MaxRetries: b.MaxRetries, Context: b.Context, Deadline: b.Deadline, ProcessInstanceKey: b.ProcessInstanceKey,
			FirstFailure: b.Since}
		if shown := s.letter(b.DeadLetter); !b.Opens { // what the episode knows
			d.FirstFailure, d.Fingerprint = shown.FirstFailure, shown.Fingerprint
			if a := s.last[r.Subject.ID]; a != nil {
				d.Fingerprint = a.Fingerprint
			}
		}
		s.born(r.Subject.ID, r.Number(), r.Entry.At, &d)
		limit := b.Deadline.IsZero() || !b.Limit.IsZero() && b.Limit.Before(w.sendBy(b.Deadline))
		early := w.lastChance(&b.HeldJob).Sub(r.Entry.At)
		if !w.hoursChanged() && (early > clocksApart || limit != (b.GiveUp == decision.ReasonTimeLimit)) {
			s.fail("%s is given up for %s %s before its time", j.claim, b.GiveUp, early)
		}
		if late := min(-early, s.quiet(w, s.waits[b.JobKey].since)); late > lateness {
			s.fail("%s is given up %s after its time", j.claim, late)
		}
	case b.Action == journal.GateHeld:
		s.heldWell(r.Subject, &b, j)
		s.waits[b.JobKey], w.kept = waiting{b.HeldJob, time.Now()}, append(w.kept, time.Now())
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
			want.Limit, want.Retries = w.openFor(s.limit, e.FirstFailure), e.Retries
			for _, t := range []*time.Time{&want.Limit, &want.Deadline} {
				if e.State == journal.Reprocessing && !t.After(b.Since) {
					*t = time.Time{}
				}
			}
		}
	}
	if b.MaxRetries != s.policies[decision.DefaultPolicy].MaxRetries || b.Team != team || b.ElementInstanceKey != j.key+1 ||
		b.ProcessInstanceKey != j.process.key || b.Context.Cents() != worthOf(of.ID) {
		s.fail("%s is held as %+v", j.claim, b.HeldJob)
	}
	if b.Retries != want.Retries || !b.Limit.Equal(want.Limit) && !w.hoursChanged() || !b.Deadline.Equal(want.Deadline) {
		s.fail("%s is held after %d retries until %s or %s, and has made %d: until %s or %s", j.claim, b.Retries, b.Limit, b.Deadline,
			want.Retries, want.Limit, want.Deadline)
	}
}

// inTurn: the claim with the nearest deadline goes first, then what is worth most, then the one that waits longest. Ahead goes
// what would be given up before the next does, then what has most retries left.
func (s *sim) inTurn(b *journal.GateBody) {
	w, x := s.portals[b.Destination], s.waits[b.JobKey]
	turn := func(h *waiting) time.Time { // without a deadline last
		return cmp.Or(w.sendBy(h.Deadline), s.began.AddDate(100, 0, 0))
	}
	chosen, canary := time.Now(), b.Kind == destination.Test
	if canary {
		chosen = w.recorded.at
	}
	for _, p := range s.processes {
		y := s.waits[p.latest()]
		if _, going := s.departing.Load(p.latest()); going || p.portal != b.Destination || !s.isWaiting(p) ||
			chosen.Sub(y.since) <= 2*actTime || time.Until(w.lastChance(&y.HeldJob)) <= clocksApart { // several writes may have hung
			continue
		}
		first := cmp.Or(turn(&y).Compare(turn(&x)), cmp.Compare(x.Context.Cents(), y.Context.Cents()), y.Since.Compare(x.Since))
		if canary {
			of, sure := w.ahead(&x.HeldJob)
			other, known := w.ahead(&y.HeldJob)
			if !sure || !known {
				continue
			}
			first = cmp.Or(cmp.Compare(of, other), first)
		}
		if first < 0 {
			s.fail("job %d goes to %s: %s, before %s, which waits with a deadline at %s since %s", b.JobKey, b.Destination, b.Kind, p.claim, y.Deadline, y.Since)
		}
	}
}

// ahead is what goes ahead by, the most first; sure reports whether it is by all clocks.
func (w *portal) ahead(h *journal.HeldJob) (rank int64, sure bool) {
	soon := time.Until(w.lastChance(h)) - longestPause
	if rank = h.MaxRetries - h.Retries; soon < 0 {
		rank += math.MaxInt32
	}
	return rank, soon.Abs() >= clocksApart
}

// noLongerDown is how long a replica that lost its lease may take a portal for up that is down; actTime is how long one
// that acts may be at what it began.
const noLongerDown, actTime = time.Minute, 30 * time.Second

// down reports whether a portal is recorded as down for that long.
func (s *sim) down(name string, long time.Duration) bool {
	b := s.portals[name].recorded
	return b.State != nil && (b.Phase == destination.Down || b.Phase == destination.Testing) && time.Since(b.Since) > long
}
