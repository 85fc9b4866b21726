package destination

import (
	"slices"
	"time"

	"retry-worker/internal/classify"
)

// Apply applies an event. For a Turn it returns why a claim may go, or "": with Test it is the Turn's Canary, otherwise
// the first of the queue. The instants of successive calls must not go back.
func (g *Gate) Apply(e Event, now time.Time) Kind {
	before := g.State
	g.now, g.goes = now.UTC().Round(0), ""
	g.pass()
	e.apply(g)
	f, was := &g.Flow, &before.Flow
	g.Changed = g.Changed || g.Phase != before.Phase || g.Canary.Sent.After(before.Canary.Sent) ||
		!f.LimitAt.Equal(was.LimitAt) || !f.PauseUntil.Equal(was.PauseUntil) ||
		g.Phase == Ramping && !f.Stepped.Equal(was.Stepped)
	return g.goes
}

// pass applies the passage of time: the pace grows, a canary times out, a person's order ends.
func (g *Gate) pass() {
	g.Evidence.turn(g.Settings.OpensAt.Within, g.now)
	for step := g.Settings.Pace.Step; g.Phase == Ramping && !g.now.Before(g.Flow.Stepped.Add(step)); {
		g.Flow.Stepped = g.Flow.Stepped.Add(step)
		g.grow()
	}
	if g.Canary.Claim != 0 && !g.now.Before(g.Canary.Sent.Add(CanaryTimeout)) {
		g.lost()
	}
	g.State = g.At(g.now)
}

// grow multiplies the pace of a ramp, unless a person chose it, or claims are unanswered and none was answered since
// the last step.
func (g *Gate) grow() {
	f := &g.Flow
	if !f.Fixed && (f.Answers > 0 || f.Unanswered == 0) {
		f.Ramp = min(f.Ramp*g.Settings.Pace.Factor, g.Settings.Pace.Most)
	}
	f.Answers = 0
}

// testAt returns when the next canary may go, while down or testing: not before the last one reported or timed out.
func (s *State) testAt() time.Time {
	switch {
	case s.Canary.Claim == 0:
		return s.NextTest
	case s.Phase == Testing:
		return s.Canary.Sent.Add(CanaryTimeout)
	}
	return latest(s.NextTest, s.Canary.Sent.Add(CanaryTimeout))
}

// lost gives up the canary and lets another go, unless a person holds the claims.
func (g *Gate) lost() {
	g.Canary = Canary{}
	if g.Phase == Testing {
		g.enter(Down)
		g.NextTest = latest(g.now, g.HeldUntil)
	}
}

func (g *Gate) enter(p Phase) { g.Phase, g.Since = p, g.now }

// down begins an outage, or continues the one before a failed ramp.
func (g *Gate) down(cause Cause) {
	o := &g.Outage
	if g.Phase == Up {
		*o = Outage{Since: g.now, Cause: cause}
		o.Admitted, o.Failed = g.Evidence.counts()
		o.Failed = max(o.Failed, len(g.Evidence.Streak))
		o.Admitted = max(o.Admitted, o.Failed)
	}
	o.Until, o.Held, o.Released = time.Time{}, 0, 0
	g.enter(Down)
	g.NextTest = g.now.Add(firstTest)
	if g.Settings.Probe.URL != "" {
		g.NextTest = g.now.Add(distrustProbe)
		g.NextProbe = g.now.Add(firstTest)
	}
}

// ramp begins a ramp at the settings' pace, halved for each failed ramp of this outage.
func (g *Gate) ramp() {
	start := g.Settings.Pace.Start
	for range min(g.Outage.FailedRamps, deepestHalving) {
		start /= 2
	}
	g.HeldUntil = time.Time{}
	g.Evidence = Evidence{Slot: g.Evidence.Slot}
	g.Outage.Until = g.now
	f := &g.Flow
	f.Ramp, f.Stepped, f.Fixed = min(start, g.Settings.Pace.Most), g.now, false
	f.Unanswered, f.Last, f.Answers = 0, time.Time{}, 0
	g.enter(Ramping)
}

func (e Turn) apply(g *Gate) {
	switch {
	case !g.Settings.Calendar.IsOpen(g.now): // R29
		return
	case g.Phase == Down:
		if e.Canary != 0 && !g.now.Before(g.testAt()) {
			g.test(&e)
		}
		return
	case g.Phase == Testing:
		return
	case g.Phase == Ramping:
		if g.Outage.Held == 0 {
			g.Outage.Held = e.Waiting
		}
		g.endRamp(e.Waiting)
	}
	if e.Waiting == 0 || !g.take() {
		return
	}
	g.Evidence.admit(1)
	g.goes = Pass
	if g.Outage.Released < g.Outage.Held {
		g.Outage.Released++
	}
	if g.Phase == Ramping {
		g.Flow.Last = g.now
		g.Flow.Unanswered++
		g.goes = RampedUp
	}
}

