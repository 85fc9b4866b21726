package helm

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/testkit"
)

// TestCopies: the PrometheusRule holds every group of every rule file, and a ConfigMap that Grafana's sidecar finds each
// dashboard, unchanged. The chart's files are links to what the rest of the project uses, too.
func TestCopies(t *testing.T) {
	want, got, copies := map[string]any{}, map[string]any{}, 0
	for _, path := range files(t, "prometheus/*.rules.yaml") {
		var file struct{ Groups []any }
		testkit.Must(t, yaml.Unmarshal([]byte(testkit.Read(t, path)), &file))
		for _, group := range file.Groups {
			want[text(group, "name")] = group
		}
	}
	for _, path := range files(t, "grafana/*.json") {
		want[filepath.Base(path)] = strings.TrimSpace(testkit.Read(t, path))
	}
	r := renderOne(t, "prometheusRule.enabled=true", "dashboards.enabled=true", "dashboards.annotations.folder=Camunda")
	for _, group := range list(r.one(t, "PrometheusRule"), "spec", "groups") {
		got[text(group, "name")] = group
		copies++
	}
	for _, m := range r.kind("ConfigMap") {
		if text(m, "metadata", "labels", "grafana_dashboard") != "1" || text(m, "metadata", "annotations", "folder") != "Camunda" {
			t.Errorf("the sidecar does not find %v", at(m, "metadata"))
		}
		data, _ := at(m, "data").(map[string]any)
		for name := range data {
			got[name] = strings.TrimSpace(text(data, name))
			copies++
		}
	}
	if copies != len(want) {
		t.Errorf("%d groups of rules and dashboards, expected %q", copies, slices.Sorted(maps.Keys(want)))
	}
	for name := range got {
		if !reflect.DeepEqual(got[name], want[name]) {
			t.Errorf("%s came out as %v, expected %v", name, got[name], want[name])
		}
	}
}

// files returns the paths of the chart's files that match a pattern.
func files(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(chartDir, "files", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s (%v)", pattern, err)
	}
	return paths
}
