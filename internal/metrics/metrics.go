// Package metrics holds every Prometheus metric of the service, and its probes.
package metrics

import (
	_ "embed" // the description is part of the program
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.yaml.in/yaml/v3"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/worker"
)

//go:embed metrics.yaml
var described []byte

// metric is the description of one in metrics.yaml.
type metric struct {
	Labels  []string
	Help    string
	Buckets []float64
}

// Metrics holds the counters of one process. Labels come from closed sets only.
type Metrics struct {
	registry *prometheus.Registry
	vectors  map[string]*prometheus.MetricVec   // by name
	single   map[string][]*prometheus.MetricVec // those with a single label, by that
	figures  map[string]figure                  // by name
	version  atomic.Pointer[string]             // of the catalogue in force
	shown    atomic.Pointer[values]
	// Readiness is what /readyz shows.
	Readiness Readiness
}

// Build describes the binary.
type Build struct{ Version, Commit, GoVersion string }

// New registers every metric.
func New(b Build) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), vectors: map[string]*prometheus.MetricVec{},
		single: map[string][]*prometheus.MetricVec{}, figures: map[string]figure{}}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		figureCollector{m},
	)
	m.register()
	m.shown.Store(&values{}) // the journal has not been read yet
	m.SetCatalogue("")
	m.set("retry_worker_build_info", 1, b.Version, b.Commit, b.GoVersion)
	m.add("retry_worker_jobs_in_flight", 0)
	m.StartDestination(destination.Other)
	m.registerReadiness()
	return m
}

// register makes the metrics of metrics.yaml. Counters and histograms without labels begin at 0; a gauge is absent until
// it is set.
func (m *Metrics) register() {
	var kinds map[string]map[string]metric
	if err := yaml.Unmarshal(described, &kinds); err != nil {
		panic("metrics: " + err.Error())
	}
	to := promauto.With(m.registry)
	for name, d := range kinds["figures"] {
		m.figures[name] = figure{prometheus.NewDesc(name, d.Help, d.Labels, nil), len(d.Labels)}
	}
	for name, d := range kinds["gauges"] {
		m.vectors[name] = to.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: d.Help}, d.Labels).MetricVec
	}
	for name, d := range kinds["counters"] {
		m.keep(name, d.Labels, to.NewCounterVec(prometheus.CounterOpts{Name: name, Help: d.Help}, d.Labels).MetricVec)
	}
	for name, d := range kinds["histograms"] {
		o := prometheus.HistogramOpts{Name: name, Help: d.Help, Buckets: d.Buckets}
		m.keep(name, d.Labels, to.NewHistogramVec(o, d.Labels).MetricVec)
	}
}

// keep keeps a vector. Without labels its one series begins.
func (m *Metrics) keep(name string, labels []string, v *prometheus.MetricVec) {
	m.vectors[name] = v
	switch len(labels) {
	case 0:
		m.series(name)
	case 1:
		m.single[labels[0]] = append(m.single[labels[0]], v)
	}
}

// series returns a metric with these values of its labels. It is created if there is none.
func (m *Metrics) series(name string, values ...string) prometheus.Metric {
	s, err := m.vectors[name].GetMetricWithLabelValues(values...)
	if err != nil { // the wrong number of labels
		panic("metrics: " + name + ": " + err.Error())
	}
	return s
}

func (m *Metrics) count(name string, values ...string) { m.add(name, 1, values...) }

func (m *Metrics) add(name string, n float64, values ...string) {
	m.series(name, values...).(interface{ Add(float64) }).Add(n)
}

func (m *Metrics) observe(name string, value float64, values ...string) {
	m.series(name, values...).(prometheus.Observer).Observe(value)
}

func (m *Metrics) set(name string, value float64, values ...string) {
	m.series(name, values...).(prometheus.Gauge).Set(value)
}

// Decided counts a new decision in the figures of both rules (R16).
func (m *Metrics) Decided(_ string, d *decision.Decision, took time.Duration) {
	if d.PossiblyAccepted {
		m.count("retry_worker_possibly_accepted_total", d.Policy)
	}
	class := string(d.ErrorClassification)
	m.observe("retry_analysis_duration_seconds", took.Seconds(), d.Policy)
	m.count("error_classification_distribution", d.Policy, class)
	switch d.Outcome {
	case decision.Retry:
		minutes := d.Backoff.Delay.Minutes()
		m.count("retry_scheduled_total", d.Policy, class)
		m.count("submission_retry_total", d.Policy)
		m.observe("backoff_duration_minutes", minutes, d.Policy)
		m.observe("submission_retry_backoff_minutes", minutes, d.Policy)
		if d.Backoff.JitterRatio != 0 { // without jitter none is drawn
			m.observe("retry_worker_jitter_ratio", d.Backoff.JitterRatio, d.Policy)
		}
	case decision.MaxRetriesExceeded:
		m.Ended(d)
	case decision.PermanentError:
		m.count("permanent_errors_total", d.Policy, string(d.Reason), string(d.Team))
	}
}

// Ended counts a failure that is given up at the limit of retries or of time.
func (m *Metrics) Ended(d *decision.Decision) {
	m.count("max_retries_exceeded_total", d.Policy)
	m.count("submission_retry_max_exceeded", d.Policy)
}

