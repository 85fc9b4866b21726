package destination

import "time"

// Phase is what is known of a destination. The set is closed.
type Phase string

// The phases.
const (
	// Up lets claims through, at most at the pace.
	Up Phase = "up"
	// Down holds all claims, until one is sent ahead.
	Down Phase = "down"
	// Testing waits for word of the claim that was sent ahead, the canary.
	Testing Phase = "testing"
	// Ramping lets claims through at a pace that grows.
	Ramping Phase = "ramping"
)

// Cause is why a destination counts as down. The set is closed.
type Cause string

// The causes.
const (
	CauseFailures Cause = "failures" // too many submissions failed
	CauseProbe    Cause = "probe"    // two probes failed one after another
	CausePerson   Cause = "person"   // a person holds it
)

const (
	// inARow is how many failures one after another open the breaker, however few claims there are.
	inARow = 5
	// firstTest is the time from going down to the first canary: a portal that restarts is back within minutes.
	firstTest = time.Minute
	// CanaryTimeout is how long a canary may go without word before another claim follows.
	CanaryTimeout = 10 * time.Minute
	// longestTest is the most between two canaries (R28).
	longestTest = 15 * time.Minute
	// distrustProbe is the time without a canary after which one goes though the probe keeps failing: a probe with a
	// wrong address must not hold claims for ever.
	distrustProbe = time.Hour
	// longestPause bounds a Retry-After, as nobody waits for a portal longer than for a canary.
	longestPause = longestTest
	// raise is the part of Most by which a lowered limit grows each Step: from half to all in 150 s.
	raise = 0.05
	// LongestOrder is how far ahead a person's order may last: what he forgot must not hold claims, or let them fail, for
	// ever.
	LongestOrder = 7 * 24 * time.Hour
	// clockTolerance is how far the clocks of those who act may be apart.
	clockTolerance = time.Minute
	// deepestHalving bounds how often failed ramps halve the pace of the next.
	deepestHalving = 4
)

// State is all that is known of one destination but the claims that wait. It is a value of a few hundred bytes that
// survives a JSON round trip unchanged; instants are UTC.
type State struct {
	Phase Phase `json:"phase"`
	// Since is when the phase began.
	Since time.Time `json:"since"`
	// Outage is the one that lasts or, once the destination is up, the last one.
	Outage Outage `json:"outage,omitzero"`
	// Lasted are the lengths of the last outages that ended by themselves, the latest last.
	Lasted []time.Duration `json:"lasted,omitempty"`
	// NextTest is when the next canary may go, while down.
	NextTest time.Time `json:"nextTest,omitzero"`
	Canary   Canary    `json:"canary,omitzero"`
	// HeldUntil and UpUntil are what a person said: hold all, or let all through, until then.
	HeldUntil time.Time `json:"heldUntil,omitzero"`
	UpUntil   time.Time `json:"upUntil,omitzero"`
	Evidence  Evidence  `json:"evidence"`
	Flow      Flow      `json:"flow"`
	// NextProbe is when the URL is asked next; FailedProbes counts those that failed one after another since the
	// destination answered a claim. ProbeRefuted: it did since one failed, so that nothing is made of them until one
	// succeeds.
	NextProbe    time.Time `json:"nextProbe,omitzero"`
	FailedProbes int       `json:"failedProbes,omitempty"`
	ProbeRefuted bool      `json:"probeRefuted,omitempty"`
}

// Outage is the time in which a destination does not answer, with what people want to know of it.
type Outage struct {
	Since time.Time `json:"since,omitzero"`
	// Until is when a canary, or a person, ended it; zero while it lasts.
	Until time.Time `json:"until,omitzero"`
	Cause Cause     `json:"cause,omitempty"`
	// Failed of Admitted claims were the evidence, where failures are the cause.
	Failed   int `json:"failed,omitempty"`
	Admitted int `json:"admitted,omitempty"`
	// Tests counts the canaries.
	Tests int `json:"tests,omitempty"`
	// LastTest is when the last canary went.
	LastTest time.Time `json:"lastTest,omitzero"`
	// FailedRamps counts the ramps that a failure ended; each halves the pace of the next.
	FailedRamps int `json:"failedRamps,omitempty"`
	// Held claims waited at its end, and Released have gone since.
	Held     int `json:"held,omitempty"`
	Released int `json:"released,omitempty"`
}

