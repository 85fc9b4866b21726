package metrics

import (
	"maps"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
)

// series are one policy's children, looked up once and not for every job.
type series struct {
	analysisDuration, backoffMinutes, submissionBackoff, jitterRatio prometheus.Observer
	maxRetries, submissionRetries, submissionMaxExceeded             prometheus.Counter
	classified, scheduled                                            map[decision.ErrorClassification]prometheus.Counter
}

// StartPolicies creates the series that the policies can have, at 0: a rate needs a first sample. Those that are there
// already stay as they are, and so do those of policies that are gone: their jobs may be on their way yet, and a
// counter that vanishes loses what nobody has read. Safe for concurrent use with everything else.
func (m *Metrics) StartPolicies(policies decision.Policies) {
	for _, p := range policies {
		m.series(p.Name)
		m.startPermanent(p)
	}
}

// startPermanent creates the series of the permanent errors that p can end in.
func (m *Metrics) startPermanent(p *decision.Policy) {
	start := func(reason decision.Reason, team decision.Team) {
		m.permanentErrors.WithLabelValues(p.Name, string(reason), string(team))
	}
	for _, r := range p.Rules.Rules() {
		if r.Class == decision.Permanent {
			start(r.Reason, r.Team)
		}
	}
	if p.Own != nil {
		start(decision.ReasonNonRetryable, p.LimitTeam) // R15
	}
	if p.UnknownError == decision.GiveUpUnknown {
		start(decision.ReasonUnknown, p.LimitTeam)
	}
}

// series are those of a policy, made where there are none yet. It takes no lock where there are.
func (m *Metrics) series(policy string) *series {
	if s := (*m.policies.Load())[policy]; s != nil {
		return s
	}
	m.starting.Lock()
	defer m.starting.Unlock()
	known := *m.policies.Load()
	if s := known[policy]; s != nil {
		return s
	}
	all := maps.Clone(known)
	all[policy] = m.newSeries(policy)
	m.policies.Store(&all)
	return all[policy]
}

func (m *Metrics) newSeries(policy string) *series {
	s := &series{
		analysisDuration:      m.analysisDuration.WithLabelValues(policy),
		backoffMinutes:        m.backoffMinutes.WithLabelValues(policy),
		submissionBackoff:     m.submissionBackoff.WithLabelValues(policy),
		jitterRatio:           m.jitterRatio.WithLabelValues(policy),
		maxRetries:            m.maxRetries.WithLabelValues(policy),
		submissionRetries:     m.submissionRetries.WithLabelValues(policy),
		submissionMaxExceeded: m.submissionMaxExceeded.WithLabelValues(policy),
		classified:            make(map[decision.ErrorClassification]prometheus.Counter),
		scheduled:             make(map[decision.ErrorClassification]prometheus.Counter),
	}
	for _, c := range []decision.ErrorClassification{decision.Transient, decision.Permanent, decision.Unknown} {
		s.classified[c] = m.classifications.WithLabelValues(policy, string(c))
		if c != decision.Permanent {
			s.scheduled[c] = m.retryScheduled.WithLabelValues(policy, string(c))
		}
	}
	m.recoverySeconds.WithLabelValues(policy)
	m.recoveryAttempts.WithLabelValues(policy)
	for _, state := range journal.DeadLetterStates() {
		m.deadLetters.WithLabelValues(policy, string(state)) // 0 where it is new
	}
	return s
}

// SetCatalogue tells which version of the catalogue is in force.
func (m *Metrics) SetCatalogue(version string) { m.version.current.Store(&version) }

// SetCatalogueRejected reports whether the policies file holds a catalogue that is refused.
func (m *Metrics) SetCatalogueRejected(rejected bool) { m.catalogueRejected.Set(boolToFloat(rejected)) }

// catalogueInfo is one series at every moment: the version in force. A vector would have none, or two, while it
// changes.
type catalogueInfo struct {
	description *prometheus.Desc
	current     atomic.Pointer[string]
}

func newCatalogueInfo() *catalogueInfo {
	c := &catalogueInfo{description: prometheus.NewDesc("retry_worker_catalogue_info",
		"1, labelled with the version of the policy catalogue in force.", []string{"version"}, nil)}
	c.current.Store(new(string))
	return c
}

// Describe implements prometheus.Collector.
func (c *catalogueInfo) Describe(to chan<- *prometheus.Desc) { to <- c.description }

// Collect implements prometheus.Collector.
func (c *catalogueInfo) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.MustNewConstMetric(c.description, prometheus.GaugeValue, 1, *c.current.Load())
}
