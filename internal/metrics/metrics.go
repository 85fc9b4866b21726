// Package metrics holds every Prometheus name of the service, and its probes.
package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/statistics"
	"retry-worker/internal/worker"
)

// minuteBuckets are R19's: the bounds of tiss-submission's jitter and rounding.
var minuteBuckets = []float64{5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 160, 240}

// durationBuckets run from a decision without memory to the alert at 1 s (RN-BIL-005 §6.2).
var durationBuckets = []float64{1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1,
	0.25, 0.5, 1, 2.5}

// jitterBuckets are R19's eight equal bins over ±20 %.
var jitterBuckets = []float64{-0.15, -0.10, -0.05, 0, 0.05, 0.10, 0.15, 0.20}

// writeBuckets run from a fast disk's commit to the time one is given up after.
var writeBuckets = []float64{5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1, 2.5}

// recoveryBuckets hold the targets: a median of 60 min (RN-BIL-004), a mean of 2 h (RN-BIL-005), 48 h (R20).
var recoveryBuckets = []float64{1, 10, 60, 300, 600, 1200, 1800, 2700, 3600, 5400, 7200, 10800, 14400, 21600, 43200,
	86400, 172800}

// Metrics are the counters of one process. Labels come from closed sets only.
type Metrics struct {
	registry *prometheus.Registry
	policies sync.Map // names of those that have series
	version  catalogueInfo

	// RN-BIL-005 §13.4
	analysisDuration *prometheus.HistogramVec
	retryScheduled   *prometheus.CounterVec
	maxRetries       *prometheus.CounterVec
	permanentErrors  *prometheus.CounterVec
	possiblyAccepted *prometheus.CounterVec
	newCauses        *prometheus.CounterVec
	accepted         *prometheus.CounterVec
	backoffMinutes   *prometheus.HistogramVec

	// RN-BIL-004 §13.4
	submissionRetries     *prometheus.CounterVec
	submissionBackoff     *prometheus.HistogramVec
	submissionMaxExceeded *prometheus.CounterVec
	classifications       *prometheus.CounterVec

	// ours
	jobs                              *prometheus.CounterVec
	jobsInFlight                      prometheus.Gauge
	rejectedInputs                    *prometheus.CounterVec
	panics                            *prometheus.CounterVec
	oversized, timeouts               *prometheus.CounterVec
	jitterRatio                       *prometheus.HistogramVec
	replayed                          prometheus.Counter
	journalWrite                      prometheus.Observer
	successRate, kpis, kpiSamples     *prometheus.GaugeVec
	deadLetters, oldestDeadLetter     *prometheus.GaugeVec
	dueDeadLetters, dueAmount         *prometheus.GaugeVec
	openDeadLetters                   *prometheus.GaugeVec
	openSeen                          map[openLabels]float64 // by SetDeadLetters, which is called by one at a time
	outboxPending                     prometheus.Gauge
	published                         prometheus.Counter
	recoverySeconds, recoveryAttempts *prometheus.HistogramVec
	notices                           notices
	destinations                      destinations
	bulkItems                         *prometheus.CounterVec
	bulkRuns                          *prometheus.GaugeVec

	engineUp func(up bool)
	// JournalUp says whether the journal can be written, PurgeRefused whether old records wait for a person's word to
	// be purged.
	JournalUp, PurgeRefused func(bool)
	// SetCatalogueRejected, SetTokensRejected and SetCertificateRejected say whether that file is refused.
	SetCatalogueRejected, SetTokensRejected, SetCertificateRejected func(rejected bool)
}

// Build describes the binary.
type Build struct{ Version, Commit, GoVersion string }

// New registers everything, with the series of policies at 0.
func New(b Build, policies decision.Policies) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.registerRules()
	m.registerWorker(b)
	m.registerBulk()
	m.registerDestinations()
	m.StartPolicies(policies)
	return m
}