// Canary is the claim that was sent ahead.
type Canary struct {
	Claim string    `json:"claim,omitempty"`
	Sent  time.Time `json:"sent,omitzero"`
}

// New returns the State of a destination of which nothing is known: it is up.
func New(now time.Time) State {
	now = now.UTC().Round(0)
	return State{Phase: Up, Since: now, Flow: Flow{Credit: 1, At: now}}
}

// believe bounds instants that lie further ahead than is ever recorded, and reports whether there were any: whoever
// recorded them had a wrong clock, and what waits for them would wait until then.
func (s *State) believe(c *Settings, now time.Time) (found bool) {
	now = now.UTC().Round(0)
	bound := func(ahead time.Duration, instants ...*time.Time) {
		for _, t := range instants {
			if t.After(now.Add(ahead + clockTolerance)) {
				*t, found = now.Add(ahead), true
			}
		}
	}
	f, o := &s.Flow, &s.Outage
	bound(0, &s.Since, &o.Since, &o.Until, &o.LastTest, &s.Canary.Sent, &s.Evidence.StreakSince, &f.At, &f.Stepped,
		&f.Last, &f.LimitAt)
	bound(longestPause, &f.PauseUntil)
	bound(max(firstTest, c.Probe.Every), &s.NextProbe)
	bound(LongestOrder, &s.HeldUntil, &s.UpUntil)
	canary := longestTest
	if c.Probe.URL != "" {
		canary = distrustProbe
	}
	bound(max(canary, s.HeldUntil.Sub(now)), &s.NextTest)
	return found
}

// isDown reports whether claims wait for the end of an outage.
func (s *State) isDown() bool { return s.Phase == Down || s.Phase == Testing }

// Event is something that happened to a destination.
type Event interface {
	apply(m *machine)
}

// The events. Sent is when the gate let the claim go, zero where that is not known: what was sent before the phase
// began is no evidence of it.
type (
	// Turn asks whether the next of the Waiting claims may go. Canary is the claim to send ahead, should one be due.
	Turn struct {
		Waiting int
		Canary  string
	}
	// Admitted tells of claims that other replicas let through.
	Admitted struct{ Count int }
	// Answered tells that the destination answered: a success or a refusal.
	Answered struct {
		Claim string
		Sent  time.Time
	}
	// Failed tells of a failure that speaks of the destination.
	Failed struct {
		Claim string
		Sent  time.Time
	}
	// Lost tells that a claim never went: its process has ended.
	Lost struct{ Claim string }
	// Departed tells that a canary went only now, long after its turn. Another one waits for it as if it had gone in time.
	Departed struct{ Claim string }
	// Unclear tells that a claim failed, and that this says nothing of the destination.
	Unclear struct{ Claim string }
	// RateLimited tells that the destination asked for a lower pace, or for none for RetryAfter.
	RateLimited struct {
		Claim      string
		Sent       time.Time
		RetryAfter time.Duration
	}
	// Probed tells what asking the URL came to.
	Probed struct{ OK bool }
	// Hold is a person's command: hold all claims until then.
	Hold struct{ Until time.Time }
	// TestNow is a person's command: send one claim ahead, unless one is under way.
	TestNow struct{}
	// ReleaseAt is a person's command: while not up, let the claims go at Pace a minute, at most the settings' Most.
	ReleaseAt struct{ Pace float64 }
	// TreatAsUp is a person's command: whatever fails, let all claims through until then.
	TreatAsUp struct{ Until time.Time }
)

// Kind is why a claim may go. The set is closed.
type Kind string

// The kinds.
const (
	Pass     Kind = "pass"   // the destination is up
	Test     Kind = "canary" // sent ahead
	RampedUp Kind = "ramp"   // let through after an outage
)

// Wanted reports whether the process is to tell the outcome of such a release: what gateCanary says.
func (k Kind) Wanted() bool { return k == Test || k == RampedUp }

// Actions are what the caller does after a Step.
type Actions struct {
	// Release is set where a claim may go: for a Test the one that Turn named, otherwise the first of the queue.
	Release Kind
	// Went is the phase that was left, empty where it is the same.
	Went Phase
}
