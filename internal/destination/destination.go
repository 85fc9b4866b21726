// Package destination decides when claims may go to a destination, such as an operator's portal. It detects that the
// destination is down, holds claims that would fail, sends one ahead, and lets the rest through at a pace.
//
// It is pure: what a Gate does follows from its Settings, its State, its Queue and the Events with their instants.
// Nothing here reads a clock, uses randomness, waits or writes.
package destination

import (
	"time"

	"retry-worker/internal/calendar"
	"retry-worker/internal/text"
)

// Settings are the settings of a destination.
type Settings struct {
	// Label is the name that people use; empty to use its own.
	Label   text.Translated
	OpensAt Threshold `yaml:"opensAt"`
	Probe   Probe
	Pace    Pace
	// Calendar says when claims can be sent; nil means always.
	Calendar *calendar.Calendar `yaml:"-"`
}

// Open returns t or, if the destination is closed then, a time in its next opening: at that share of its Room.
func (s *Settings) Open(t, until time.Time, share float64) time.Time {
	next := s.Calendar.Next(t)
	if next.Equal(t) {
		return t
	}
	room := time.Duration(share * float64(s.Room(next, until)))
	return next.Add(room.Truncate(time.Second))
}

// Room returns how long after the opening at next a waiting retry may be made: the time that 600 claims take at the
// pace, at most an hour, half of the opening, and what is left until then (zero: no limit).
func (s *Settings) Room(next, until time.Time) time.Duration {
	const claims = 600
	room := min(time.Hour, time.Duration(claims/s.Pace.Most*float64(time.Minute)))
	if end := s.Calendar.OpenUntil(next); !end.IsZero() {
		room = min(room, end.Sub(next)/2)
	}
	if !until.IsZero() {
		room = min(room, until.Sub(next))
	}
	return max(room, 0)
}

// Threshold is the share of failed admissions at which a destination counts as down.
type Threshold struct {
	// Failures is a fraction above 0.
	Failures float64
	// Of is the least number of admissions Within for the fraction to count.
	Of     int
	Within time.Duration
}

// Probe says how to ask a destination for its status (R28).
type Probe struct {
	Every time.Duration
	// URL is the address to ask; without one only canaries test the destination.
	URL string
	// Expect lists the HTTP statuses of a working destination.
	Expect []int
}

// Pace bounds how many claims go in a minute.
type Pace struct {
	// Start is the pace at which a ramp begins. It is multiplied by Factor every Step until it reaches Most.
	Start, Most float64
	Factor      float64
	Step        time.Duration
	// OnRateLimit is the factor by which a RATE_LIMIT changes the pace.
	OnRateLimit float64 `yaml:"onRateLimit"`
	// Limited reports whether the policies set Most. Otherwise claims go at once while the destination is up, and Most
	// only ends ramps.
	Limited bool `yaml:"-"`
}

// Defaults returns the settings of a destination that is not configured.
func Defaults() Settings {
	return Settings{
		OpensAt: Threshold{Failures: 0.5, Of: 20, Within: 2 * time.Minute},
		Probe:   Probe{Every: 5 * time.Minute, Expect: []int{200, 405}},
		Pace:    Pace{Start: 1, Most: 60, Factor: 2, Step: 15 * time.Second, OnRateLimit: 0.5},
	}
}

// Phase is the phase of a destination. The set is closed.
type Phase string

// The phases.
const (
	// Up lets claims through, at most at the pace.
	Up Phase = "up"
	// Down holds all claims, until one is sent ahead.
	Down Phase = "down"
	// Testing waits for the outcome of the claim that was sent ahead, the canary.
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
	// inARow is how many failures in a row open the breaker, however few claims there are.
	inARow = 5
	// firstTest is the time from going down to the first canary: a portal that restarts is back within minutes.
	firstTest = time.Minute
	// CanaryTimeout is how long to wait for a canary's outcome before another claim follows.
	CanaryTimeout = 10 * time.Minute
	// longestTest is the longest time between two canaries (R28).
	longestTest = 15 * time.Minute
	// distrustProbe is the longest time between two canaries while the probe fails: a wrong URL must not hold claims
	// for ever.
	distrustProbe = time.Hour
	// longestPause bounds a Retry-After: no claim waits longer for a portal than for a canary.
	longestPause = longestTest
	// LongestOrder is how long a person's order may last: a forgotten one must not hold claims, or let them fail, for
	// ever.
	LongestOrder = 7 * 24 * time.Hour
	// clockTolerance is how far the leaders' clocks may differ.
	clockTolerance = time.Minute
	// deepestHalving bounds how often failed ramps halve the next one's pace.
	deepestHalving = 4
)

