// Package metrics holds every Prometheus metric of the service, and its probes.
package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"retry-worker/internal/decision"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/worker"
)

// minuteBuckets are R19's: the bounds that tiss-submission's jitter and rounding give.
var minuteBuckets = []float64{5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 160, 240}

// durationBuckets run from a decision without memory to the alert at 1 s (RN-BIL-005 §6.2).
var durationBuckets = []float64{1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1,
	0.25, 0.5, 1, 2.5}

// jitterBuckets are R19's eight equal bins over ±20 %.
var jitterBuckets = []float64{-0.15, -0.10, -0.05, 0, 0.05, 0.10, 0.15, 0.20}

// writeBuckets run from a fast disk's commit to the time limit of one.
var writeBuckets = []float64{5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 0.5, 1, 2.5}

// recoveryBuckets hold the targets: a median of 60 min (RN-BIL-004), a mean of 2 h (RN-BIL-005), 48 h (R20).
var recoveryBuckets = []float64{1, 10, 60, 300, 600, 1200, 1800, 2700, 3600, 5400, 7200, 10800, 14400, 21600, 43200,
	86400, 172800}

// heldBuckets run from a canary's round trip to the limit of two days (R20).
var heldBuckets = []float64{1, 10, 60, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800}

// Metrics holds the counters of one process. Labels come from closed sets only.
type Metrics struct {
	registry *prometheus.Registry
	single   map[string][]*prometheus.MetricVec // those with a single label, by that
	version  atomic.Pointer[string]             // of the catalogue in force

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

	// our own
	jobs                              *prometheus.CounterVec
	jobsInFlight                      prometheus.Gauge
	rejectedInputs                    *prometheus.CounterVec
	panics                            *prometheus.CounterVec
	oversized, timeouts               *prometheus.CounterVec
	jitterRatio                       *prometheus.HistogramVec
	replayed, published               prometheus.Counter
	journalWrite, heldFor             prometheus.Observer
	recoverySeconds, recoveryAttempts *prometheus.HistogramVec
	released, wasted                  *prometheus.CounterVec
	notices                           *prometheus.CounterVec
	engineUp                          *prometheus.GaugeVec // no series until the engine was asked

	shown atomic.Pointer[values]
	// Readiness is what /readyz shows.
	Readiness Readiness
}

// Build describes the binary.
type Build struct{ Version, Commit, GoVersion string }

// New registers every metric.
func New(b Build) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), single: map[string][]*prometheus.MetricVec{}}
	m.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		figureCollector{m},
	)
	m.shown.Store(&values{}) // the journal has not been read yet
	m.SetCatalogue("")
	m.registerRules()
	m.registerWorker(b)
	m.registerReadiness()
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
	m.engineUp = promauto.With(m.registry).NewGaugeVec(prometheus.GaugeOpts{Name: "retry_worker_engine_up",
		Help: "1 while the engine answers polls; absent until the first poll."}, nil)
	m.replayed = m.counter("retry_worker_decisions_replayed_total",
		"Recorded decisions given again, with a new time or without.").WithLabelValues()
	m.journalWrite = m.histogram("retry_worker_journal_write_seconds",
		"Time of one commit, which many decisions share.", writeBuckets).WithLabelValues()
	m.published = m.counter("retry_worker_outbox_published_total",
		"Events that the queue took from this replica.").WithLabelValues()
	m.recoverySeconds = m.histogram("retry_worker_recovery_seconds",
		"First failure to recovery, of episodes recovered by retries.", recoveryBuckets, "policy")
	m.recoveryAttempts = m.histogram("retry_worker_recovery_attempts", "Retries until recovery.",
		[]float64{1, 2, 3, 4, 5, 6, 8, 10}, "policy")
	m.notices = m.counter("retry_worker_notices_total",
		"Tries to tell a team of its dead letters, by what became of them.", "team", "channel", "result")
	m.released = m.counter("retry_worker_released_total", "Claims that this replica let through, by why: "+
		"the destination is up (pass), to test it (canary), or after an outage (ramp).", "destination", "kind")
	m.wasted = m.counter("retry_worker_wasted_attempts_total",
		"Submissions that failed because their destination was not up, as the replica that releases claims saw them.",
		"destination")
	m.heldFor = m.histogram("retry_worker_held_seconds", "How long claims were held before they were let through.",
		heldBuckets).WithLabelValues()
	m.StartDestination(destination.Other)
	promauto.With(m.registry).NewGauge(prometheus.GaugeOpts{
		Name: "retry_worker_build_info", Help: "1, labelled with what runs.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "go_version": b.GoVersion},
	}).Set(1)
}

