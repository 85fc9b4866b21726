package prometheus_test

import (
	"cmp"
	"encoding/json"
	"math"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
)

const dashboardsDir = "../../deploy/grafana/dashboards"

// dashboard is what a test reads of Grafana's JSON.
type dashboard struct {
	Title  string
	Panels []panel
}

type panel struct {
	Title   string
	Targets []struct {
		RefID, Expr    string
		Instant, Range bool
	}
	FieldConfig struct {
		Defaults struct {
			Thresholds struct{ Steps []struct{ Value *float64 } }
		}
	}
}

func dashboards(t *testing.T) []dashboard {
	t.Helper()
	paths, err := filepath.Glob(dashboardsDir + "/*.json")
	testkit.Must(t, err)
	if len(paths) == 0 {
		t.Fatalf("no dashboard in %s", dashboardsDir)
	}
	var all []dashboard
	for _, path := range paths {
		var d dashboard
		testkit.Must(t, json.Unmarshal([]byte(testkit.Read(t, path)), &d))
		all = append(all, d)
	}
	return all
}

var (
	selector  = regexp.MustCompile(`\b(?:retry|submission|backoff|max_retries|permanent|error_classification|zeebe|process|go)_?\w*(?:\{([^}]*)\})?`)
	window    = regexp.MustCompile(`\[([^\]]*)\]`)
	aggregate = regexp.MustCompile(`(rate|increase)\($`)
)

// TestQueries holds the rules of Grafana's linter: every selector has the viewer's job and instance; the window of a rate is
// Grafana's own, or the whole range where a panel sums it up; a counter is never shown as it is.
func TestQueries(t *testing.T) {
	for _, d := range dashboards(t) {
		selectors := 0
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				where := d.Title + ": " + p.Title + " " + q.RefID
				if q.Instant == q.Range {
					t.Errorf("%s is neither instant nor range", where)
				}
				for _, at := range selector.FindAllStringSubmatchIndex(q.Expr, -1) {
					if strings.Count(q.Expr[:at[0]], `"`)%2 == 1 {
						continue // a label's value
					}
					selectors++
					checkSelector(t, where, q.Expr, at)
				}
				for _, m := range window.FindAllStringSubmatch(q.Expr, -1) {
					if m[1] != "$__rate_interval" && (m[1] != "$__range" || !q.Instant) {
						t.Errorf("%s has the window %s", where, m[1])
					}
				}
			}
		}
		if selectors < 20 {
			t.Errorf("%s: only %d selectors were seen; this test looks for the wrong thing", d.Title, selectors)
		}
	}
}

func checkSelector(t *testing.T, where, expr string, at []int) {
	t.Helper()
	if at[2] < 0 {
		t.Errorf("%s: %s has no job and no instance", where, expr[at[0]:at[1]])
		return
	}
	name, _, _ := strings.Cut(expr[at[0]:at[1]], "{")
	matchers := expr[at[2]:at[3]]
	ours := strings.Contains(matchers, `job=~"$job", instance=~"$instance"`)
	if theirs := strings.HasPrefix(name, "zeebe_"); theirs != strings.Contains(matchers, `job=~"$engine"`) || ours == theirs {
		t.Errorf("%s: %s has not the viewer's job and instance", where, expr[at[0]:at[1]])
	}
	for _, suffix := range []string{"_total", "_bucket", "_sum", "_count", "submission_retry_max_exceeded", "error_classification_distribution"} {
		if strings.HasSuffix(name, suffix) && name != "zeebe_pending_incidents_total" && !aggregate.MatchString(expr[:at[0]]) {
			t.Errorf("%s shows the counter %s as it is", where, name)
		}
	}
}

// TestThresholdsAreTheTargets: a panel of one figure changes its colour where a rule wants something of that figure, or raises
// an alert (R19).
func TestThresholdsAreTheTargets(t *testing.T) {
	limits := map[string][]float64{}
	for _, k := range statistics.All(nil, []string{"tiss-submission"}, time.Now()) {
		for _, g := range k.Goals {
			limits[k.Name] = append(limits[k.Name], g.Limit)
		}
	}
	figure, seen := regexp.MustCompile(`\bkpi="(\w+)"`), 0
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			if len(p.Targets) != 1 || !figure.MatchString(p.Targets[0].Expr) {
				continue
			}
			name := figure.FindStringSubmatch(p.Targets[0].Expr)[1]
			for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
				if step.Value == nil { // the first one
					continue
				}
				if seen++; !slices.Contains(limits[name], *step.Value) {
					t.Errorf("%s: %s changes its colour at %v, expected one of %v", d.Title, p.Title, *step.Value, limits[name])
				}
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d thresholds were seen; this test looks for the wrong thing", seen)
	}
}

// quiet are the queries on what did not happen in the run, which answer 0: what went wrong, and what takes more than a minute
// of the worker's own clock.
var quiet = []string{
	"Policies file A", "Decisions given again A", "Panics and oversized jobs A", "Panics and oversized jobs B",
	"Median time to success, 24 h A", "At maximum, 7 days A", "Backoff against the ladder of tiss-submission F",
	"Held, cumulated A",
}

// TestEveryQueryHasData: each query of each panel, run as Grafana would run it on what a real Prometheus scraped of a real
// run, answers with numbers, and with others than 0 wherever something happened.
func TestEveryQueryHasData(t *testing.T) {
	s := played(t)
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				values := s.values(t, q.Expr, q.Instant)
				if len(values) == 0 {
					t.Errorf("%s: %s %s has no data: %s", d.Title, p.Title, q.RefID, q.Expr)
				}
				if !slices.Contains(quiet, p.Title+" "+q.RefID) && !slices.ContainsFunc(values, func(v float64) bool { return v != 0 }) {
					t.Errorf("%s: %s %s has nothing but 0: %s", d.Title, p.Title, q.RefID, q.Expr)
				}
			}
		}
	}
}