// State is what is known about a destination, without the claims that wait. It is a few hundred bytes and survives a
// JSON round trip unchanged; instants are UTC.
type State struct {
	Phase Phase `json:"phase"`
	// Since is when the phase began.
	Since time.Time `json:"since"`
	// Outage is the current outage or, while the destination is up, the last one.
	Outage Outage `json:"outage,omitzero"`
	// Lasted are the lengths of the last outages that no person began or ended, the latest last.
	Lasted []time.Duration `json:"lasted,omitempty"`
	// NextTest is when the next canary may go, while down.
	NextTest time.Time `json:"nextTest,omitzero"`
	Canary   Canary    `json:"canary,omitzero"`
	// HeldUntil and UpUntil are until when a person ordered to hold all claims, or to let all through.
	HeldUntil time.Time `json:"heldUntil,omitzero"`
	UpUntil   time.Time `json:"upUntil,omitzero"`
	Evidence  Evidence  `json:"evidence"`
	Flow      Flow      `json:"flow"`
	// NextProbe is when to ask the URL next. FailedProbes counts the probes that failed in a row since a claim was
	// answered. ProbeRefuted reports whether a claim was answered after one failed: failed probes then count for
	// nothing until one succeeds.
	NextProbe    time.Time `json:"nextProbe,omitzero"`
	FailedProbes int       `json:"failedProbes,omitempty"`
	ProbeRefuted bool      `json:"probeRefuted,omitempty"`
}

// Outage is a time in which a destination does not answer.
type Outage struct {
	Since time.Time `json:"since,omitzero"`
	// Until is when a claim's answer or a person ended it; zero while it lasts.
	Until time.Time `json:"until,omitzero"`
	Cause Cause     `json:"cause,omitempty"`
	// By is the person who ordered it, if one did.
	By string `json:"by,omitempty"`
	// Failed and Admitted are the evidence, if failures are the cause.
	Failed   int `json:"failed,omitempty"`
	Admitted int `json:"admitted,omitempty"`
	// Tests counts the canaries; the last went at LastTest.
	Tests    int       `json:"tests,omitempty"`
	LastTest time.Time `json:"lastTest,omitzero"`
	// FailedRamps counts the ramps that a failure ended; each halves the next one's pace.
	FailedRamps int `json:"failedRamps,omitempty"`
	// Held is how many claims waited at its end, Released how many have gone since.
	Held     int `json:"held,omitempty"`
	Released int `json:"released,omitempty"`
}

// Canary is the claim that was sent ahead.
type Canary struct {
	Claim int64     `json:"claim,string,omitempty"`
	Sent  time.Time `json:"sent,omitzero"`
}

// New returns the State of a new destination, which is up.
func New(now time.Time) State { return State{Phase: Up, Since: now.UTC().Round(0)} }

// At returns s without a person's order that is over at now.
func (s State) At(now time.Time) State {
	for _, until := range []*time.Time{&s.HeldUntil, &s.UpUntil} {
		if !now.Before(*until) {
			*until = time.Time{}
		}
	}
	return s
}

// isDown reports whether the destination is down or testing.
func (s *State) isDown() bool { return s.Phase == Down || s.Phase == Testing }

// Event is something that happened to a destination.
type Event interface {
	apply(g *Gate)
}

// The events.
type (
	// Turn asks whether the next of the Waiting claims may go. Canary is the claim to send ahead if a canary is due.
	Turn struct {
		Waiting int
		Canary  int64
	}
	// Admitted counts claims that were let through without a Turn, such as by other replicas.
	Admitted struct{ Count int }
	// Outcome reports what became of a claim. Claim is 0 if it passed no gate. Sent is when the gate let it go,
	// zero if unknown: a claim sent before the phase began is no evidence.
	Outcome struct {
		Tells      Tells
		Claim      int64
		Sent       time.Time
		RetryAfter time.Duration // nothing may go for that long; 0 if it does not ask
	}
	// Lost reports that a claim never went, as its process has ended.
	Lost struct{ Claim int64 }
	// Departed reports that a canary went only now, long after its turn. The next one waits from now on.
	Departed struct{ Claim int64 }
	// Probed reports the result of asking the URL.
	Probed struct{ OK bool }
	// Order is a person's order.
	Order struct {
		Verb      Verb      `json:"verb"`
		Until     time.Time `json:"until,omitzero"`
		PerMinute float64   `json:"perMinute,omitempty"`
		// Reason and By are the person's words, redacted, and name.
		Reason string `json:"reason"`
		By     string `json:"by"`
	}
)

// Tells is what a claim's outcome says about its destination. The set is closed; empty is nothing.
type Tells string

// What outcomes say.
const (
	TellsFailed      Tells = "failed"      // the destination did not answer, or is unavailable
	TellsAnswered    Tells = "answered"    // it answered: a success, or a refusal
	TellsRateLimited Tells = "rateLimited" // it asked for a lower pace, or for a pause
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

// Wanted reports whether the process should report the outcome of such a release, which gateCanary tells it.
func (k Kind) Wanted() bool { return k == Test || k == RampedUp }