// Decided counts a new decision in the figures of both rules (R16).
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
		if d.Backoff.JitterRatio != 0 { // without jitter none is drawn
			m.jitterRatio.WithLabelValues(d.Policy).Observe(d.Backoff.JitterRatio)
		}
	case decision.MaxRetriesExceeded:
		m.Ended(d)
	case decision.PermanentError:
		m.permanentErrors.WithLabelValues(d.Policy, string(d.Reason), string(d.Team)).Inc()
	}
}

// Ended counts a failure that is given up at the limit of retries or of time.
func (m *Metrics) Ended(d *decision.Decision) {
	m.maxRetries.WithLabelValues(d.Policy).Inc()
	m.submissionMaxExceeded.WithLabelValues(d.Policy).Inc()
}

// Hooks returns the worker's hooks.
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
		EngineUp:  func(up bool) { m.engineUp.WithLabelValues().Set(oneIf(up)) },
		Panicked:  func(jobType string) { m.panics.WithLabelValues(jobType).Inc() },
		TimedOut:  func(jobType string) { m.timeouts.WithLabelValues(jobType).Inc() },
		Oversized: func(jobType string) { m.oversized.WithLabelValues(jobType).Inc() },
	}
}

// Committed counts one commit of the journal, and the episodes that it ended well.
func (m *Metrics) Committed(records []journal.Happening, took time.Duration) {
	m.journalWrite.Observe(took.Seconds())
	for i := range records {
		switch h, e := &records[i], &records[i].Episode; {
		case h.Recovered() && e.Scheduled > 0: // otherwise it needed no retry
			m.recoverySeconds.WithLabelValues(h.Subject.Policy).Observe(e.ClosedAt.Sub(e.FirstFailure).Seconds())
			m.recoveryAttempts.WithLabelValues(h.Subject.Policy).Observe(float64(e.Retries))
		case h.Accepted(): // the other side had it already (R33)
			m.accepted.WithLabelValues(h.Subject.Policy).Inc()
		}
	}
}

// NewCause counts a cause that is new or back (R34).
func (m *Metrics) NewCause(policy string) { m.newCauses.WithLabelValues(policy).Inc() }

// EventsPublished counts events that the message queue accepted.
func (m *Metrics) EventsPublished(n int) { m.published.Add(float64(n)) }

// StartNotices creates the series of a team and one of its channels.
func (m *Metrics) StartNotices(team decision.Team, c notify.Channel) {
	for _, r := range notify.Results() {
		m.notices.WithLabelValues(string(team), string(c), string(r))
	}
}

// NoticeTried counts a try to notify a team.
func (m *Metrics) NoticeTried(team decision.Team, c notify.Channel, r notify.Result) {
	m.notices.WithLabelValues(string(team), string(c), string(r)).Inc()
}

// StartJobType creates the series of a job type.
func (m *Metrics) StartJobType(jobType string) {
	for _, a := range worker.Actions() {
		m.jobs.WithLabelValues(jobType, string(a))
	}
	for _, code := range decision.RejectionCodes() {
		m.rejectedInputs.WithLabelValues(jobType, string(code))
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
			m.classifications.WithLabelValues(p.Name, string(class))
			if class != decision.Permanent {
				m.retryScheduled.WithLabelValues(p.Name, string(class))
			}
		}
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

// SetCatalogue sets the version of the catalogue in force.
func (m *Metrics) SetCatalogue(version string) { m.version.Store(&version) }

// StartDestination creates the series of a configured destination.
func (m *Metrics) StartDestination(name string) {
	for _, kind := range []destination.Kind{destination.Pass, destination.Test, destination.RampedUp} {
		m.released.WithLabelValues(name, string(kind))
	}
	m.start("destination", name)
}

// GateHooks returns the gates' hooks.
func (m *Metrics) GateHooks() gate.Hooks {
	h := gate.NoHooks()
	h.Admitted = func(name string) { m.released.WithLabelValues(name, string(destination.Pass)).Inc() }
	h.Released = func(name string, kind destination.Kind, held time.Duration) {
		m.released.WithLabelValues(name, string(kind)).Inc()
		m.heldFor.Observe(held.Seconds())
	}
	h.GivenUp = func(policy string) { m.Ended(&decision.Decision{Policy: policy}) }
	h.Wasted = func(name string) { m.wasted.WithLabelValues(name).Inc() }
	h.Answered = m.Hooks().Answered
	return h
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := promauto.With(m.registry).NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.keep(v.MetricVec, labels)
	return v
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := promauto.With(m.registry).
		NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.keep(v.MetricVec, labels)
	return v
}

func (m *Metrics) keep(v *prometheus.MetricVec, labels []string) {
	if len(labels) == 1 {
		m.single[labels[0]] = append(m.single[labels[0]], v)
	}
}

// start creates the series of a label's value in the metrics that have no other label.
func (m *Metrics) start(label, value string) {
	for _, v := range m.single[label] {
		_, _ = v.GetMetricWithLabelValues(value) // cannot fail with one label
	}
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	return promauto.With(m.registry).NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