// values returns the numbers that a query answers with.
func (s *scene) values(t *testing.T, expr string, instant bool) (values []float64) {
	t.Helper()
	expr = s.substitute(expr)
	begin := s.begun
	if instant {
		begin = s.ended
	}
	var data struct{ Result model.Matrix }
	if err := s.Ask(t.Context(), "query_range", url.Values{
		"query": {expr}, "start": {begin.Format(time.RFC3339Nano)}, "end": {s.ended.Format(time.RFC3339Nano)}, "step": {"1s"},
	}, &data); err != nil {
		t.Errorf("%s: %v", expr, err)
	}
	for _, series := range data.Result {
		for _, sample := range series.Values {
			if v := float64(sample.Value); !math.IsNaN(v) {
				values = append(values, v)
			}
		}
	}
	return values
}

// substitute puts in what Grafana does for the run's time range, all choices at "All" but the jobs.
func (s *scene) substitute(expr string) string {
	whole := strconv.Itoa(int(time.Since(s.begun).Seconds())) + "s"
	return strings.NewReplacer("$__rate_interval", "10s", "$__range", whole, "$job", workerJob, "$engine", engineJob,
		"$instance", ".+", "$policy", ".+").Replace(expr)
}

// TestVariablesHaveChoices: what the viewer may choose is there in a real Prometheus.
func TestVariablesHaveChoices(t *testing.T) {
	s := played(t)
	for selector, label := range map[string]string{
		"retry_worker_build_info": "job", `retry_worker_build_info{job=~"retry-worker"}`: "instance",
		`error_classification_distribution{job=~"retry-worker"}`: "policy", "zeebe_job_events_total": "job",
	} {
		var values []string
		if err := s.Ask(t.Context(), "label/"+label+"/values", url.Values{"match[]": {selector}}, &values); err != nil || len(values) == 0 {
			t.Errorf("label_values(%s, %s): %v (%v)", selector, label, values, err)
		}
	}
}

// TestRulesOnARealRun: a real Prometheus evaluates every rule without an error, every series that a rule reads is there, the
// targets are judged, and the alerts on what went wrong in this run begin to wait.
func TestRulesOnARealRun(t *testing.T) {
	s := played(t)
	var answer struct {
		Groups []struct {
			Name, File string
			Rules      []struct{ Name, Health, LastError, State string }
		}
	}
	testkit.Must(t, s.Ask(t.Context(), "rules", nil, &answer))
	states, recorded := map[string]string{}, 0
	for _, g := range answer.Groups {
		for _, r := range g.Rules {
			if r.Health != "ok" || r.LastError != "" {
				t.Errorf("%s in %s is %s: %s", r.Name, g.Name, r.Health, r.LastError)
			}
			if states[r.Name] = r.State; r.State == "" {
				recorded++
			}
		}
	}
	expected := map[string]string{ // more than 10 % are permanent, or reached the limit; the others have no reason
		"RetryWorkerPermanentErrorsAbove10Percent": "pending", "RetryWorkerRetriesExhausted": "pending", "RetryWorkerClaimsLost": "pending",
		"RetryWorkerDeadLettersAbove100": "pending", "RetryWorkerSuccessRateLow": states["RetryWorkerSuccessRateLow"], // as the demo goes
		"RetryWorkerDestinationDown": "pending", "RetryWorkerNewCause": "pending",
	}
	for name := range alerts(t) {
		want := cmp.Or(expected[name], "inactive")
		if fires := want == "pending" && states[name] == "firing"; states[name] != want && !fires { // it has waited long enough on a busy machine
			t.Errorf("%s is %q after the run, expected %s", name, states[name], want)
		}
	}
	if recorded < 15 {
		t.Errorf("%d recording rules were evaluated, expected more", recorded)
	}
	judged, err := s.Query(t.Context(), `policy:retry_worker_kpi_target:met{policy="tiss-submission"}`, time.Now())
	if err != nil || len(judged) != 8 {
		t.Errorf("%d targets are judged (%v), expected 8: %v", len(judged), err, judged)
	}
}

// metricNames are what the rules read of the worker and the engine.
var metricNames = regexp.MustCompile(`\b(retry_worker_\w+|retry_\w+_(?:seconds_bucket|total)|zeebe_\w+)\b`)

// TestRulesReadWhatIsThere: a slip in a name would make an alert that is never raised.
func TestRulesReadWhatIsThere(t *testing.T) {
	s := played(t)
	seen := 0
	for _, path := range ruleFiles(t) {
		for _, r := range rulesOf(t, path) {
			for _, name := range metricNames.FindAllString(r.Expr, -1) {
				seen++
				if strings.Contains(r.Expr, ":"+name) || strings.Contains(r.Expr, name+":") {
					continue // a part of a recorded name
				}
				if series, err := s.Query(t.Context(), "count("+name+")", s.ended); err != nil || len(series) == 0 {
					t.Errorf("%s reads %s, which is not there (%v)", cmp.Or(r.Alert, r.Record), name, err)
				}
			}
		}
	}
	if seen < 20 {
		t.Errorf("only %d names were seen; this test looks for the wrong thing", seen)
	}
}