// Hooks returns the worker's hooks.
func (m *Metrics) Hooks() worker.Hooks {
	return worker.Hooks{
		Decided:  m.Decided,
		Ended:    m.Ended,
		Replayed: func() { m.count("retry_worker_decisions_replayed_total") },
		Rejected: func(jobType string, code decision.RejectionCode) {
			m.count("retry_worker_rejected_inputs_total", jobType, string(code))
		},
		Answered:  func(jobType string, a worker.Action) { m.count("retry_worker_jobs_total", jobType, string(a)) },
		InFlight:  func(delta int) { m.add("retry_worker_jobs_in_flight", float64(delta)) },
		EngineUp:  func(up bool) { m.set("retry_worker_engine_up", oneIf(up)) },
		Panicked:  func(jobType string) { m.count("retry_worker_panics_total", jobType) },
		TimedOut:  func(jobType string) { m.count("retry_worker_analysis_timeouts_total", jobType) },
		Oversized: func(jobType string) { m.count("retry_worker_oversized_total", jobType) },
	}
}

// Committed counts one commit of the journal, and the episodes that it ended well.
func (m *Metrics) Committed(records []journal.Happening, took time.Duration) {
	m.observe("retry_worker_journal_write_seconds", took.Seconds())
	for i := range records {
		switch h, e := &records[i], &records[i].Episode; {
		case h.Recovered() && e.Scheduled > 0: // otherwise it needed no retry
			m.observe("retry_worker_recovery_seconds", e.ClosedAt.Sub(e.FirstFailure).Seconds(), h.Subject.Policy)
			m.observe("retry_worker_recovery_attempts", float64(e.Retries), h.Subject.Policy)
		case h.Accepted(): // the other side had it already (R33)
			m.count("retry_worker_accepted_total", h.Subject.Policy)
		}
	}
}

// NewCause counts a cause that is new or back (R34).
func (m *Metrics) NewCause(policy string) { m.count("retry_worker_new_causes_total", policy) }

// EventsPublished counts events that the message queue accepted.
func (m *Metrics) EventsPublished(n int) { m.add("retry_worker_outbox_published_total", float64(n)) }

// StartNotices creates the series of a team and one of its channels.
func (m *Metrics) StartNotices(team decision.Team, c notify.Channel) {
	for _, r := range notify.Results() {
		m.series("retry_worker_notices_total", string(team), string(c), string(r))
	}
}

// NoticeTried counts a try to notify a team.
func (m *Metrics) NoticeTried(team decision.Team, c notify.Channel, r notify.Result) {
	m.count("retry_worker_notices_total", string(team), string(c), string(r))
}

// StartJobType creates the series of a job type.
func (m *Metrics) StartJobType(jobType string) {
	for _, a := range worker.Actions() {
		m.series("retry_worker_jobs_total", jobType, string(a))
	}
	for _, code := range decision.RejectionCodes() {
		m.series("retry_worker_rejected_inputs_total", jobType, string(code))
	}
	m.start("job_type", jobType)
}

// StartPolicies creates the series of the policies at 0, because a rate needs a first sample. Existing series stay. So
// do those of removed policies, whose jobs may still be under way; a counter that vanishes loses what was not scraped.
// It is safe for concurrent use.
func (m *Metrics) StartPolicies(policies decision.Policies) {
	for _, p := range policies {
		m.start("policy", p.Name)
		for _, class := range []decision.ErrorClassification{decision.Transient, decision.Permanent, decision.Unknown} {
			m.series("error_classification_distribution", p.Name, string(class))
			if class != decision.Permanent {
				m.series("retry_scheduled_total", p.Name, string(class))
			}
		}
		m.startPermanent(p)
	}
}

// startPermanent creates the series of the permanent errors that p can report.
func (m *Metrics) startPermanent(p *decision.Policy) {
	start := func(reason decision.Reason, team decision.Team) {
		m.series("permanent_errors_total", p.Name, string(reason), string(team))
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

// SetCatalogue sets the version of the catalogue in force.
func (m *Metrics) SetCatalogue(version string) { m.version.Store(&version) }

// StartDestination creates the series of a configured destination.
func (m *Metrics) StartDestination(name string) {
	for _, kind := range []destination.Kind{destination.Pass, destination.Test, destination.RampedUp} {
		m.series("retry_worker_released_total", name, string(kind))
	}
	m.start("destination", name)
}

// GateHooks returns the gates' hooks.
func (m *Metrics) GateHooks() gate.Hooks {
	h := gate.NoHooks()
	h.Admitted = func(name string) { m.count("retry_worker_released_total", name, string(destination.Pass)) }
	h.Released = func(name string, kind destination.Kind, held time.Duration) {
		m.count("retry_worker_released_total", name, string(kind))
		m.observe("retry_worker_held_seconds", held.Seconds())
	}
	h.GivenUp = func(policy string) { m.Ended(&decision.Decision{Policy: policy}) }
	h.Wasted = func(name string) { m.count("retry_worker_wasted_attempts_total", name) }
	h.Answered = m.Hooks().Answered
	return h
}

// start creates the series of a label's value in the metrics that have no other label.
func (m *Metrics) start(label, value string) {
	for _, v := range m.single[label] {
		_, _ = v.GetMetricWithLabelValues(value) // cannot fail with one label
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
