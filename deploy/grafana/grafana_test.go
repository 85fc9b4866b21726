package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
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
	Title  string
	Panels []struct {
		Title   string
		Targets []struct {
			RefID, Expr    string
			Instant, Range bool
		}
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
				if q.Instant == q.Range {
					t.Errorf("%s is neither instant nor range", where)
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