func (m *Metrics) registerRules() {
	m.analysisDuration = m.histogram("retry_analysis_duration_seconds", "Time of one analysis (RN-BIL-005).",
		durationBuckets, "policy")
	m.retryScheduled = m.counter("retry_scheduled_total", "Retries scheduled (RN-BIL-005).", "policy", "classification")
	m.maxRetries = m.counter("max_retries_exceeded_total", "Failures beyond the limit of retries (RN-BIL-005).", "policy")
	m.permanentErrors = m.counter("permanent_errors_total", "Permanent errors, not retried (RN-BIL-005).", "policy",
		"reason", "team")
	m.possiblyAccepted = m.counter("retry_worker_possibly_accepted_total",
		"Decisions on claims that the portal may have taken, as a submission was not answered (R33).", "policy")
	m.newCauses = m.counter("retry_worker_new_causes_total",
		"Causes never seen before, or not for 30 days, that failed five times within an hour (R34).", "policy")
	m.accepted = m.counter("retry_worker_accepted_total",
		"Claims closed because the portal had them already, by a check or a person; no success of a retry (R33).", "policy")
	m.backoffMinutes = m.histogram("backoff_duration_minutes", "Backoff of the retries scheduled (RN-BIL-005).",
		minuteBuckets, "policy")

	m.submissionRetries = m.counter("submission_retry_total", "Retries scheduled (RN-BIL-004).", "policy")
	m.submissionBackoff = m.histogram("submission_retry_backoff_minutes", "Backoff of the retries scheduled (RN-BIL-004).",
		minuteBuckets, "policy")
	m.submissionMaxExceeded = m.counter("submission_retry_max_exceeded",
		"Failures beyond the limit of retries (RN-BIL-004).", "policy")
	m.classifications = m.counter("error_classification_distribution",
		"Decisions by the class of their error (RN-BIL-004).", "policy", "classification")
	m.jitterRatio = m.histogram("retry_worker_jitter_ratio",
		"Drawn backoff ÷ nominal backoff − 1, before rounding and bounds.", jitterBuckets, "policy")
}

func (m *Metrics) registerWorker(b Build) {
	m.jobs = m.counter("retry_worker_jobs_total", "Jobs by what became of them here.", "job_type", "action")
	m.jobsInFlight = m.gauge("retry_worker_jobs_in_flight", "Jobs activated here and not yet answered.")
	m.rejectedInputs = m.counter("retry_worker_rejected_inputs_total", "Jobs whose input was refused.", "job_type",
		"reason")
	m.panics = m.counter("retry_worker_panics_total", "Jobs whose handler panicked.", "job_type")
	m.oversized = m.counter("retry_worker_oversized_total", "Jobs, or activations, too large to be read.", "job_type")
	m.timeouts = m.counter("retry_worker_analysis_timeouts_total",
		"Analyses that took longer than the rules allow; their jobs went back.", "job_type")
	m.engineUp = m.flag("retry_worker_engine_up", "1 while the engine answers polls.")
	m.replayed = m.counter("retry_worker_decisions_replayed_total",
		"Recorded decisions given again, with a new time or without.").WithLabelValues()
	m.journalWrite = m.histogram("retry_worker_journal_write_seconds",
		"Time of one commit, which many decisions share.", writeBuckets).WithLabelValues()
	m.registerJournal()
	m.registerNotices()
	m.JournalUp = m.flag("retry_worker_journal_up", "1 while the journal can be written.")
	m.PurgeRefused = m.flag("retry_worker_purge_refused",
		"1 while old records are not purged, because the clock leapt since the last purge.")
	m.SetCatalogueRejected = m.flag("retry_worker_catalogue_rejected",
		"1 while the policies file holds a catalogue that is refused; the one before stays in force.")
	m.SetTokensRejected = m.flag("retry_worker_tokens_rejected",
		"1 while the tokens file is refused; the tokens before stay in force.")
	m.SetCertificateRejected = m.flag("retry_worker_certificate_rejected",
		"1 while the console's certificate is refused; the one before stays in force.")
	m.SetCatalogue("")
	m.registry.MustRegister(&m.version)
	m.gauges("retry_worker_build_info", "1, labelled with what runs.", "version", "commit", "go_version").
		WithLabelValues(b.Version, b.Commit, b.GoVersion).Set(1)
}

