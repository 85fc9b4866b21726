package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"retry-worker/internal/decision"
)

// StartPolicies creates the series of the policies at 0, because a rate needs a first sample. Existing series stay. So
// do those of removed policies, whose jobs may still be under way; a counter that vanishes loses what was not scraped.
// It is safe for concurrent use.
func (m *Metrics) StartPolicies(policies decision.Policies) {
	for _, p := range policies {
		m.startPolicy(p.Name)
		m.startPermanent(p)
	}
}

// startPermanent creates the series of the permanent errors that p can report.
func (m *Metrics) startPermanent(p *decision.Policy) {
	start := func(reason decision.Reason, team decision.Team) {
		m.permanentErrors.WithLabelValues(p.Name, string(reason), string(team))
	}
	for _, r := range p.Rules.Rules() {
		if r.Class == decision.Permanent {
			start(r.Reason, r.Team)
		}
		if decision.AlreadyThere(r.Class, r.Reason) {
			start(decision.ReasonProbablyAccepted, decision.ProbablyAcceptedTeam)
		}
	}
	if p.Own != nil {
		start(decision.ReasonNonRetryable, p.LimitTeam) // R15
	}
	if p.UnknownError == decision.GiveUpUnknown {
		start(decision.ReasonUnknown, p.LimitTeam)
	}
}

// startPolicy creates the series that every policy has.
func (m *Metrics) startPolicy(policy string) {
	for _, h := range []*prometheus.HistogramVec{m.analysisDuration, m.backoffMinutes, m.submissionBackoff, m.jitterRatio,
		m.recoverySeconds, m.recoveryAttempts} {
		h.WithLabelValues(policy)
	}
	for _, c := range []*prometheus.CounterVec{m.maxRetries, m.submissionRetries, m.submissionMaxExceeded,
		m.possiblyAccepted, m.newCauses, m.accepted} {
		c.WithLabelValues(policy)
	}
	for _, class := range []decision.ErrorClassification{decision.Transient, decision.Permanent, decision.Unknown} {
		m.classifications.WithLabelValues(policy, string(class))
		if class != decision.Permanent {
			m.retryScheduled.WithLabelValues(policy, string(class))
		}
	}
}

// SetCatalogue sets the version of the catalogue in force.
func (m *Metrics) SetCatalogue(version string) { m.version.Store(&version) }