// endRamp enters Up once the pace is reached, or no claim waits and none is unanswered.
func (g *Gate) endRamp(waiting int) {
	f := &g.Flow
	idle := waiting == 0 && (f.Unanswered == 0 || g.now.Sub(f.Last) >= CanaryTimeout)
	if !idle && (f.Fixed || f.Ramp < f.limit(&g.Settings.Pace, g.now)) {
		return
	}
	if g.Outage.Cause != CausePerson && !f.Fixed { // otherwise its length predicts nothing
		kept := g.Lasted[max(0, len(g.Lasted)+1-keptOutages):]
		g.Lasted = append(slices.Clone(kept), g.Outage.Until.Sub(g.Outage.Since)) // copied, as other States share it
	}
	g.enter(Up)
}

// test sends a claim ahead. The next one follows after Probe.Every, or later if more canaries went than claims wait:
// each costs a try, which is worth it for many waiting claims, not for a few.
func (g *Gate) test(e *Turn) {
	g.enter(Testing)
	g.Canary = Canary{Claim: e.Canary, Sent: g.now}
	g.wait(g.now)
	o, distance := &g.Outage, g.Settings.Probe.Every
	o.Tests++
	o.LastTest = g.now
	if g.Settings.Probe.URL != "" {
		distance = distrustProbe
	} else {
		distance = max(distance, min(longestTest, distance*time.Duration(o.Tests)/time.Duration(e.Waiting)))
	}
	g.NextTest = g.now.Add(distance)
	g.goes = Test
}

func (e Admitted) apply(g *Gate) { g.Evidence.admit(e.Count) }

func (e Outcome) apply(g *Gate) {
	switch e.Tells {
	case TellsFailed:
		if e.RetryAfter > 0 {
			g.rateLimited(e.Sent, e.RetryAfter)
		}
		if g.failed(&e); g.isDown() {
			g.NextTest = latest(g.NextTest, g.Flow.PauseUntil)
		}
	case TellsRateLimited:
		g.rateLimited(e.Sent, e.RetryAfter)
		g.answered(&e)
	case TellsAnswered:
		g.answered(&e)
	default:
		if g.tookCanary(e.Claim) {
			g.enter(Down)
		}
	}
}

// tookCanary reports whether the claim is the current test's canary. It clears the canary, so that another may go.
func (g *Gate) tookCanary(claim int64) bool {
	if claim == 0 || claim != g.Canary.Claim {
		return false
	}
	g.Canary = Canary{}
	return g.Phase == Testing
}

// isOld reports whether a claim was sent before the current phase, and so is no evidence for it.
func (s *State) isOld(sent time.Time) bool { return !sent.IsZero() && sent.Before(s.Since) }

// tests reports whether a claim counts as a test of a destination that is down: a gate sent it since the outage began,
// or it passed no gate and a test is due. Otherwise alternating time-outs and refusals would each begin and end an
// outage.
func (g *Gate) tests(e *Outcome) bool {
	if e.Claim == 0 {
		return !g.isOld(e.Sent) && !g.now.Before(g.testAt())
	}
	return e.Sent.IsZero() || !e.Sent.Before(g.Outage.Since)
}

// answered handles an answer of the destination, which refutes failed probes.
func (g *Gate) answered(e *Outcome) {
	switch {
	case g.tookCanary(e.Claim):
		g.ramp()
	case g.isDown():
		if !g.HeldUntil.IsZero() || !g.tests(e) {
			return
		}
		g.ramp()
	case g.isOld(e.Sent):
		return
	default:
		g.Evidence.answer()
		g.Flow.Answers++
		g.Flow.Unanswered = max(0, g.Flow.Unanswered-1)
	}
	g.ProbeRefuted = g.ProbeRefuted || g.FailedProbes > 0
	g.FailedProbes = 0
}

func (g *Gate) failed(e *Outcome) {
	switch {
	case g.tookCanary(e.Claim):
		g.enter(Down)
	case g.isDown():
		if e.Claim == 0 && g.tests(e) {
			g.Outage.LastTest, g.NextTest = g.now, g.now.Add(g.Settings.Probe.Every)
		}
	case g.isOld(e.Sent):
	case g.Phase == Ramping:
		g.Outage.FailedRamps++
		g.down(g.Outage.Cause)
	default:
		g.Evidence.fail(g.now)
		if g.UpUntil.IsZero() && g.Evidence.opens(g.Settings.OpensAt, g.now) {
			g.down(CauseFailures)
		}
	}
}

func (e Lost) apply(g *Gate) {
	if e.Claim == g.Canary.Claim {
		g.lost()
	}
}

func (e Departed) apply(g *Gate) {
	switch {
	case g.Phase == Testing && g.Canary.Claim == e.Claim:
		g.Canary.Sent = g.now
	case g.Phase == Down && g.HeldUntil.IsZero() && g.Canary.Claim == 0: // it had timed out
		g.enter(Testing)
		g.Canary = Canary{Claim: e.Claim, Sent: g.now}
	}
}

func (e Probed) apply(g *Gate) {
	if e.OK {
		g.FailedProbes, g.ProbeRefuted = 0, false
		if earliest := g.Outage.LastTest.Add(firstTest); g.Phase == Down && g.HeldUntil.IsZero() {
			g.NextTest = latest(g.now, earliest)
		}
		return
	}
	g.FailedProbes++
	if g.Phase == Up && g.FailedProbes >= 2 && !g.ProbeRefuted && g.UpUntil.IsZero() {
		g.down(CauseProbe)
	}
}

