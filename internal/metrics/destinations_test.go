package metrics_test

import (
	"testing"
	"time"

	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/metrics"
)

// TestDestinations: those that nobody configured share a label, whatever their names hold.
func TestDestinations(t *testing.T) {
	m, url := served(t)
	in := func(name string, phase destination.Phase, held int, deadline time.Duration) gate.Destination {
		d := gate.Destination{Name: name, Held: held}
		d.State.Phase, d.State.Outage.FailedRamps = phase, 3
		if deadline > 0 {
			d.Deadline = analysed.Add(deadline)
		}
		return d
	}
	all := []gate.Destination{
		in("tiss", destination.Up, 0, 0), in("unimed-sp", destination.Down, 210, 2*time.Hour),
		in(canary, destination.Ramping, 4, 3*time.Hour), in("x", destination.Down, 5, time.Hour),
		in("y", destination.Down, 0, 0),
	}
	configured := destination.Configured{Named: map[string]destination.Settings{"tiss": {}, "unimed-sp": {}}}
	for i := range all {
		all[i].Name = configured.Label(all[i].Name)
	}
	m.Show(&metrics.Figures{Read: analysed, Destinations: all})
	m.StartDestination("unimed-sp")
	wantLines(t, scrape(t, url), map[string]bool{
		`retry_worker_released_total{destination="unimed-sp",kind="canary"} 0`: true,
		`retry_worker_wasted_attempts_total{destination="other"} 0`:            true,
	})
	h := m.GateHooks()
	h.Admitted("unimed-sp")
	h.Released("unimed-sp", destination.Pass, 2*time.Second)
	h.Released("unimed-sp", destination.RampedUp, time.Hour)
	h.Wasted("other")
	text := scrape(t, url)
	wantLines(t, text, map[string]bool{
		`retry_worker_destination_state{destination="tiss",state="up"} 1`:        true,
		`retry_worker_destination_state{destination="unimed-sp",state="down"} 1`: true,
		`retry_worker_destination_state{destination="unimed-sp",state="up"} 0`:   true,
		`retry_worker_destination_state{destination="other",state="down"} 2`:     true,
		`retry_worker_destination_state{destination="other",state="ramping"} 1`:  true,
		`retry_worker_destination_failed_ramps{destination="tiss"} 0`:            true, // those of the last outage
		`retry_worker_destination_failed_ramps{destination="unimed-sp"} 3`:       true,
		`retry_worker_held{destination="unimed-sp"} 210`:                         true,
		`retry_worker_held{destination="other"} 9`:                               true,
		`retry_worker_held_deadline_seconds{destination="tiss"}`:                 false,
		`retry_worker_held_deadline_seconds{destination="unimed-sp"} 7200`:       true,
		`retry_worker_held_deadline_seconds{destination="other"} 3600`:           true,
		`retry_worker_released_total{destination="unimed-sp",kind="pass"} 2`:     true,
		`retry_worker_released_total{destination="unimed-sp",kind="ramp"} 1`:     true,
		`retry_worker_held_seconds_sum 3602`:                                     true,
		`retry_worker_wasted_attempts_total{destination="other"} 1`:              true,
	})
	if got := families(t, text)["retry_worker_destination_state"].GetMetric(); len(got) != 12 {
		t.Errorf("%d series of states, want four of three labels", len(got))
	}
}