func (m *Metrics) registerJournal() {
	m.successRate = m.gauges("retry_success_rate",
		"Episodes recovered by retries ÷ those and the exhausted ones, of the last 24 h (RN-BIL-005); absent when nothing "+
			"closed.", "policy")
	m.kpis = m.gauges("retry_worker_kpi",
		"Figures of RN-BIL-005 §6 and RN-BIL-004 §6 by their name, each over its window and in its unit (ratio, minutes, "+
			"retries, seconds); the same in every replica, absent where there is nothing to make one of.", "policy", "kpi")
	m.kpiSamples = m.gauges("retry_worker_kpi_samples",
		"How many decisions, or episodes, a figure is made of; the same in every replica.", "policy", "kpi")
	m.deadLetters = m.gauges("retry_worker_dead_letters",
		"Dead letters by what became of them; the same in every replica.", "policy", "state")
	m.openDeadLetters = m.gauges("retry_worker_dead_letters_open",
		"Open dead letters by the team that must act on them and the reason; the same in every replica.", "policy", "team",
		"reason")
	m.oldestDeadLetter = m.gauges("retry_worker_dead_letters_oldest_seconds",
		"Age of the oldest open dead letter; the same in every replica, absent where none is open.", "policy")
	m.dueDeadLetters = m.gauges("retry_worker_dead_letters_due",
		"Open dead letters whose claim must be submitted within 2 or 24 hours; the same in every replica.", "policy", "within")
	m.dueAmount = m.gauges("retry_worker_dead_letters_due_amount",
		"What these claims are worth together, in reais; the same in every replica.", "policy", "within")
	m.outboxPending = m.gauge("retry_worker_outbox_pending",
		"Events, and decisions of people, recorded and not yet delivered; the same in every replica.")
	m.published = m.counter("retry_worker_outbox_published_total",
		"Events that the queue took from this replica.").WithLabelValues()
	m.recoverySeconds = m.histogram("retry_worker_recovery_seconds",
		"First failure to recovery, of episodes recovered by retries.", recoveryBuckets, "policy")
	m.recoveryAttempts = m.histogram("retry_worker_recovery_attempts", "Retries until recovery.",
		[]float64{1, 2, 3, 4, 5, 6, 8, 10}, "policy")
}

// Decided feeds the figures of both rules with one fresh decision (R16).
func (m *Metrics) Decided(_ string, d *decision.Decision, took time.Duration) {
	if d.PossiblyAccepted {
		m.possiblyAccepted.WithLabelValues(d.Policy).Inc()
	}
	class := string(d.ErrorClassification)
	m.analysisDuration.WithLabelValues(d.Policy).Observe(took.Seconds())
	m.classifications.WithLabelValues(d.Policy, class).Inc()
	switch d.Outcome {
	case decision.Retry:
		minutes := d.Backoff.Delay.Minutes()
		m.retryScheduled.WithLabelValues(d.Policy, class).Inc()
		m.submissionRetries.WithLabelValues(d.Policy).Inc()
		m.backoffMinutes.WithLabelValues(d.Policy).Observe(minutes)
		m.submissionBackoff.WithLabelValues(d.Policy).Observe(minutes)
		if d.Backoff.JitterRatio != 0 { // a policy without jitter draws none
			m.jitterRatio.WithLabelValues(d.Policy).Observe(d.Backoff.JitterRatio)
		}
	case decision.MaxRetriesExceeded:
		m.Ended(d)
	case decision.PermanentError:
		m.permanentErrors.WithLabelValues(d.Policy, string(d.Reason), string(d.Team)).Inc()
	}
}

// Ended counts a failure beyond the limit of retries, or of time.
func (m *Metrics) Ended(d *decision.Decision) {
	m.maxRetries.WithLabelValues(d.Policy).Inc()
	m.submissionMaxExceeded.WithLabelValues(d.Policy).Inc()
}

