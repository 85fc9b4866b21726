package metrics_test

import (
	"strings"
	"testing"
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/metrics"
	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit/golden"
)

// TestScenes holds, in testdata/NAME.txt, the series of these names after each step of a scene.
func TestScenes(t *testing.T) {
	for name, scene := range map[string]struct {
		series string
		steps  []func(t *testing.T, m *metrics.Metrics)
	}{
		// Before the journal was read nothing is told of it. Then each policy's states add up over teams and reasons, the open ones are
		// there by who must act and why, and an age, an amount or a wait only while there is something to have it; what vanishes leaves no
		// old value behind.
		"figures": {"retry_worker_dead_letters retry_worker_notices_oldest retry_worker_outbox_pending", []func(*testing.T, *metrics.Metrics){
			func(*testing.T, *metrics.Metrics) {}, showLetters, showFewer,
		}},
		// R19's figures: all of them, as the journal has them, of a policy that is gone too.
		"kpis": {"retry_worker_kpi retry_success_rate", []func(*testing.T, *metrics.Metrics){showKPIs, func(_ *testing.T, m *metrics.Metrics) {
			m.Show(&metrics.Figures{Read: analysed, KPIs: statistics.All(nil, []string{"gone"}, analysed)})
		}}},
		// Destinations that nobody configured share a label, whatever their names hold.
		"destinations": {"retry_worker_destination retry_worker_held retry_worker_released retry_worker_wasted", []func(*testing.T, *metrics.Metrics){
			showDestinations, func(_ *testing.T, m *metrics.Metrics) {
				for held, kind := range map[time.Duration]destination.Kind{0: destination.Pass, 2 * time.Second: destination.Pass, time.Hour: destination.RampedUp} {
					if m.Add("retry_worker_released_total", 1, "unimed-sp", string(kind)); held > 0 {
						m.Observe("retry_worker_held_seconds", held.Seconds())
					}
				}
				m.Add("retry_worker_wasted_attempts_total", 1, "other")
			},
		}},
		// The series of a team and way start at 0.
		"notices": {"retry_worker_notices_total", []func(*testing.T, *metrics.Metrics){func(_ *testing.T, m *metrics.Metrics) {
			m.Start(map[string]string{"team": "ti", "channel": string(notify.Email)})
			m.Add("retry_worker_notices_total", 1, "ti", "email", "failed")
			m.Add("retry_worker_notices_total", 1, "ti", "email", "failed")
		}}},
		// The series of a policy that a reload brings are there at 0, everything that it can end in among them; those of the others keep
		// what they counted, also where their policy is gone. The catalogue is one series: a join by version must never meet two, or none.
		"reload": {"max_retries_exceeded_total retry_scheduled_total error_classification_distribution retry_analysis_duration_seconds_count " +
			"retry_worker_recovery_seconds_count permanent_errors_total retry_worker_catalogue_info", []func(*testing.T, *metrics.Metrics){
			feed, func(_ *testing.T, m *metrics.Metrics) {
				m.StartPolicies(decision.Policies{"job-queue": jobQueue()}) // and tiss-submission is gone
				m.SetCatalogue("ba9876543210")
			}, func(t *testing.T, m *metrics.Metrics) {
				decideBy(t, m, jobQueue(), decision.Variables{Error: `"something new"`, MaxAttempts: "3"})
				decideBy(t, m, jobQueue(), decision.Variables{Error: `"TIMEOUT"`, NonRetryable: "true", MaxAttempts: "3"})
			},
		}},
		// What /readyz is about has a gauge of its own.
		"readiness": {"retry_worker_catalogue_rejected retry_worker_tokens_rejected retry_worker_certificate_rejected retry_worker_purge_refused " +
			"retry_worker_journal_up", []func(*testing.T, *metrics.Metrics){
			note(metrics.AboutCatalogue), note(metrics.AboutTokens), note(metrics.AboutCertificate), note(metrics.AboutPurge),
			func(_ *testing.T, m *metrics.Metrics) {
				m.Readiness.Note(metrics.AboutPurge, "")
				m.Readiness.NotReady(metrics.AboutJournal, "")
			},
			func(_ *testing.T, m *metrics.Metrics) { m.Readiness.NotReady(metrics.AboutJournal, "disk full") },
		}},
	} {
		m, url := served(t)
		said := ""
		for _, step := range scene.steps {
			step(t, m)
			said += "----\n"
			for line := range strings.Lines(scrape(t, url)) {
				for series := range strings.FieldsSeq(scene.series) {
					if strings.HasPrefix(line, series) {
						said += line
					}
				}
			}
		}
		golden.Check(t, "testdata/"+name+".txt", said)
	}
}

