package destination

import "time"

// machine is a Step under way.
type machine struct {
	*State
	c       *Settings
	now     time.Time
	actions Actions
}

// Step returns the State that an event at instant now leads to, and what is to be done. It changes neither s nor c. The
// instants of successive calls do not go back.
func (s State) Step(c *Settings, e Event, now time.Time) (State, Actions) {
	m := &machine{State: &s, c: c, now: now.UTC().Round(0)}
	before := s.Phase
	m.pass()
	e.apply(m)
	if s.Phase != before {
		m.actions.Went = before
	}
	return s, m.actions
}

// Next returns when there may be something to do if nothing happens until then, with as many claims waiting; zero is
// never.
func (s *State) Next(c *Settings, waiting int) time.Time {
	var next time.Time
	add := func(t time.Time) { next = soonest(next, t) }
	opens := func(t time.Time) time.Time { // what was to be done while it is closed is done then
		if c.Calendar == nil || t.IsZero() {
			return t
		}
		return c.Calendar.Next(latest(t, s.Flow.At))
	}
	if c.Probe.URL != "" && s.HeldUntil.IsZero() {
		add(opens(latest(s.NextProbe, s.Since)))
	}
	switch {
	case s.Phase == Testing:
		add(s.testAt())
	case waiting == 0 && s.Phase == Ramping:
		add(opens(latest(s.Since, s.Flow.Last.Add(CanaryTimeout))))
	case waiting == 0:
	case s.Phase == Down:
		add(opens(s.testAt()))
	default:
		add(opens(s.Flow.ready(s.Flow.pace(&c.Pace, s.Phase, s.Flow.At))))
		if s.Phase == Ramping {
			add(opens(s.Flow.Stepped.Add(c.Pace.Step)))
		}
	}
	return next
}

// testAt returns when the next canary may go, while down or testing: never before the last one told or timed out.
func (s *State) testAt() time.Time {
	switch {
	case s.Canary.Claim == "":
		return s.NextTest
	case s.Phase == Testing:
		return s.Canary.Sent.Add(CanaryTimeout)
	}
	return latest(s.NextTest, s.Canary.Sent.Add(CanaryTimeout))
}

// pass does what time alone does: credit comes, the pace grows, a canary without word is given up.
func (m *machine) pass() {
	m.Evidence.turn(m.c.OpensAt.Within, m.now)
	for step := m.c.Pace.Step; m.Phase == Ramping && !m.now.Before(m.Flow.Stepped.Add(step)); {
		at := m.Flow.Stepped.Add(step)
		m.Flow.fill(m.Flow.pace(&m.c.Pace, Ramping, at), at)
		m.Flow.Stepped = at
		m.grow()
	}
	m.Flow.fill(m.Flow.pace(&m.c.Pace, m.Phase, m.now), m.now)
	if m.Canary.Claim != "" && !m.now.Before(m.Canary.Sent.Add(CanaryTimeout)) {
		m.lost()
	}
	if !m.HeldUntil.IsZero() && !m.now.Before(m.HeldUntil) {
		m.HeldUntil = time.Time{}
	}
	if !m.UpUntil.IsZero() && !m.now.Before(m.UpUntil) {
		m.UpUntil = time.Time{}
	}
}

// asks reports whether the URL is to be asked now, and plans when next. The answer is a Probed event.
func (s *State) asks(c *Settings, now time.Time) bool {
	if c.Probe.URL == "" || !s.HeldUntil.IsZero() || now.Before(s.NextProbe) || !c.Calendar.IsOpen(now) {
		return false
	}
	s.NextProbe = now.UTC().Round(0).Add(c.Probe.Every)
	return true
}

// lost lets another canary go in the place of the one that nothing will be heard of, unless a person holds what follows.
func (m *machine) lost() {
	m.Canary = Canary{}
	if m.Phase == Testing {
		m.enter(Down)
		m.NextTest = latest(m.now, m.HeldUntil)
	}
}

// grow multiplies the pace of a ramp, unless a person chose it or claims went since the last step and none was
// answered.
func (m *machine) grow() {
	f := &m.Flow
	if !f.Fixed && (f.Answers > 0 || f.Unanswered == 0) {
		f.Ramp = min(f.Ramp*m.c.Pace.Factor, m.c.Pace.Most)
	}
	f.Answers = 0
}

