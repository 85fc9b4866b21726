package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
)

// SetDeadLetters takes over how many dead letters there are, by policy and state, and how old the oldest open one of
// each policy is at now. What is not among counts is 0. Not for concurrent use with itself.
func (m *Metrics) SetDeadLetters(counts []deadletter.Count, now time.Time) {
	type key struct {
		policy string
		state  journal.DeadLetterState
	}
	numbers, oldest := map[key]int64{}, map[string]time.Time{}
	for i := range counts {
		c := &counts[i]
		m.knowPolicy(c.Policy)
		numbers[key{c.Policy, c.State}] += c.N
		first, known := oldest[c.Policy]
		if c.State == journal.DeadLetterOpen && c.N > 0 && !c.Oldest.IsZero() && (!known || c.Oldest.Before(first)) {
			oldest[c.Policy] = c.Oldest
		}
	}
	m.setOpen(counts)
	for name := range m.policies.Range { // those of which none is left, too
		policy := name.(string)
		for _, state := range journal.DeadLetterStates() {
			m.deadLetters.WithLabelValues(policy, string(state)).Set(float64(numbers[key{policy, state}]))
		}
		if first, open := oldest[policy]; open {
			m.oldestDeadLetter.WithLabelValues(policy).Set(max(now.Sub(first), 0).Seconds())
		} else {
			m.oldestDeadLetter.DeleteLabelValues(policy)
		}
	}
}

// openLabels tells the open dead letters apart by who must act on them, and why.
type openLabels struct{ policy, team, reason string }

// setOpen takes over who must act on what is open; what is gone is 0, so that it is seen to be gone.
func (m *Metrics) setOpen(counts []deadletter.Count) {
	open := make(map[openLabels]float64)
	for key := range m.openSeen {
		open[key] = 0
	}
	for i := range counts {
		if c := &counts[i]; c.State == journal.DeadLetterOpen {
			open[openLabels{c.Policy, string(c.Team), string(c.Reason)}] += float64(c.N)
		}
	}
	for key, n := range open {
		m.openDeadLetters.WithLabelValues(key.policy, key.team, key.reason).Set(n)
	}
	m.openSeen = open
}

// DueWithin returns the spans that SetDeadLettersDue takes, by the names that the metric has for them.
func DueWithin() map[string]time.Duration {
	return map[string]time.Duration{"2h": 2 * time.Hour, "24h": 24 * time.Hour}
}

// SetDeadLettersDue takes over how many open dead letters are due within a span, and what they are worth. What is not
// among counts is 0.
func (m *Metrics) SetDeadLettersDue(within string, counts []deadletter.Count) {
	due := map[string]deadletter.Count{}
	for i := range counts {
		m.knowPolicy(counts[i].Policy)
		c := due[counts[i].Policy]
		c.N, c.Cents = c.N+counts[i].N, c.Cents+counts[i].Cents
		due[counts[i].Policy] = c
	}
	for policy := range m.policies.Range {
		c := due[policy.(string)]
		m.dueDeadLetters.WithLabelValues(policy.(string), within).Set(float64(c.N))
		m.dueAmount.WithLabelValues(policy.(string), within).Set(float64(c.Cents) / 100)
	}
}

// bulkHeld is the state of a running run that waits for the engine or the journal, beside journal's own.
const bulkHeld = "held"

// registerBulk registers what is known of bulk runs, with all series at 0.
func (m *Metrics) registerBulk() {
	m.bulkItems = m.counter("retry_worker_bulk_items_total",
		"Dead letters of bulk runs that this replica has decided on (decided), or could not (refused).", "action", "outcome")
	m.bulkRuns = m.gauges("retry_worker_bulk_runs",
		"Bulk runs that have not ended, by state; held are running ones that wait for the engine or the journal; the same "+
			"in every replica.", "state")
	for _, action := range []journal.BulkAction{journal.BulkRetry, journal.BulkDiscard} {
		for _, outcome := range []journal.BulkOutcome{journal.BulkDecided, journal.BulkRefused} {
			m.bulkItems.WithLabelValues(string(action), string(outcome))
		}
	}
	m.SetBulkRuns(nil)
}

// BulkDecided counts a dead letter that a bulk run has decided on.
func (m *Metrics) BulkDecided(a journal.BulkAction) {
	m.bulkItems.WithLabelValues(string(a), string(journal.BulkDecided)).Inc()
}

// BulkRefused counts a dead letter that a bulk run could not decide on.
func (m *Metrics) BulkRefused(a journal.BulkAction) {
	m.bulkItems.WithLabelValues(string(a), string(journal.BulkRefused)).Inc()
}

// SetBulkRuns takes over which runs have not ended.
func (m *Metrics) SetBulkRuns(active []journal.BulkRun) {
	n := map[string]int{string(journal.BulkRunning): 0, string(journal.BulkPaused): 0, bulkHeld: 0}
	for i := range active {
		state := string(active[i].State)
		if active[i].State == journal.BulkRunning && active[i].Hold != "" {
			state = bulkHeld
		}
		n[state]++
	}
	for state, of := range n {
		m.bulkRuns.WithLabelValues(state).Set(float64(of))
	}
}

// notices are the figures of what teams are told.
type notices struct {
	tried  *prometheus.CounterVec
	oldest *prometheus.GaugeVec
}

func (m *Metrics) registerNotices() {
	m.notices.tried = m.counter("retry_worker_notices_total",
		"Tries to tell a team of its dead letters, by what became of them.", "team", "channel", "result")
	m.notices.oldest = m.gauges("retry_worker_notices_oldest_seconds",
		"How long the oldest message to a team waits to be sent; the same in every replica, absent where none waits.", "team",
		"channel")
}

// StartNotices creates the series of a team and a way that it is told by.
func (m *Metrics) StartNotices(team decision.Team, c notify.Channel) {
	for _, r := range notify.Results() {
		m.notices.tried.WithLabelValues(string(team), string(c), string(r))
	}
}

// NoticeTried counts a try to tell a team.
func (m *Metrics) NoticeTried(team decision.Team, c notify.Channel, r notify.Result) {
	m.notices.tried.WithLabelValues(string(team), string(c), string(r)).Inc()
}

// SetNotices takes over which messages to teams wait at now.
func (m *Metrics) SetNotices(waiting []notify.Waiting, now time.Time) {
	m.notices.oldest.Reset()
	for i := len(waiting) - 1; i >= 0; i-- { // the oldest comes first, and is to stay
		w := &waiting[i]
		m.notices.oldest.WithLabelValues(string(w.Team), string(w.Channel)).Set(max(now.Sub(w.Since), 0).Seconds())
	}
}
