package metrics

import (
	"math"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
)

// heldBuckets run from a canary's round trip to the limit of two days (R20).
var heldBuckets = []float64{1, 10, 60, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800}

var (
	destinationState = describe("retry_worker_destination_state",
		"1 for the current state; for `other`, the number of destinations in that state; the same in every replica.",
		"destination", "state")
	failedRamps = describe("retry_worker_destination_failed_ramps",
		"Ramps of the current outage that a failure ended; the same in every replica.", "destination")
	heldClaims = describe("retry_worker_held",
		"Claims that wait until their destination may be tried; the same in every replica.", "destination")
	heldDeadline = describe("retry_worker_held_deadline_seconds",
		"Time until the nearest deadline of the claims that are held; the same in every replica, "+
			"absent where none has one.", "destination")
)

var phases = [...]destination.Phase{destination.Up, destination.Down, destination.Testing, destination.Ramping}

func (m *Metrics) registerDestinations() {
	m.released = m.counter("retry_worker_released_total", "Claims that this replica let through, by why: "+
		"the destination is up (pass), to test it (canary), or after an outage (ramp).", "destination", "kind")
	m.wasted = m.counter("retry_worker_wasted_attempts_total",
		"Submissions that failed because their destination was not up, as the replica that releases claims saw them.",
		"destination")
	m.heldFor = m.histogram("retry_worker_held_seconds", "How long claims were held before they were let through.",
		heldBuckets).WithLabelValues()
	m.StartDestination(destination.Other)
}

// StartDestination creates the series of a configured destination.
func (m *Metrics) StartDestination(name string) {
	for _, kind := range []destination.Kind{destination.Pass, destination.Test, destination.RampedUp} {
		m.released.WithLabelValues(name, string(kind))
	}
	m.wasted.WithLabelValues(name)
}

// GateHooks returns the gates' hooks.
func (m *Metrics) GateHooks() gate.Hooks {
	h := gate.NoHooks()
	h.Admitted = func(name string) { m.released.WithLabelValues(name, string(destination.Pass)).Inc() }
	h.Released = func(name string, kind destination.Kind, held time.Duration) {
		m.released.WithLabelValues(name, string(kind)).Inc()
		m.heldFor.Observe(held.Seconds())
	}
	h.GivenUp = func(policy string) { m.Ended(&decision.Decision{Policy: policy}) }
	h.Wasted = func(name string) { m.wasted.WithLabelValues(name).Inc() }
	h.Answered = m.Hooks().Answered
	return h
}

func (f *Figures) putDestinations(v values) {
	for i := range f.Destinations {
		d := &f.Destinations[i]
		ramps := 0 // of the current outage
		if d.State.Phase != destination.Up {
			ramps = d.State.Outage.FailedRamps
		}
		for _, phase := range phases {
			v.put(destinationState, sum, oneIf(d.State.Phase == phase), d.Name, string(phase))
		}
		v.put(failedRamps, math.Max, float64(ramps), d.Name)
		v.put(heldClaims, sum, float64(d.Held), d.Name)
		if !d.Deadline.IsZero() {
			v.put(heldDeadline, math.Min, d.Deadline.Sub(f.Read).Seconds(), d.Name)
		}
	}
}