// Hooks returns what the worker calls.
func (m *Metrics) Hooks() worker.Hooks {
	return worker.Hooks{
		Decided:  m.Decided,
		Ended:    m.Ended,
		Replayed: m.replayed.Inc,
		Rejected: func(jobType string, code decision.RejectionCode) {
			m.rejectedInputs.WithLabelValues(jobType, string(code)).Inc()
		},
		Answered:  func(jobType string, a worker.Action) { m.jobs.WithLabelValues(jobType, string(a)).Inc() },
		InFlight:  func(delta int) { m.jobsInFlight.Add(float64(delta)) },
		EngineUp:  m.engineUp,
		Panicked:  func(jobType string) { m.panics.WithLabelValues(jobType).Inc() },
		TimedOut:  func(jobType string) { m.timeouts.WithLabelValues(jobType).Inc() },
		Oversized: func(jobType string) { m.oversized.WithLabelValues(jobType).Inc() },
	}
}

// JournalCommitted feeds the journal's figures with one commit.
func (m *Metrics) JournalCommitted(took time.Duration) { m.journalWrite.Observe(took.Seconds()) }

// Recovered feeds the figures with an episode that ended well.
func (m *Metrics) Recovered(policy string, e *journal.Episode) {
	if e.Scheduled == 0 {
		return // it needed no retry
	}
	m.recoverySeconds.WithLabelValues(policy).Observe(e.ClosedAt.Sub(e.FirstFailure).Seconds())
	m.recoveryAttempts.WithLabelValues(policy).Observe(float64(e.Retries))
}

// NewCause counts a cause that is new, or back (R34).
func (m *Metrics) NewCause(policy string) {
	m.knowPolicy(policy)
	m.newCauses.WithLabelValues(policy).Inc()
}

// Accepted counts an episode that ended because the other side had it already (R33).
func (m *Metrics) Accepted(policy string) { m.accepted.WithLabelValues(policy).Inc() }

// SetKPIs takes the figures of R19 over, and drops those that there is nothing to make of any more.
func (m *Metrics) SetKPIs(kpis []statistics.KPI) {
	for i := range kpis {
		k := &kpis[i]
		m.kpiSamples.WithLabelValues(k.Policy, k.Name).Set(float64(k.Samples))
		setOrDrop(m.kpis, k.Value, k.Policy, k.Name)
		if k.Name == statistics.SuccessRate {
			setOrDrop(m.successRate, k.Value, k.Policy)
		}
	}
}

func setOrDrop(to *prometheus.GaugeVec, value *float64, labels ...string) {
	if value == nil {
		to.DeleteLabelValues(labels...)
		return
	}
	to.WithLabelValues(labels...).Set(*value)
}

// EventsPublished counts events that the queue took.
func (m *Metrics) EventsPublished(n int) { m.published.Add(float64(n)) }

// SetOutboxPending takes over how many messages wait in each queue.
func (m *Metrics) SetOutboxPending(waiting map[string]int64) {
	var all int64
	for _, n := range waiting {
		all += n
	}
	m.outboxPending.Set(float64(all))
}

// StartJobType creates the series of a job type that is served.
func (m *Metrics) StartJobType(jobType string) {
	for _, a := range worker.Actions() {
		m.jobs.WithLabelValues(jobType, string(a))
	}
	for _, code := range decision.RejectionCodes() {
		m.rejectedInputs.WithLabelValues(jobType, string(code))
	}
	m.panics.WithLabelValues(jobType)
	m.oversized.WithLabelValues(jobType)
	m.timeouts.WithLabelValues(jobType)
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return promauto.With(m.registry).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return promauto.With(m.registry).
		NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

func (m *Metrics) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return promauto.With(m.registry).NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	return m.gauges(name, help).WithLabelValues()
}

// flag returns what sets a gauge to 1 or 0; it begins at 0.
func (m *Metrics) flag(name, help string) func(bool) {
	g := m.gauge(name, help)
	return func(is bool) {
		value := 0.0
		if is {
			value = 1
		}
		g.Set(value)
	}
}