// apply follows a person's order. The State is recorded in any case, as people see the order at once.
func (o Order) apply(g *Gate) {
	g.Changed = true
	until := o.Until.UTC().Round(0)
	switch o.Verb {
	case HoldClaims:
		g.down(CausePerson)
		g.Outage.Cause, g.Outage.By = CausePerson, o.By
		g.UpUntil, g.HeldUntil, g.NextTest = time.Time{}, until, until
	case SendCanary:
		if g.Phase == Down {
			g.NextTest = g.now
		}
	case ReleaseAt:
		if g.Phase != Up { // while up they go anyway
			g.ramp()
			g.Flow.Ramp, g.Flow.Fixed = min(o.PerMinute, g.Settings.Pace.Most), true
		}
	case TreatAsUp:
		if g.Phase != Up {
			g.ramp()
			g.enter(Up)
		}
		g.Evidence = Evidence{Slot: g.Evidence.Slot}
		g.UpUntil, g.FailedProbes = until, 0
	}
}

// slots is how many slots a window has. Counts are forgotten a slot at a time.
const slots = 12

// Evidence counts admissions, failures and answers while a destination is up.
type Evidence struct {
	// Window holds the counts of the window's slots, those of slot i at i modulo slots. Slot is the newest.
	Window [slots]Counts `json:"window,omitzero"`
	Slot   int64         `json:"slot"`
	// Total counts all admissions. Streak holds Total at each of the last failures in a row, the oldest first; they
	// began at StreakSince.
	Total       int64     `json:"total"`
	Streak      []int64   `json:"streak,omitempty"`
	StreakSince time.Time `json:"streakSince,omitzero"`
}

// Counts are numbers of claims.
type Counts struct {
	Admitted int `json:"admitted,omitempty"`
	Failed   int `json:"failed,omitempty"`
	Answered int `json:"answered,omitempty"`
}

// turn forgets the counts before the window.
func (e *Evidence) turn(within time.Duration, now time.Time) {
	slot := now.UnixNano() / max(1, int64(within)/slots)
	for i := max(e.Slot, slot-slots) + 1; i <= slot; i++ {
		e.Window[i%slots] = Counts{}
	}
	if slot < e.Slot-slots || slot > e.Slot { // the clock or the window's length may have changed
		e.Slot = slot
	}
}

func (e *Evidence) admit(n int) {
	e.Window[e.Slot%slots].Admitted += n
	e.Total += int64(n)
}

// fail counts a failure. It copies Streak, as other copies of the State share it.
func (e *Evidence) fail(now time.Time) {
	e.Window[e.Slot%slots].Failed++
	if len(e.Streak) == 0 {
		e.StreakSince = now
	}
	e.Streak = append(slices.Clone(e.Streak), e.Total)
	e.Streak = e.Streak[max(0, len(e.Streak)-inARow):]
}

// answer counts an answer, and ends the failures in a row.
func (e *Evidence) answer() {
	e.Window[e.Slot%slots].Answered++
	e.Streak, e.StreakSince = nil, time.Time{}
}

// counts returns the admissions and failures of the window. Answers and failures whose own admissions are not in the
// window count as admitted.
func (e *Evidence) counts() (admitted, failed int) {
	var all Counts
	for _, c := range e.Window {
		all.Admitted += c.Admitted
		all.Failed += c.Failed
		all.Answered += c.Answered
	}
	return max(all.Admitted, all.Failed+all.Answered), all.Failed
}

// opens reports whether the destination counts as down, by the share of failures in the window or five failures in a
// row. Most successes are not reported while a destination is up, so failures are in a row if at most five claims went
// between them. If none went, the claims pass no gate, and the failures must lie within the window.
func (e *Evidence) opens(t Threshold, now time.Time) bool {
	admitted, failed := e.counts()
	if admitted >= t.Of && float64(failed) >= t.Failures*float64(admitted) {
		return true
	}
	if len(e.Streak) < inARow {
		return false
	}
	between := e.Total - e.Streak[0]
	return 0 < between && between <= inARow || between == 0 && now.Sub(e.StreakSince) <= t.Within
}

// down are the reasons that the destination is down. SERVER_ERROR is not among them: it may be due to the one claim.
var down = []classify.Reason{"TIMEOUT", "CONNECTION_ERROR", "SERVICE_UNAVAILABLE", "NETWORK_ERROR", "503", "504"}

// TellsOf returns what a failure says about the destination. retryAfter is how long it asked to wait. A destination
// that refuses a claim works.
func TellsOf(m *classify.Match, retryAfter time.Duration) Tells {
	switch {
	case slices.Contains(down, m.Reason):
		return TellsFailed
	case m.Reason == "RATE_LIMIT" || retryAfter > 0:
		return TellsRateLimited
	case m.Class == classify.Permanent && m.Reason != "INVALID_CERTIFICATE": // without which there is no connection
		return TellsAnswered
	}
	return ""
}
