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
	"retry-worker/internal/journal"
	"retry-worker/internal/worker"
)

//go:embed metrics.yaml
var described []byte

// metric is the description of one in metrics.yaml.
type metric struct {
	Labels  []string
	Help    string
	Buckets []float64
	// Last are the values of the last label, if they are a closed set of the program's.
	Last []string
	// About is the subject of /readyz that a gauge shows; empty for none.
	About string
}

// Metrics holds the counters of one process. Labels come from closed sets only.
type Metrics struct {
	registry *prometheus.Registry
	vectors  map[string]*prometheus.MetricVec // by name
	begun    map[string]metric                // those that begin at 0, by name
	figures  map[string]figure                // by name
	version  atomic.Pointer[string]           // of the catalogue in force
	shown    atomic.Pointer[values]
	// Readiness is what /readyz shows.
	Readiness Readiness
}

// Build describes the binary.
type Build struct{ Version, Commit, GoVersion string }

// New registers every metric.
func New(b Build) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), vectors: map[string]*prometheus.MetricVec{},
		begun: map[string]metric{}, figures: map[string]figure{}, Readiness: Readiness{reasons: map[string]string{},
			notes: map[string]string{}, gauges: map[string]prometheus.Gauge{}}}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		figureCollector{m},
	)
	m.register()
	m.shown.Store(&values{}) // the journal has not been read yet
	m.SetCatalogue("")
	m.set("retry_worker_build_info", 1, b.Version, b.Commit, b.GoVersion)
	m.Add("retry_worker_jobs_in_flight", 0)
	m.Start(nil)
	m.Start(map[string]string{"destination": destination.Other})
	return m
}

// register makes the metrics of metrics.yaml. A gauge is absent until it is set, unless it is about a subject of /readyz.
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
		if d.About != "" {
			m.Readiness.gauges[d.About] = m.series(name).(prometheus.Gauge)
		}
	}
	for name, d := range kinds["counters"] {
		m.vectors[name] = to.NewCounterVec(prometheus.CounterOpts{Name: name, Help: d.Help}, d.Labels).MetricVec
		m.begun[name] = d
	}
	for name, d := range kinds["histograms"] {
		o := prometheus.HistogramOpts{Name: name, Help: d.Help, Buckets: d.Buckets}
		m.vectors[name] = to.NewHistogramVec(o, d.Labels).MetricVec
		m.begun[name] = d
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

func (m *Metrics) count(name string, values ...string) { m.Add(name, 1, values...) }

// Add adds n to a counter or a gauge, with these values of its labels.
func (m *Metrics) Add(name string, n float64, values ...string) {
	m.series(name, values...).(interface{ Add(float64) }).Add(n)
}

// Observe adds a value to a histogram, with these values of its labels.
func (m *Metrics) Observe(name string, value float64, values ...string) {
	m.series(name, values...).(prometheus.Observer).Observe(value)
}

func (m *Metrics) set(name string, value float64, values ...string) {
	m.series(name, values...).(prometheus.Gauge).Set(value)
}

// Decided counts a new decision in the figures of both rules (R16).
func (m *Metrics) Decided(d *decision.Decision, took time.Duration) {
	if d.PossiblyAccepted {
		m.count("retry_worker_possibly_accepted_total", d.Policy)
	}
	class := string(d.ErrorClassification)
	m.Observe("retry_analysis_duration_seconds", took.Seconds(), d.Policy)
	m.count("error_classification_distribution", d.Policy, class)
	switch d.Outcome {
	case decision.Retry:
		minutes := d.Backoff.Delay.Minutes()
		m.count("retry_scheduled_total", d.Policy, class)
		m.count("submission_retry_total", d.Policy)
		m.Observe("backoff_duration_minutes", minutes, d.Policy)
		m.Observe("submission_retry_backoff_minutes", minutes, d.Policy)
		if d.Backoff.JitterRatio != 0 { // without jitter none is drawn
			m.Observe("retry_worker_jitter_ratio", d.Backoff.JitterRatio, d.Policy)
		}
	case decision.MaxRetriesExceeded:
		m.Ended(d.Policy)
	case decision.PermanentError:
		m.count("permanent_errors_total", d.Policy, string(d.Reason), string(d.Team))
	}
}

// Ended counts a failure that is given up at the limit of retries or of time.
func (m *Metrics) Ended(policy string) {
	m.count("max_retries_exceeded_total", policy)
	m.count("submission_retry_max_exceeded", policy)
}

// Hooks returns the worker's hooks, and the gates'.
func (m *Metrics) Hooks() worker.Hooks {
	return worker.Hooks{Add: m.Add, Observe: m.Observe, Decided: m.Decided, Ended: m.Ended,
		EngineUp: func(up bool) { m.set("retry_worker_engine_up", oneIf(up)) }}
}

// Committed counts one commit of the journal, and the episodes that it ended well.
func (m *Metrics) Committed(records []journal.Happening, took time.Duration) {
	m.Observe("retry_worker_journal_write_seconds", took.Seconds())
	for i := range records {
		switch h, e := &records[i], &records[i].Episode; {
		case h.Recovered() && e.Scheduled > 0: // otherwise it needed no retry
			m.Observe("retry_worker_recovery_seconds", e.ClosedAt.Sub(e.FirstFailure).Seconds(), h.Subject.Policy)
			m.Observe("retry_worker_recovery_attempts", float64(e.Retries), h.Subject.Policy)
		case h.Accepted(): // the other side had it already (R33)
			m.count("retry_worker_accepted_total", h.Subject.Policy)
		}
	}
}

// Start creates the series of these labels' values at 0, because a rate needs a first sample: those of the metrics that
// have no other label but one with a closed set. Existing series stay.
func (m *Metrics) Start(labels map[string]string) {
	for name, d := range m.begun {
		open, values := d.Labels[:len(d.Labels)-min(len(d.Last), 1)], []string(nil)
		for _, label := range open {
			if value, is := labels[label]; is {
				values = append(values, value)
			}
		}
		switch {
		case len(values) != len(open) || len(values) != len(labels):
		case d.Last == nil:
			m.series(name, values...)
		default:
			for _, last := range d.Last {
				m.series(name, append(values, last)...)
			}
		}
	}
}

// StartPolicies creates the series of the policies. Those of removed policies stay, whose jobs may still be under way; a
// counter that vanishes loses what was not scraped. It is safe for concurrent use.
func (m *Metrics) StartPolicies(policies decision.Policies) {
	for _, p := range policies {
		m.Start(map[string]string{"policy": p.Name})
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

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