func (m *machine) enter(p Phase) { m.Phase, m.Since = p, m.now }

// down begins an outage, or goes on with the one that a ramp did not end.
func (m *machine) down(cause Cause) {
	if m.Phase == Up {
		m.Outage = Outage{Since: m.now, Cause: cause}
		m.Outage.Admitted, m.Outage.Failed = m.Evidence.counts()
		m.Outage.Failed = max(m.Outage.Failed, len(m.Evidence.Streak))
		m.Outage.Admitted = max(m.Outage.Admitted, m.Outage.Failed)
	}
	m.Outage.Until, m.Outage.Held, m.Outage.Released = time.Time{}, 0, 0
	m.enter(Down)
	m.NextTest = m.now.Add(firstTest)
	if m.c.Probe.URL != "" {
		m.NextTest = m.now.Add(distrustProbe)
		m.NextProbe = m.now.Add(firstTest)
	}
}

// ramp lets claims through, from the settings' pace on, halved for each ramp that failed in this outage.
func (m *machine) ramp() {
	start := m.c.Pace.Start
	for range min(m.Outage.FailedRamps, deepestHalving) {
		start /= 2
	}
	m.HeldUntil = time.Time{}
	m.Evidence = Evidence{Slot: m.Evidence.Slot}
	m.Outage.Until = m.now
	m.Flow = Flow{Credit: m.Flow.Credit, At: m.now, Ramp: min(start, m.c.Pace.Most), Stepped: m.now,
		Limit: m.Flow.Limit, LimitAt: m.Flow.LimitAt, PauseUntil: m.Flow.PauseUntil}
	m.enter(Ramping)
}

func (e Turn) apply(m *machine) {
	switch {
	case !m.c.Calendar.IsOpen(m.now): // R29
		return
	case m.Phase == Down:
		if e.Canary != "" && !m.now.Before(m.testAt()) {
			m.test(&e)
		}
		return
	case m.Phase == Testing:
		return
	case m.Phase == Ramping:
		if m.Outage.Held == 0 {
			m.Outage.Held = e.Waiting
		}
		m.endRamp(e.Waiting)
	}
	if e.Waiting == 0 || !m.Flow.take(m.now) {
		return
	}
	m.Evidence.admit(1)
	m.actions.Release = Pass
	if m.Outage.Released < m.Outage.Held {
		m.Outage.Released++
	}
	if m.Phase == Ramping {
		m.Flow.Last = m.now
		m.Flow.Unanswered++
		m.actions.Release = RampedUp
	}
}

// endRamp goes up once the pace is reached, or nobody waits for it or for word of what went.
func (m *machine) endRamp(waiting int) {
	f := &m.Flow
	idle := waiting == 0 && (f.Unanswered == 0 || m.now.Sub(f.Last) >= CanaryTimeout)
	if idle || !f.Fixed && f.Ramp >= f.limit(&m.c.Pace, m.now) {
		m.lasted()
		m.enter(Up)
	}
}

// test sends a claim ahead. The next one follows in the probe's time, and later where more canaries went than claims
// wait for: each costs a try, and finding the destination up sooner is worth that for many, not for a few.
func (m *machine) test(e *Turn) {
	m.enter(Testing)
	m.Canary = Canary{Claim: e.Canary, Sent: m.now}
	m.Flow.Credit = 0
	m.Outage.Tests++
	m.Outage.LastTest = m.now
	distance := m.c.Probe.Every
	if m.c.Probe.URL != "" {
		distance = distrustProbe
	} else {
		distance = max(distance, min(longestTest, distance*time.Duration(m.Outage.Tests)/time.Duration(e.Waiting)))
	}
	m.NextTest = m.now.Add(distance)
	m.actions.Release = Test
}

func (e Admitted) apply(m *machine) { m.Evidence.admit(e.Count) }

// isOld reports whether what was sent then is no evidence for the phase that m is in.
func (m *machine) isOld(sent time.Time) bool { return !sent.IsZero() && sent.Before(m.Since) }

// tookCanary reports whether the claim is the canary that is tested by. It has reported now, and another may go.
func (m *machine) tookCanary(claim string) bool {
	if claim == "" || claim != m.Canary.Claim {
		return false
	}
	m.Canary = Canary{}
	return m.Phase == Testing
}

