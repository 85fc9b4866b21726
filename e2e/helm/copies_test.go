package helm

import (
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/testkit"
)

// files of the chart that match a pattern, by their names. They are links to what the rest of the project uses, too; a
// packed chart holds the files themselves.
func files(t *testing.T, pattern string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(chartDir, "files", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files %s (%v)", pattern, err)
	}
	contents := map[string]string{}
	for _, path := range paths {
		contents[filepath.Base(path)] = testkit.Read(t, path)
	}
	return contents
}

// TestRules: the PrometheusRule holds every group of every rule file, unchanged, and nothing of other files.
func TestRules(t *testing.T) {
	want := map[string]string{}
	for _, content := range files(t, "prometheus/*.rules.yaml") {
		var file struct{ Groups []any }
		testkit.Must(t, yaml.Unmarshal([]byte(content), &file))
		for _, group := range file.Groups {
			want[text(group, "name")] = asYAML(t, group)
		}
	}
	rule := renderOne(t, "prometheusRule.enabled=true", "prometheusRule.labels.release=prometheus").one(t, "PrometheusRule")
	groups := list(rule, "spec", "groups")
	for _, group := range groups {
		if got := asYAML(t, group); got != want[text(group, "name")] {
			t.Errorf("got\n%s\nwant\n%s", got, want[text(group, "name")])
		}
	}
	if len(groups) != len(want) || text(rule, "metadata", "labels", "release") != "prometheus" {
		t.Errorf("%d groups, want %d; labels %v", len(groups), len(want), at(rule, "metadata", "labels"))
	}
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	content, err := yaml.Marshal(v)
	testkit.Must(t, err)
	return string(content)
}

// TestDashboards: each dashboard is a ConfigMap that Grafana's sidecar finds, unchanged.
func TestDashboards(t *testing.T) {
	want := files(t, "grafana/*.json")
	maps := renderOne(t, "dashboards.enabled=true", "dashboards.annotations.folder=Camunda").kind("ConfigMap")
	if len(maps) != len(want) {
		t.Errorf("%d ConfigMaps of %d dashboards", len(maps), len(want))
	}
	for _, m := range maps {
		if text(m, "metadata", "labels", "grafana_dashboard") != "1" || text(m, "metadata", "annotations", "folder") != "Camunda" {
			t.Errorf("the sidecar does not find %v", at(m, "metadata"))
		}
		data, _ := at(m, "data").(map[string]any)
		for name := range data {
			if got := text(data, name); strings.TrimSpace(got) != strings.TrimSpace(want[name]) {
				t.Errorf("%s came out changed: %.200s", name, got)
			}
		}
	}
}