// note has readiness note something about one thing, and nothing about the others.
func note(about string) func(*testing.T, *metrics.Metrics) {
	return func(_ *testing.T, m *metrics.Metrics) {
		for _, other := range []string{metrics.AboutCatalogue, metrics.AboutTokens, metrics.AboutCertificate, metrics.AboutPurge} {
			m.Readiness.Note(other, "")
		}
		m.Readiness.Note(about, "it is wrong")
	}
}

func showLetters(_ *testing.T, m *metrics.Metrics) {
	now := analysed
	count := func(policy string, state journal.DeadLetterState, n int64, age time.Duration) deadletter.Count {
		c := deadletter.Count{Policy: policy, State: state, N: n}
		if age > 0 {
			c.Oldest = now.Add(-age)
		}
		return c
	}
	m.Show(&metrics.Figures{Read: now, Policies: []string{"tiss-submission", "job-queue"},
		DeadLetters: []deadletter.Count{
			count("tiss-submission", journal.DeadLetterOpen, 70, time.Hour), count("tiss-submission", journal.DeadLetterOpen, 31, 2*time.Hour),
			count("tiss-submission", journal.DeadLetterDiscarded, 4, 0), count("gone", journal.DeadLetterOpen, 1, time.Minute),
			count("reprocessed", journal.DeadLetterReprocessing, 2, time.Minute),
			{Policy: "tiss-submission", State: journal.DeadLetterOpen, Team: "cadastro", Reason: "INVALID_PATIENT_DATA", N: 7},
		},
		Due: map[string][]deadletter.Count{"2h": {{Policy: "tiss-submission", Team: "ti", N: 2, Cents: 3100050}, {Policy: "tiss-submission", N: 1}}},
		Notices: []notify.Waiting{{Team: "ti", Channel: notify.Email, Since: now.Add(-time.Hour)}, {Team: "ti", Channel: notify.Email, Since: now.Add(-time.Minute)},
			{Team: "cadastro", Channel: notify.Webhook, Since: now.Add(time.Hour)}}, // another replica's clock is ahead
		Pending: map[string]int64{"reviews": 2, "events": 3},
	})
}

func showFewer(_ *testing.T, m *metrics.Metrics) {
	m.Show(&metrics.Figures{Read: analysed, Policies: []string{"tiss-submission", "job-queue"},
		DeadLetters: []deadletter.Count{{Policy: "tiss-submission", State: journal.DeadLetterOpen, N: 1, Oldest: analysed.Add(time.Hour)}}})
}

func showKPIs(_ *testing.T, m *metrics.Metrics) {
	var sums []journal.Sum
	for name, n := range map[journal.SumName]int64{journal.SumDecisions: 8, journal.SumPermanent: 2, journal.SumRecoveredRetried: 3, journal.SumExhaustedRetried: 1} {
		sums = append(sums, journal.Sum{Policy: "gone", Slot: journal.SlotOf(analysed), Name: name, N: n})
	}
	m.Show(&metrics.Figures{Read: analysed, KPIs: statistics.All(sums, nil, analysed)})
}

func showDestinations(_ *testing.T, m *metrics.Metrics) {
	in := func(name string, phase destination.Phase, held int, deadline time.Duration) gate.Destination {
		configured := destination.Configured{Named: map[string]destination.Settings{"tiss": {}, "unimed-sp": {}}}
		d := gate.Destination{Name: configured.Label(name), Held: held}
		d.State.Phase, d.State.Outage.FailedRamps = phase, 3
		if deadline > 0 {
			d.Deadline = analysed.Add(deadline)
		}
		return d
	}
	m.Show(&metrics.Figures{Read: analysed, Destinations: []gate.Destination{
		in("tiss", destination.Up, 0, 0), in("unimed-sp", destination.Down, 210, 2*time.Hour),
		in(canary, destination.Ramping, 4, 3*time.Hour), in("x", destination.Down, 5, time.Hour), in("y", destination.Down, 0, 0),
	}})
	m.Start(map[string]string{"destination": "unimed-sp"})
}
