package metrics_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"go.yaml.in/yaml/v3"

	"retry-worker/internal/decision"
	"retry-worker/internal/metrics"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
	"retry-worker/internal/worker"
)

// A rate needs a first sample: every series that decisions and jobs make is there, at 0, before anything happens.
func TestExpositionAtTheStart(t *testing.T) {
	m, url := served(t)
	m.Start(map[string]string{"team": "ti", "channel": "email"})
	m.Hooks().EngineUp(false) // the first poll; until then nothing is known of the engine
	begun := families(t, scrape(t, url))
	for name, f := range begun {
		if own := !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_"); own && sum(f) != 0 {
			t.Errorf("%s is %v before anything happens", name, sum(f))
		}
	}
	feed(t, m)
	for _, code := range constants(t, "../decision/failure.go", "RejectionCode") {
		m.Add("retry_worker_rejected_inputs_total", 0, worker.AnalyzeRetry, code)
	}
	for _, result := range constants(t, "../notify/sink.go", "Result") {
		m.Add("retry_worker_notices_total", 0, "ti", "email", result)
	}
	for _, kind := range constants(t, "../destination/destination.go", "Kind") {
		m.Add("retry_worker_released_total", 0, "other", kind)
	}
	if now := families(t, scrape(t, url)); !maps.Equal(seriesOf(begun), seriesOf(now)) {
		t.Errorf("series come with what happens: %v, then %v", seriesOf(begun), seriesOf(now))
	}
}

// One decision of each kind in the job types of both rules, one job of each kind of end. Both rules' names, exactly as written
// and with no prefix, are fed by the same decisions (R16).
func TestExposition(t *testing.T) {
	m, url := served(t)
	feed(t, m)
	golden.Check(t, "testdata/fed.txt", scrape(t, url))
}

func feed(t *testing.T, m *metrics.Metrics) {
	hooks := m.Hooks()
	for _, jobType := range []string{worker.AnalyzeRetry, worker.RetrySubmissionBackoff} {
		for i, f := range theFour {
			hooks.Decided(decide(t, f.text, f.count), time.Duration(i+1)*100*time.Microsecond)
		}
		hooks.Add("retry_worker_rejected_inputs_total", 1, jobType, string(decision.InvalidRetryCount))
	}
	for _, a := range constants(t, "../worker/reply.go", "Action") {
		if a != "held" { // is not counted
			hooks.Add(worker.Answered, 1, worker.AnalyzeRetry, a)
		}
	}
	hooks.Add("retry_worker_jobs_in_flight", 7)
	hooks.Add("retry_worker_jobs_in_flight", -1)
	hooks.EngineUp(true)
	hooks.Add("retry_worker_panics_total", 1, worker.RetrySubmissionBackoff)
	hooks.Add("retry_worker_oversized_total", 1, worker.RecordRetryOutcome)
	hooks.Add("retry_worker_analysis_timeouts_total", 1, worker.AnalyzeRetry)
}

// constants returns the values of a type's constants.
func constants(t *testing.T, file, name string) (all []string) {
	for _, c := range regexp.MustCompile(`\w\s+`+name+`\s+= "(\w+)"`).FindAllStringSubmatch(testkit.Read(t, file), -1) {
		all = append(all, c[1])
	}
	return all
}

// sum of a family's counters, or of its histograms' counts.
func sum(f *dto.MetricFamily) (n float64) {
	for _, m := range f.GetMetric() {
		n += m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return n
}

// TestDescribedMetricsAreUsed: a name that the code misspells has no description, and one that nothing counts has no use.
func TestDescribedMetricsAreUsed(t *testing.T) {
	var described map[string]map[string]any
	testkit.Must(t, yaml.Unmarshal([]byte(testkit.Read(t, "metrics.yaml")), &described))
	names, used := map[string]bool{}, map[string]bool{}
	for _, kind := range described {
		for name, of := range kind {
			names[name] = true
			used[name] = of.(map[string]any)["about"] != nil // a subject of /readyz sets it
		}
	}
	for folder, begin := range map[string]string{"metrics": "backoff|error|max|permanent|retry|submission", "worker": "retry_worker",
		"gate": "retry_worker", "app": "retry_worker", "notify": "retry_worker"} {
		files, err := filepath.Glob("../" + folder + "/*.go")
		testkit.Must(t, err)
		for _, file := range files {
			code := testkit.Read(t, file)
			for _, literal := range regexp.MustCompile(`"((?:`+begin+`)_[a-z_]+)"`).FindAllStringSubmatch(code, -1) {
				used[literal[1]] = used[literal[1]] || !strings.HasSuffix(file, "_test.go")
			}
		}
	}
	maps.DeleteFunc(used, func(_ string, is bool) bool { return !is })
	if !maps.Equal(names, used) {
		t.Errorf("described are\n%v\nused are\n%v", slices.Sorted(maps.Keys(names)), slices.Sorted(maps.Keys(used)))
	}
}

func TestLabelsComeFromClosedSets(t *testing.T) {
	m, url := served(t)
	feed(t, m)
	m.Show(&metrics.Figures{Read: analysed, KPIs: statistics.All(nil, []string{decision.DefaultPolicy}, analysed)})
	text := scrape(t, url)
	if strings.Contains(text, canary) {
		t.Error("a claim's id or text stands in the metrics")
	}
	allowed := []string{"policy", "classification", "reason", "job_type", "action", "team", "state", "version", "destination", "kind"}
	// Beyond the contract's list, but constants of the binary.
	exceptions := map[string][]string{
		"retry_worker_build_info": {"commit", "go_version"},
		"retry_worker_kpi":        {"kpi"}, "retry_worker_kpi_samples": {"kpi"}, // R19's table
		"retry_worker_dead_letters_due": {"within"}, "retry_worker_dead_letters_due_amount": {"within"},
	}
	for name, f := range families(t, text) {
		for _, series := range f.Metric {
			for _, l := range series.Label {
				if !slices.Contains(allowed, l.GetName()) && !slices.Contains(exceptions[name], l.GetName()) {
					t.Errorf("%s has the label %s", name, l.GetName())
				}
			}
		}
	}
}

func seriesOf(all map[string]*dto.MetricFamily) map[string]int {
	n := make(map[string]int)
	for name, f := range all {
		n[name] = len(f.Metric)
	}
	return n
}

func TestNamesAreClean(t *testing.T) {
	m, url := served(t)
	feed(t, m)
	problems, err := promlint.New(strings.NewReader(scrape(t, url))).Lint()
	testkit.Must(t, err)
	var got []string
	for _, p := range problems {
		got = append(got, p.Metric+": "+p.Text)
	}
	slices.Sort(got)
	want := []string{ // names that RN-BIL-005 and RN-BIL-004 fix
		`backoff_duration_minutes: use base unit "seconds" instead of "minutes"`,
		`error_classification_distribution: counter metrics should have "_total" suffix`,
		`submission_retry_backoff_minutes: use base unit "seconds" instead of "minutes"`,
		`submission_retry_max_exceeded: counter metrics should have "_total" suffix`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