func (e Answered) apply(m *machine) { m.answered(e.Claim, e.Sent) }

// answered takes in that the destination answered, which refutes a probe that failed.
func (m *machine) answered(claim string, sent time.Time) {
	switch {
	case m.tookCanary(claim):
		m.ramp()
	case m.isDown():
		if !m.HeldUntil.IsZero() || !m.tests(claim, sent) {
			return
		}
		m.ramp()
	case m.isOld(sent):
		return
	default:
		m.Evidence.answer()
		m.Flow.Answers++
		m.Flow.Unanswered = max(0, m.Flow.Unanswered-1)
	}
	m.ProbeRefuted = m.ProbeRefuted || m.FailedProbes > 0
	m.FailedProbes = 0
}

// tests reports whether a claim is a test of a destination that is down: a gate sent it ahead, or it passed none, and a
// test is due. Where time-outs and refusals come in turn, those would else begin and end an outage each.
func (m *machine) tests(claim string, sent time.Time) bool {
	if claim == "" {
		return !m.now.Before(m.testAt())
	}
	return sent.IsZero() || !sent.Before(m.Outage.Since)
}

func (e Failed) apply(m *machine) {
	switch {
	case m.tookCanary(e.Claim):
		m.enter(Down)
	case m.isDown():
		if e.Claim == "" && m.tests("", e.Sent) {
			m.Outage.LastTest, m.NextTest = m.now, m.now.Add(m.c.Probe.Every)
		}
	case m.isOld(e.Sent):
	case m.Phase == Ramping:
		m.Outage.FailedRamps++
		m.down(m.Outage.Cause)
	default:
		m.Evidence.fail(m.now)
		if m.UpUntil.IsZero() && m.Evidence.opens(m.c.OpensAt, m.now) {
			m.down(CauseFailures)
		}
	}
}

func (e Unclear) apply(m *machine) {
	if m.tookCanary(e.Claim) {
		m.enter(Down)
	}
}

func (e Lost) apply(m *machine) {
	if e.Claim == m.Canary.Claim {
		m.lost()
	}
}

func (e Departed) apply(m *machine) {
	switch {
	case m.Phase == Testing && m.Canary.Claim == e.Claim:
		m.Canary.Sent = m.now
	case m.Phase == Down && m.HeldUntil.IsZero() && m.Canary.Claim == "": // it timed out
		m.enter(Testing)
		m.Canary = Canary{Claim: e.Claim, Sent: m.now}
	}
}

func (e RateLimited) apply(m *machine) {
	m.Flow.rateLimited(&m.c.Pace, m.Phase, e.Sent, e.RetryAfter, m.now)
	m.answered(e.Claim, e.Sent)
}

func (e Probed) apply(m *machine) {
	if e.OK {
		m.FailedProbes, m.ProbeRefuted = 0, false
		if earliest := m.Outage.LastTest.Add(firstTest); m.Phase == Down && m.HeldUntil.IsZero() {
			m.NextTest = latest(m.now, earliest)
		}
		return
	}
	m.FailedProbes++
	if m.Phase == Up && m.FailedProbes >= 2 && !m.ProbeRefuted && m.UpUntil.IsZero() {
		m.down(CauseProbe)
	}
}

func (e Hold) apply(m *machine) {
	if m.Phase == Up {
		m.down(CausePerson)
	} else {
		m.enter(Down)
	}
	m.UpUntil = time.Time{}
	m.Outage.Cause = CausePerson
	m.HeldUntil, m.NextTest = e.Until.UTC().Round(0), e.Until.UTC().Round(0)
}

func (TestNow) apply(m *machine) {
	if m.Phase == Down {
		m.NextTest = m.now
	}
}

func (e ReleaseAt) apply(m *machine) {
	if m.Phase == Up { // they go
		return
	}
	m.ramp()
	m.Flow.Ramp, m.Flow.Fixed = min(e.Pace, m.c.Pace.Most), true
}

func (e TreatAsUp) apply(m *machine) {
	if m.Phase != Up {
		m.ramp()
		m.enter(Up)
	}
	m.Evidence = Evidence{Slot: m.Evidence.Slot}
	m.UpUntil, m.FailedProbes = e.Until.UTC().Round(0), 0
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
