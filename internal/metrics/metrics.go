// Package metrics holds every Prometheus metric of the service, and its probes.
package metrics

import (
	_ "embed" // the description is part of the program
	"math"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.yaml.in/yaml/v3"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
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

// register makes the metrics of metrics.yaml. A gauge is absent until it is set, unless it is about a subject of
// /readyz.
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

// Start creates the series with these labels at 0, because a rate needs a first sample: in each metric that has just
// them, or them and a last one whose values are a closed set. Existing series stay.
func (m *Metrics) Start(labels map[string]string) {
	for name, d := range m.begun {
		open := d.Labels
		if d.Last != nil {
			open = open[:len(open)-1]
		}
		var values []string
		for _, label := range open {
			if value, is := labels[label]; is {
				values = append(values, value)
			}
		}
		if len(values) != len(open) || len(values) != len(labels) {
			continue
		}
		if d.Last == nil {
			m.series(name, values...)
		}
		for _, last := range d.Last {
			m.series(name, append(values, last)...)
		}
	}
}

// StartPolicies creates the series of the policies. Those of removed policies stay, whose jobs may still be under way;
// a counter that vanishes loses what was not scraped. It is safe for concurrent use.
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

// Figures holds what is read from the journal from time to time. It is the same in every replica.
type Figures struct {
	// Read is the time of the reading.
	Read time.Time
	// Policies names the policies in force, each of which has its series even if there is nothing to count.
	Policies []string
	// KPIs of R19.
	KPIs        []statistics.KPI
	DeadLetters []deadletter.Count
	// Due holds the open dead letters whose deadline is within a span, by the names of DueWithin.
	Due map[string][]deadletter.Count
	// Pending counts the waiting messages by queue. Notices holds those to teams.
	Pending map[string]int64
	Notices []notify.Waiting
	// Destinations by their names in metrics, which several may share.
	Destinations []gate.Destination
}

// DueWithin returns the spans of Figures.Due by their names in the metric.
func DueWithin() map[string]time.Duration {
	return map[string]time.Duration{"2h": 2 * time.Hour, "24h": 24 * time.Hour}
}

// figure is a gauge that is made of Figures, with so many labels.
type figure struct {
	desc   *prometheus.Desc
	labels int
}

// series is one of a figure's, with as many labels as the figure has.
type series struct {
	of     string // the figure's name
	labels [3]string
}

// values holds what scrapes show of Figures.
type values map[series]float64

// put adds a value to those of a series, of which join makes one, such as sum or math.Max.
func (v values) put(of string, join func(a, b float64) float64, value float64, labels ...string) {
	s := series{of: of}
	copy(s.labels[:], labels)
	if before, is := v[s]; is {
		value = join(before, value)
	}
	v[s] = value
}

func sum(a, b float64) float64 { return a + b }

// sumAmounts returns a sum to the cent.
func sumAmounts(a, b float64) float64 { return math.Round((a+b)*100) / 100 }

// Show makes scrapes show f.
func (m *Metrics) Show(f *Figures) {
	v := values{}
	for i := range f.KPIs {
		k := &f.KPIs[i]
		v.put("retry_worker_kpi_samples", sum, float64(k.Samples), k.Policy, k.Name)
		if k.Value != nil {
			v.put("retry_worker_kpi", sum, *k.Value, k.Policy, k.Name)
		}
		if k.Value != nil && k.Name == statistics.SuccessRate {
			v.put("retry_success_rate", sum, *k.Value, k.Policy)
		}
	}
	f.putDeadLetters(v)
	f.putDestinations(v)
	v.put("retry_worker_outbox_pending", sum, 0)
	for _, n := range f.Pending {
		v.put("retry_worker_outbox_pending", sum, float64(n))
	}
	for _, w := range f.Notices {
		v.put("retry_worker_notices_oldest_seconds", math.Max, f.age(w.Since), string(w.Team), string(w.Channel))
	}
	m.shown.Store(&v)
}

// age returns the seconds since an instant; 0 if another replica's clock is ahead.
func (f *Figures) age(since time.Time) float64 { return max(f.Read.Sub(since), 0).Seconds() }

func (f *Figures) putDeadLetters(v values) {
	for _, policy := range f.Policies {
		for _, state := range journal.DeadLetterStates() {
			v.put("retry_worker_dead_letters", sum, 0, policy, string(state))
		}
		for within := range f.Due {
			v.put("retry_worker_dead_letters_due", sum, 0, policy, within)
			v.put("retry_worker_dead_letters_due_amount", sum, 0, policy, within)
		}
	}
	for i := range f.DeadLetters {
		c := &f.DeadLetters[i]
		v.put("retry_worker_dead_letters", sum, float64(c.N), c.Policy, string(c.State))
		if c.State != journal.DeadLetterOpen {
			continue
		}
		v.put("retry_worker_dead_letters_open", sum, float64(c.N), c.Policy, string(c.Team), string(c.Reason))
		if !c.Oldest.IsZero() {
			v.put("retry_worker_dead_letters_oldest_seconds", math.Max, f.age(c.Oldest), c.Policy)
		}
	}
	for within, counts := range f.Due {
		for i := range counts {
			c := &counts[i]
			v.put("retry_worker_dead_letters_due", sum, float64(c.N), c.Policy, within)
			v.put("retry_worker_dead_letters_due_amount", sumAmounts, float64(c.Cents)/100, c.Policy, within)
		}
	}
}

var phases = [...]destination.Phase{destination.Up, destination.Down, destination.Testing, destination.Ramping}

func (f *Figures) putDestinations(v values) {
	for i := range f.Destinations {
		d := &f.Destinations[i]
		ramps := 0 // of the current outage
		if d.State.Phase != destination.Up {
			ramps = d.State.Outage.FailedRamps
		}
		for _, phase := range phases {
			v.put("retry_worker_destination_state", sum, oneIf(d.State.Phase == phase), d.Name, string(phase))
		}
		v.put("retry_worker_destination_failed_ramps", math.Max, float64(ramps), d.Name)
		v.put("retry_worker_held", sum, float64(d.Held), d.Name)
		if !d.Deadline.IsZero() {
			v.put("retry_worker_held_deadline_seconds", math.Min, d.Deadline.Sub(f.Read).Seconds(), d.Name)
		}
	}
}

// figureCollector collects what Show was given last, and the catalogue's version as exactly one series. A vector would
// have none, or two, while it changes.
type figureCollector struct{ *Metrics }

// Describe implements prometheus.Collector. It describes nothing, as what is shown changes.
func (figureCollector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c figureCollector) Collect(to chan<- prometheus.Metric) {
	gauge := func(of string, value float64, labels [3]string) {
		f := c.figures[of]
		to <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, value, labels[:f.labels]...)
	}
	gauge("retry_worker_catalogue_info", 1, [3]string{*c.version.Load()})
	for s, value := range *c.shown.Load() {
		gauge(s.of, value, s.labels)
	}
}
