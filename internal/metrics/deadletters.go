package metrics

import (
	"time"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
)

// SetDeadLetters takes over how many dead letters there are, by policy and state, and how old the oldest open one of
// each policy is at now. What is not among counts is 0. Not for concurrent use with itself.
func (m *Metrics) SetDeadLetters(counts []deadletter.Count, now time.Time) {
	numbers := make(map[string]map[journal.DeadLetterState]int64)
	oldest := make(map[string]time.Time)
	for policy := range m.policies.Range { // those of which none is left, too
		numbers[policy.(string)] = map[journal.DeadLetterState]int64{}
	}
	for i := range counts {
		c := &counts[i]
		if numbers[c.Policy] == nil { // of a policy that is in the catalogue no longer
			m.startPolicy(c.Policy)
			numbers[c.Policy] = map[journal.DeadLetterState]int64{}
		}
		numbers[c.Policy][c.State] += c.N
		if c.State != journal.DeadLetterOpen || c.N == 0 || c.Oldest.IsZero() {
			continue
		}
		if first, known := oldest[c.Policy]; !known || c.Oldest.Before(first) {
			oldest[c.Policy] = c.Oldest
		}
	}
	m.setOpen(counts)
	for policy, states := range numbers {
		for _, state := range journal.DeadLetterStates() {
			m.deadLetters.WithLabelValues(policy, string(state)).Set(float64(states[state]))
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

// DueWithin are the spans that SetDeadLettersDue takes, by the names that the metric has for them.
func DueWithin() map[string]time.Duration {
	return map[string]time.Duration{"2h": 2 * time.Hour, "24h": 24 * time.Hour}
}

// SetDeadLettersDue takes over how many open dead letters are due within a span, and what they are worth. What is not
// among counts is 0.
func (m *Metrics) SetDeadLettersDue(within string, counts []journal.CauseCount) {
	due := map[string]journal.CauseCount{}
	for policy := range m.policies.Range {
		due[policy.(string)] = journal.CauseCount{}
	}
	for i := range counts {
		c, known := due[counts[i].Policy]
		if !known { // of a policy that is in the catalogue no longer
			m.startPolicy(counts[i].Policy)
		}
		c.N, c.Cents = c.N+counts[i].N, c.Cents+counts[i].Cents
		due[counts[i].Policy] = c
	}
	for policy, c := range due {
		m.dueDeadLetters.WithLabelValues(policy, within).Set(float64(c.N))
		m.dueAmount.WithLabelValues(policy, within).Set(float64(c.Cents) / 100)
	}
}
