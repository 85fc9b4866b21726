package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
)

const dir = "dashboards"

// TestDashboardsAreUpToDate: what is shipped is what the code makes.
func TestDashboardsAreUpToDate(t *testing.T) {
	for _, name := range names {
		made, err := encode(name)
		testkit.Must(t, err)
		if shipped, err := os.ReadFile(filepath.Join(dir, file(name))); err != nil || !bytes.Equal(shipped, made) {
			t.Errorf("%s is not up to date (%v); run: go run ./deploy/grafana deploy/grafana/dashboards", name, err)
		}
	}
}

type board struct {
	Title, UID, Description, Refresh string
	Editable                         bool
	Templating                       struct{ List []variable }
	Panels                           []panel
}

type variable struct {
	Name, Label, Type, Query, AllValue string
	Multi, IncludeAll                  bool
	Refresh                            int
	Datasource                         struct{ UID string }
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Datasource               struct{ Type, UID string }
	GridPos                  struct{ H, W, X, Y int }
	FieldConfig              struct {
		Defaults struct {
			Unit       string
			Thresholds struct{ Steps []struct{ Value *float64 } }
		}
	}
	Targets []struct {
		RefID, Expr, LegendFormat string
		Instant, Range            bool
		Datasource                struct{ UID string }
	}
}

// boards are the shipped dashboards.
func boards(t *testing.T) []board {
	t.Helper()
	paths, err := filepath.Glob(dir + "/*.json")
	testkit.Must(t, err)
	var all []board
	for _, path := range paths {
		var b board
		if err := json.Unmarshal([]byte(testkit.Read(t, path)), &b); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, b)
	}
	if len(all) != 2 {
		t.Fatalf("%d dashboards, expected two", len(all))
	}
	return all
}

// The linter's template rules: data source, job and instance are the viewer's choice.
func TestVariables(t *testing.T) {
	for _, b := range boards(t) {
		found := map[string]variable{}
		for _, v := range b.Templating.List {
			found[v.Name] = v
		}
		if v := found["datasource"]; v.Type != "datasource" || v.Query != "prometheus" || v.Label != "Data source" {
			t.Errorf("%s: the variable datasource is %+v", b.Title, v)
		}
		for name, label := range map[string]string{"job": "Job", "instance": "Instance"} {
			if found[name].Label != label {
				t.Errorf("%s: the variable %s is labelled %q, expected %q", b.Title, name, found[name].Label, label)
			}
		}
		for name, v := range found {
			if name == "datasource" {
				continue
			}
			if v.Type != "query" || !v.Multi || !v.IncludeAll || v.AllValue != ".+" || v.Refresh != 2 || v.Datasource.UID != "${datasource}" ||
				!regexp.MustCompile(`^label_values\(\w+(\{job=~"\$job"\})?, \w+\)$`).MatchString(v.Query) {
				t.Errorf("%s: the variable %s is %+v", b.Title, name, v)
			}
		}
		if b.Editable || b.UID == "" || b.Description == "" || b.Refresh == "" {
			t.Errorf("%s: editable %v, uid %q, description %q, refresh %q", b.Title, b.Editable, b.UID, b.Description, b.Refresh)
		}
	}
}

// units that the panels may have, of Grafana's.
var units = []string{"percentunit", "m", "s", "none", "short", "cpm", "ops", "bytes"}

// The linter's panel rules: a title, a description, a unit, the chosen data source, at least one query.
func TestPanels(t *testing.T) {
	for _, b := range boards(t) {
		titles, ids, cells := map[string]bool{}, map[int]bool{}, map[[2]int]string{}
		for _, p := range b.Panels {
			if ids[p.ID] || titles[p.Title] || p.Title == "" {
				t.Errorf("%s: the panel %d %q is not the only one of its id and title", b.Title, p.ID, p.Title)
			}
			ids[p.ID], titles[p.Title] = true, true
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					if other, taken := cells[at]; taken || at[0] >= 24 {
						t.Errorf("%s: %q lies over %q, or beside the grid", b.Title, p.Title, other)
					}
					cells[at] = p.Title
				}
			}
			if p.Type == "row" {
				continue
			}
			if len(p.Description) < 10 || !slices.Contains(units, p.FieldConfig.Defaults.Unit) || p.Datasource.UID != "${datasource}" ||
				p.Datasource.Type != "prometheus" || len(p.Targets) == 0 || len(p.FieldConfig.Defaults.Thresholds.Steps) == 0 {
				t.Errorf("%s: %q lacks a description, a unit, the data source, queries or thresholds: %+v", b.Title, p.Title, p)
			}
		}
	}
}

var (
	selector  = regexp.MustCompile(`\b(?:retry|submission|backoff|max_retries|permanent|error_classification|zeebe|process|go)_?\w*(?:\{([^}]*)\})?`)
	window    = regexp.MustCompile(`\[([^\]]*)\]`)
	aggregate = regexp.MustCompile(`(rate|increase)\($`)
)

// The linter's target rules: every selector has the chosen job and instance; a rate's window is Grafana's own, or the whole
// range where a panel sums it up; a counter is never shown as it is.
func TestQueries(t *testing.T) {
	for _, b := range boards(t) {
		selectors := 0
		for _, p := range b.Panels {
			for _, q := range p.Targets {
				where := b.Title + ": " + p.Title + " " + q.RefID
				if q.Instant == q.Range || q.Datasource.UID != "${datasource}" {
					t.Errorf("%s is neither instant nor range, or of another data source", where)
				}
				for _, at := range selector.FindAllStringSubmatchIndex(q.Expr, -1) {
					if strings.Contains(q.Expr[:at[0]], `"`) && strings.Count(q.Expr[:at[0]], `"`)%2 == 1 {
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
			t.Errorf("%s: only %d selectors were seen; this test looks for the wrong thing", b.Title, selectors)
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
