package prometheus_test

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness/prometheus"
	"retry-worker/internal/testkit"
)

const dashboardsDir = "../../deploy/grafana/dashboards"

// dashboard is what a test reads of Grafana's JSON.
type dashboard struct {
	name  string
	Title string
	All   []panel `json:"panels"`
}

type panel struct {
	Type, Title string
	GridPos     struct{ H, W, X, Y int }
	FieldConfig struct {
		Defaults struct {
			Unit, NoValue string
			Decimals      *int
			Mappings      []struct {
				Options map[string]struct{ Text string }
			}
			Thresholds struct {
				Steps []struct {
					Color string
					Value *float64
				}
			}
			Custom struct{ Stacking struct{ Mode string } }
		}
	}
	Options struct{ TextMode string }
	Targets []struct {
		RefID, Expr, LegendFormat string
		Instant                   bool
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
		d := dashboard{name: strings.TrimSuffix(filepath.Base(path), ".json")}
		testkit.Must(t, json.Unmarshal([]byte(testkit.Read(t, path)), &d))
		all = append(all, d)
	}
	return all
}

// panels are those that show something.
func (d *dashboard) panels() []panel {
	return slices.DeleteFunc(slices.Clone(d.All), func(p panel) bool { return p.Type == "row" })
}

// quiet are the queries on what did not happen in the run, which answer 0: what went wrong, and what takes more than a minute
// of the worker's own clock.
var quiet = []string{
	"Policies file A", "Decisions given again A", "Panics and oversized jobs A", "Panics and oversized jobs B",
	"Median time to success, 24 h A", "At maximum, 7 days A", "Backoff against the ladder of tiss-submission F",
	"Held, cumulated A",
}

// TestEveryQueryHasData: each query of each panel, run as Grafana would run it on what a real Prometheus scraped of a real
// run, answers with numbers, and with others than 0 wherever something happened. The pictures in docs are drawn of them.
func TestEveryQueryHasData(t *testing.T) {
	s := played(t)
	for _, d := range dashboards(t) {
		var drawn []Panel
		for i := range d.All {
			drawn = append(drawn, s.show(t, &d, &d.All[i]))
		}
		svg := SVG(d.Title, drawn)
		checkPicture(t, &d, svg)
	}
}

// show runs a panel's queries.
func (s *scene) show(t *testing.T, d *dashboard, p *panel) Panel {
	t.Helper()
	shown := Panel{
		Kind: p.Type, Title: p.Title, X: p.GridPos.X, Y: p.GridPos.Y, W: p.GridPos.W, H: p.GridPos.H, Unit: p.FieldConfig.Defaults.Unit,
		None: p.FieldConfig.Defaults.NoValue, Names: p.Options.TextMode == "name", Stacked: p.FieldConfig.Defaults.Custom.Stacking.Mode == "normal",
		Mappings: map[string]string{}, Whole: p.FieldConfig.Defaults.Decimals != nil,
	}
	for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
		from := math.Inf(-1)
		if step.Value != nil {
			from = *step.Value
		}
		shown.Thresholds = append(shown.Thresholds, Threshold{Color: step.Color, From: from})
	}
	for _, m := range p.FieldConfig.Defaults.Mappings {
		for value, word := range m.Options {
			shown.Mappings[value] = word.Text
		}
	}
	for _, q := range p.Targets {
		where := d.Title + ": " + p.Title + " " + q.RefID
		lines := s.lines(t, where, q.Expr, q.LegendFormat, q.Instant)
		if len(lines) == 0 {
			t.Errorf("%s has no data: %s", where, q.Expr)
		}
		if !slices.Contains(quiet, p.Title+" "+q.RefID) && !slices.ContainsFunc(lines, moves) {
			t.Errorf("%s has nothing but 0: %s", where, q.Expr)
		}
		shown.Lines = append(shown.Lines, lines...)
	}
	return shown
}

func moves(l Line) bool {
	return slices.ContainsFunc(l.Points, func(q Point) bool { return q.Value != 0 })
}

// lines are a query's series that have a number, in the order of their bounds or names.
func (s *scene) lines(t *testing.T, where, expr, legend string, instant bool) (lines []Line) {
	t.Helper()
	expr = s.substitute(expr)
	var series []prometheus.Series
	var err error
	if instant {
		series, err = s.Query(t.Context(), expr, s.ended)
	} else {
		series, err = s.QueryRange(t.Context(), expr, s.begun, s.ended, time.Second)
	}
	if err != nil {
		t.Errorf("%s: %v", where, err)
	}
	slices.SortFunc(series, func(a, b prometheus.Series) int {
		return cmp.Or(cmp.Compare(bound(a.Metric), bound(b.Metric)), cmp.Compare(named(legend, a.Metric), named(legend, b.Metric)))
	})
	for _, one := range series {
		points := one.Values
		if instant {
			points = []prometheus.Sample{one.Value}
		}
		l := Line{Name: named(legend, one.Metric)}
		for _, v := range points {
			if !math.IsNaN(v.Value) {
				l.Points = append(l.Points, Point{At: v.At, Value: v.Value})
			}
		}
		if len(l.Points) > 0 {
			lines = append(lines, l)
		}
	}
	return lines
}

