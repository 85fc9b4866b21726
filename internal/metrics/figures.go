package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/notify"
	"retry-worker/internal/statistics"
)

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

// Show makes scrapes show f, which must not change afterwards.
func (m *Metrics) Show(f *Figures) { m.figures.Store(f) }

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	catalogueVersion = describe("retry_worker_catalogue_info",
		"1, labelled with the version of the policy catalogue in force.", "version")
	successRate = describe("retry_success_rate",
		"Episodes recovered by retries ÷ those and the exhausted ones, of the last 24 h (RN-BIL-005); absent when nothing "+
			"closed.", "policy")
	kpis = describe("retry_worker_kpi",
		"Figures of RN-BIL-005 §6 and RN-BIL-004 §6 by their name, each over its window and in its unit (ratio, minutes, "+
			"retries, seconds); the same in every replica, absent where there is nothing to make one of.", "policy", "kpi")
	kpiSamples = describe("retry_worker_kpi_samples",
		"How many decisions, or episodes, a figure is made of; the same in every replica.", "policy", "kpi")
	deadLetters = describe("retry_worker_dead_letters",
		"Dead letters by what became of them; the same in every replica.", "policy", "state")
	openDeadLetters = describe("retry_worker_dead_letters_open",
		"Open dead letters by the team that must act on them and the reason; the same in every replica.", "policy", "team",
		"reason")
	oldestDeadLetter = describe("retry_worker_dead_letters_oldest_seconds",
		"Age of the oldest open dead letter; the same in every replica, absent where none is open.", "policy")
	dueDeadLetters = describe("retry_worker_dead_letters_due",
		"Open dead letters whose claim must be submitted within 2 or 24 hours; the same in every replica.", "policy", "within")
	dueAmount = describe("retry_worker_dead_letters_due_amount",
		"What these claims are worth together, in reais; the same in every replica.", "policy", "within")
	outboxPending = describe("retry_worker_outbox_pending",
		"Events, and decisions of people, recorded and not yet delivered; the same in every replica.")
	oldestNotice = describe("retry_worker_notices_oldest_seconds",
		"How long the oldest message to a team waits to be sent; the same in every replica, absent where none waits.", "team",
		"channel")
)

// figureCollector collects the figures shown last, and the catalogue's version as exactly one series. A vector would
// have none, or two, while it changes.
type figureCollector struct{ *Metrics }

// Describe implements prometheus.Collector.
func (figureCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{catalogueVersion, successRate, kpis, kpiSamples, deadLetters, openDeadLetters,
		oldestDeadLetter, dueDeadLetters, dueAmount, outboxPending, oldestNotice, destinationState, failedRamps, heldClaims,
		heldDeadline} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c figureCollector) Collect(to chan<- prometheus.Metric) {
	f := c.figures.Load()
	var gauge gaugeFunc = func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(catalogueVersion, 1, *c.version.Load())
	if f.Read.IsZero() {
		return // the journal has not been read yet
	}
	for i := range f.KPIs {
		k := &f.KPIs[i]
		gauge(kpiSamples, float64(k.Samples), k.Policy, k.Name)
		if k.Value != nil {
			gauge(kpis, *k.Value, k.Policy, k.Name)
		}
		if k.Value != nil && k.Name == statistics.SuccessRate {
			gauge(successRate, *k.Value, k.Policy)
		}
	}
	f.tellDeadLetters(gauge)
	f.tellDue(gauge)
	f.tellDestinations(gauge)
	var pending int64
	for _, n := range f.Pending {
		pending += n
	}
	gauge(outboxPending, float64(pending))
	oldest := map[[2]string]time.Time{}
	for _, w := range f.Notices { // oldest first
		if key := [...]string{string(w.Team), string(w.Channel)}; oldest[key].IsZero() {
			oldest[key] = w.Since
			gauge(oldestNotice, f.age(w.Since), key[:]...)
		}
	}
}

// gaugeFunc emits a gauge's value.
type gaugeFunc func(d *prometheus.Desc, value float64, labels ...string)

// age returns the seconds since an instant; 0 if another replica's clock is ahead.
func (f *Figures) age(since time.Time) float64 { return max(f.Read.Sub(since), 0).Seconds() }

func (f *Figures) tellDeadLetters(gauge gaugeFunc) {
	states, open, oldest := map[[2]string]int64{}, map[[3]string]int64{}, map[string]time.Time{}
	for _, policy := range f.Policies {
		for _, state := range journal.DeadLetterStates() {
			states[[...]string{policy, string(state)}] = 0
		}
	}
	for i := range f.DeadLetters {
		c := &f.DeadLetters[i]
		states[[...]string{c.Policy, string(c.State)}] += c.N
		if c.State != journal.DeadLetterOpen {
			continue
		}
		open[[...]string{c.Policy, string(c.Team), string(c.Reason)}] += c.N
		first, known := oldest[c.Policy]
		if !c.Oldest.IsZero() && (!known || c.Oldest.Before(first)) {
			oldest[c.Policy] = c.Oldest
		}
	}
	for of, n := range states {
		gauge(deadLetters, float64(n), of[:]...)
	}
	for of, n := range open {
		gauge(openDeadLetters, float64(n), of[:]...)
	}
	for policy, first := range oldest {
		gauge(oldestDeadLetter, f.age(first), policy)
	}
}

func (f *Figures) tellDue(gauge gaugeFunc) {
	for within, counts := range f.Due {
		due := map[string]deadletter.Count{}
		for _, policy := range f.Policies {
			due[policy] = deadletter.Count{}
		}
		for i := range counts {
			c := due[counts[i].Policy]
			c.N, c.Cents = c.N+counts[i].N, c.Cents+counts[i].Cents
			due[counts[i].Policy] = c
		}
		for policy, c := range due {
			gauge(dueDeadLetters, float64(c.N), policy, within)
			gauge(dueAmount, float64(c.Cents)/100, policy, within)
		}
	}
}
