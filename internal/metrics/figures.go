package metrics

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"retry-worker/internal/deadletter"
	"retry-worker/internal/destination"
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