// substitute puts in what Grafana does for the run's time range, all choices at "All" but the jobs.
func (s *scene) substitute(expr string) string {
	whole := strconv.Itoa(int(time.Since(s.begun).Seconds())) + "s"
	return strings.NewReplacer("$__rate_interval", "10s", "$__range", whole, "$job", workerJob, "$engine", engineJob,
		"$instance", ".+", "$policy", ".+").Replace(expr)
}

func bound(labels map[string]string) float64 {
	le, err := strconv.ParseFloat(labels["le"], 64)
	if err != nil {
		return 0
	}
	return le
}

var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

// named is a legend filled in.
func named(legend string, labels map[string]string) string {
	return placeholder.ReplaceAllStringFunc(legend, func(m string) string { return labels[strings.Trim(m, "{}")] })
}

// checkPicture draws docs' picture anew where that is asked for, and otherwise holds that it shows every panel there is.
func checkPicture(t *testing.T, d *dashboard, svg string) {
	t.Helper()
	path := filepath.Join(root, "docs/pictures", d.name+".svg")
	if *update {
		testkit.Must(t, os.WriteFile(path, []byte(svg), 0o644))
	}
	if got, want := titles(testkit.Read(t, path)), titles(svg); !slices.Equal(got, want) {
		t.Errorf("%s shows the panels\n%q, expected\n%q\nDraw it anew: go test ./e2e/prometheus -run TestEveryQueryHasData -update", path, got, want)
	}
}

var panelTitle = regexp.MustCompile(`font-size="1[24]" fill="#ccccdc" text-anchor="start">([^<]*)<`)

func titles(svg string) (all []string) {
	for _, m := range panelTitle.FindAllStringSubmatch(svg, -1) {
		all = append(all, m[1])
	}
	return all
}

// TestVariablesHaveChoices: what the viewer may choose is there in a real Prometheus.
func TestVariablesHaveChoices(t *testing.T) {
	s := played(t)
	for selector, label := range map[string]string{
		"retry_worker_build_info": "job", `retry_worker_build_info{job=~"retry-worker"}`: "instance",
		`error_classification_distribution{job=~"retry-worker"}`: "policy", "zeebe_job_events_total": "job",
	} {
		if values, err := s.LabelValues(t.Context(), label, selector); err != nil || len(values) == 0 {
			t.Errorf("label_values(%s, %s): %v (%v)", selector, label, values, err)
		}
	}
}

// TestRulesOnARealRun: a real Prometheus evaluates every rule without an error, every series that a rule reads is there, the
// targets are judged, and the alerts on what went wrong in this run, and on the sick worker, begin to wait.
func TestRulesOnARealRun(t *testing.T) {
	s := played(t)
	s.holds(t, `ALERTS{alertname="RetryWorkerTokensRejected", job="sick"} and on () ALERTS{alertname="RetryWorkerCertificateRejected", job="sick"}
		and on () ALERTS{alertname="RetryWorkerCatalogueRejected", job="sick"}`)
	var answer struct {
		Groups []struct {
			Name, File string
			Rules      []struct{ Name, Health, LastError, State string }
		}
	}
	testkit.Must(t, s.Ask(t.Context(), "/api/v1/rules", nil, &answer))
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
	expected := map[string]string{ // more than 10 % are permanent, or reached the limit; a worker is sick; the others have no reason
		"RetryWorkerEngineUnreachable": "pending", "RetryWorkerCatalogueRejected": "pending", "RetryWorkerTokensRejected": "pending",
		"RetryWorkerCertificateRejected":           "pending",
		"RetryWorkerPermanentErrorsAbove10Percent": "pending", "RetryWorkerRetriesExhausted": "pending", "RetryWorkerClaimsLost": "pending",
		"RetryWorkerDeadLettersAbove100": "pending", "RetryWorkerSuccessRateLow": states["RetryWorkerSuccessRateLow"], // as the demo goes
		"RetryWorkerDestinationDown": "pending",
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

// TestFiguresAgree: the recording rules show what `retry-worker kpi` does.
func TestFiguresAgree(t *testing.T) {
	s := played(t)
	found, compared := s.differences(t)
	if len(found) > 0 || compared < 40 {
		t.Errorf("of %d figures (expected ten of each of four policies) these differ: %q", compared, found)
	}
}
