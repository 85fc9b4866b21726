package prometheus_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"retry-worker/e2e/harness/prometheus"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
)

const (
	rulesDir = "../../deploy/prometheus"
	root     = "../.."
)

// rule is an alert or a recording rule.
type rule struct {
	Alert, Record, Expr, For string
	Labels, Annotations      map[string]string
}

// ruleFiles are the paths of deploy/prometheus's rule files.
func ruleFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(rulesDir + "/*.rules.yaml")
	testkit.Must(t, err)
	if len(files) < 4 {
		t.Fatalf("%d rule files in %s; this test looks in the wrong place", len(files), rulesDir)
	}
	return files
}

func readYAML(t *testing.T, path string, to any) {
	t.Helper()
	testkit.Must(t, yaml.Unmarshal([]byte(testkit.Read(t, path)), to))
}

func rulesOf(t *testing.T, path string) []rule {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	readYAML(t, path, &file)
	if len(file.Groups) != 1 {
		t.Errorf("%s has %d groups, expected one", path, len(file.Groups))
	}
	return file.Groups[0].Rules
}

func alerts(t *testing.T) map[string]rule {
	t.Helper()
	all := make(map[string]rule)
	for _, path := range ruleFiles(t) {
		for _, r := range rulesOf(t, path) {
			if r.Alert == "" {
				continue
			}
			if _, twice := all[r.Alert]; twice {
				t.Errorf("there are two alerts %s", r.Alert)
			}
			all[r.Alert] = r
		}
	}
	return all
}

// TestPromtoolAcceptsTheRules: promtool finds nothing wrong, and every unit test beside a rule file holds.
func TestPromtoolAcceptsTheRules(t *testing.T) {
	for _, path := range ruleFiles(t) {
		promtool(t, "check", "rules", filepath.Base(path))
		promtool(t, "test", "rules", strings.Replace(filepath.Base(path), ".rules.yaml", ".test.yaml", 1))
	}
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(prometheus.Program.Require(t).Path), "promtool"), args...)
	command.Dir = rulesDir
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestAlerts: each has a unit test in which it is raised, and one in which it is silent though the series that it watches are
// there; and it says what, how bad, and what to do.
func TestAlerts(t *testing.T) {
	raised, silent := map[string]bool{}, map[string]bool{}
	for _, path := range ruleFiles(t) {
		var file struct {
			Tests []struct {
				InputSeries    []any `yaml:"input_series"`
				AlertRuleTests []struct {
					Alertname string
					ExpAlerts []any `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		readYAML(t, strings.Replace(path, ".rules.yaml", ".test.yaml", 1), &file)
		for _, test := range file.Tests {
			for _, a := range test.AlertRuleTests {
				raised[a.Alertname] = raised[a.Alertname] || len(a.ExpAlerts) > 0
				silent[a.Alertname] = silent[a.Alertname] || len(a.ExpAlerts) == 0 && len(test.InputSeries) > 0
			}
		}
	}
	for name, a := range alerts(t) {
		if !raised[name] || !silent[name] {
			t.Errorf("%s: there is a test in which it is raised: %v, in which it is silent: %v; expected both", name, raised[name], silent[name])
		}
		if s := a.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s has the severity %q, expected warning or critical", name, s)
		}
		for _, key := range []string{"summary", "description"} {
			if len(a.Annotations[key]) < 20 {
				t.Errorf("%s has no %s", name, key)
			}
		}
		if strings.Contains(a.Annotations["summary"], "\n") || len(a.Annotations["summary"]) > 120 {
			t.Errorf("%s: the summary is not a short line: %q", name, a.Annotations["summary"])
		}
	}
}

// TestTargetsAreTheJournals: the rules, the console and `retry-worker kpi` hold the figures against the same numbers.
func TestTargetsAreTheJournals(t *testing.T) {
	type goal struct {
		kpi, rule, compare string
		limit              float64
	}
	targets, raised := map[goal]bool{}, map[goal]bool{}
	for _, k := range statistics.All(nil, []string{"tiss-submission"}, time.Now()) {
		for _, g := range k.Goals {
			key := goal{k.Name, strings.TrimSpace(string(g.Rule)), g.Compare, g.Limit}
			if g.Kind == "target" {
				targets[key] = true
			} else {
				raised[key] = true
			}
		}
	}
	recorded := regexp.MustCompile(`^vector\(([\d.]+)\)$`)
	watched := regexp.MustCompile(`retry_worker_kpi\{kpi="(\w+)"\}\) > ([\d.]+)$`)
	number := func(s string) float64 {
		n, err := strconv.ParseFloat(s, 64)
		testkit.Must(t, err)
		return n
	}
	for _, path := range ruleFiles(t) {
		for _, r := range rulesOf(t, path) {
			if m := recorded.FindStringSubmatch(r.Expr); r.Record == "retry_worker_kpi_target" && m != nil {
				key := goal{r.Labels["kpi"], r.Labels["rule"], r.Labels["compare"], number(m[1])}
				if !targets[key] {
					t.Errorf("%+v is no target of the journal's", key)
				}
				delete(targets, key)
			}
			if m := watched.FindStringSubmatch(r.Expr); r.Alert != "" && m != nil {
				delete(raised, goal{m[1], r.Labels["rule"], ">", number(m[2])})
			}
		}
	}
	delete(raised, goal{"processing_time_p99", "RN-BIL-005", ">", 1}) // RetryWorkerAnalysisSlow, by the histogram (R19)
	if len(targets)+len(raised) > 0 {
		t.Errorf("targets without a recording rule: %v; alerts of the rules without an alert: %v", targets, raised)
	}
}

// databaseGauges are the same in every replica.
var databaseGauges = regexp.MustCompile(`\b(retry_success_rate|retry_worker_(kpi|kpi_samples|dead_letters\w*|outbox_pending|notices_oldest_seconds|destination_\w+|held|held_deadline_seconds))\b(\{[^}]*\})?`)

// TestNoGaugeCountsOncePerReplica: wherever a figure from the database is read, in rules and dashboards, its largest is.
func TestNoGaugeCountsOncePerReplica(t *testing.T) {
	var exprs []string
	for _, path := range ruleFiles(t) {
		for _, r := range rulesOf(t, path) {
			exprs = append(exprs, r.Expr)
		}
	}
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				exprs = append(exprs, target.Expr)
			}
		}
	}
	begins := regexp.MustCompile(`max by \([\w, ]+\) \((min_over_time\()?$`)
	for _, expr := range exprs {
		for _, at := range databaseGauges.FindAllStringIndex(expr, -1) {
			if recorded := at[0] > 0 && expr[at[0]-1] == ':'; !recorded && !begins.MatchString(expr[:at[0]]) {
				t.Errorf("%s\nreads %s without max by", strings.Join(strings.Fields(expr), " "), expr[at[0]:at[1]])
			}
		}
	}
	if !slices.ContainsFunc(exprs, databaseGauges.MatchString) {
		t.Error("no figure from the database is read at all; this test looks for the wrong thing")
	}
}
