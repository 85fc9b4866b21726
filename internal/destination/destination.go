// Package destination decides when claims may go to where they are submitted, such as an operator's portal: it finds
// out that the destination is down, holds what would fail, sends one claim ahead, and lets the rest through at a pace.
//
// It is pure: what a Gate does follows from its Settings and State, the Queue of the claims that wait, and the Events
// that it is told with their instants. Nothing here reads a clock, rolls dice, waits or writes.
package destination

import (
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/text"
)

// Settings say how a destination is treated.
type Settings struct {
	// Label is what people call it; none where they call it by its name.
	Label   text.Translated
	OpensAt Threshold
	Probe   Probe
	Pace    Pace
	// Calendar says when claims can be sent; nil is always.
	Calendar *calendar.Calendar
}

// Threshold is the share of admissions that failed at which a destination counts as down.
type Threshold struct {
	// Failures is a fraction above 0.
	Failures float64
	// Of is the number of admissions Within that the fraction needs at least.
	Of     int
	Within time.Duration
}

// Probe says how the status of a destination is asked for (R28).
type Probe struct {
	Every time.Duration
	// URL is what is asked; without one, a claim is sent ahead.
	URL string
	// Expect lists the HTTP statuses that show that the destination works.
	Expect []int
}

// Pace bounds how many claims go in a minute.
type Pace struct {
	// Start is the pace that a ramp begins with; it is multiplied by Factor every Step, until it reaches Most.
	Start, Most float64
	Factor      float64
	Step        time.Duration
	// OnRateLimit is what a RATE_LIMIT multiplies the pace by.
	OnRateLimit float64
	// Limited reports whether the policies set Most. Otherwise claims go at once while the destination is up, and Most is
	// what ramps end at.
	Limited bool
}

// Defaults returns the settings of a destination that nobody configured.
func Defaults() Settings {
	return Settings{
		OpensAt: Threshold{Failures: 0.5, Of: 20, Within: 2 * time.Minute},
		Probe:   Probe{Every: 5 * time.Minute, Expect: []int{200, 405}},
		Pace:    Pace{Start: 1, Most: 60, Factor: 2, Step: 15 * time.Second, OnRateLimit: 0.5},
	}
}

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
	// By is who ordered it, where a person is the cause.
	By string `json:"by,omitempty"`
	// Failed of Admitted claims were the evidence, where failures are the cause.
	Failed   int `json:"failed,omitempty"`
	Admitted int `json:"admitted,omitempty"`
	// Tests counts the canaries, the last of which went at LastTest.
	Tests    int       `json:"tests,omitempty"`
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
func New(now time.Time) State { return State{Phase: Up, Since: now.UTC().Round(0)} }

// isDown reports whether claims wait for the end of an outage.
func (s *State) isDown() bool { return s.Phase == Down || s.Phase == Testing }

// Event is something that happened to a destination.
type Event interface {
	apply(g *Gate)
}

// The events.
type (
	// Turn asks whether the next of the Waiting claims may go. Canary is the claim to send ahead, should one be due.
	Turn struct {
		Waiting int
		Canary  string
	}
	// Admitted tells of claims that other replicas let through.
	Admitted struct{ Count int }
	// Outcome tells what became of a claim. Sent is when the gate let it go, zero where that is not known: what was sent
	// before the phase began is no evidence of it. Nobody knows which claim it was where it passed no gate.
	Outcome struct {
		Tells      Tells
		Claim      string
		Sent       time.Time
		RetryAfter time.Duration // TellsRateLimited: nothing may go for that long
	}
	// Lost tells that a claim never went: its process has ended.
	Lost struct{ Claim string }
	// Departed tells that a canary went only now, long after its turn. Another one waits for it as if it had gone in time.
	Departed struct{ Claim string }
	// Probed tells what asking the URL came to.
	Probed struct{ OK bool }
	// Order is what a person orders.
	Order struct {
		Verb      Verb      `json:"verb"`
		Until     time.Time `json:"until,omitzero"`
		PerMinute float64   `json:"perMinute,omitempty"`
		// Reason and By are the person's words, redacted, and name.
		Reason string `json:"reason"`
		By     string `json:"by"`
	}
)

// Tells is what the outcome of a claim tells of its destination. The set is closed; empty is nothing.
type Tells string

// What outcomes tell.
const (
	TellsFailed      Tells = "failed"      // the destination did not answer, or said that it cannot
	TellsAnswered    Tells = "answered"    // it did: a success, or a refusal
	TellsRateLimited Tells = "rateLimited" // it asked for a lower pace, or for none for a while
)

// Verb is what a person orders. The set is closed.
type Verb string

// The verbs.
const (
	HoldClaims Verb = "hold"    // all, until a time
	SendCanary Verb = "probe"   // one claim ahead, now, unless one is under way
	ReleaseAt  Verb = "release" // while not up, at a pace a minute
	TreatAsUp  Verb = "up"      // whatever fails, until a time
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
