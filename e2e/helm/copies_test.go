package helm

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "bring the chart's copies of rules and dashboards up to date")

// copied is what the chart carries of other folders: a chart is installed alone, and cannot reach beside itself.
var copied = map[string]string{
	"../../deploy/prometheus/*.rules.yaml":   "files/prometheus",
	"../../deploy/grafana/dashboards/*.json": "files/grafana",
}

// TestCopies: what the chart installs is what deploy/prometheus and deploy/grafana hold. With -update it is made so.
func TestCopies(t *testing.T) {
	for pattern, folder := range copied {
		sources, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		folder = filepath.Join(chartDir, folder)
		if *update {
			copyAll(t, sources, folder)
		}
		entries, err := os.ReadDir(folder)
		if err != nil && len(sources) > 0 {
			t.Fatal(err)
		}
		var want, got []string
		for _, source := range sources {
			want = append(want, filepath.Base(source))
			if !same(source, filepath.Join(folder, filepath.Base(source))) {
				t.Errorf("%s differs from the chart's copy; go test ./e2e/helm -run Copies -update", source)
			}
		}
		for _, entry := range entries {
			got = append(got, entry.Name())
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s holds %q, expected %q; go test ./e2e/helm -run Copies -update", folder, got, want)
		}
	}
}

func same(a, b string) bool {
	one, err := os.ReadFile(a)
	other, otherErr := os.ReadFile(b)
	return err == nil && otherErr == nil && string(one) == string(other)
}

func copyAll(t *testing.T, sources []string, folder string) {
	t.Helper()
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		content, err := os.ReadFile(source)
		if err == nil {
			err = os.MkdirAll(folder, 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, filepath.Base(source)), content, 0o644) //nolint:gosec // as git keeps it
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRules: the PrometheusRule holds every group of every rule file, unchanged.
func TestRules(t *testing.T) {
	var want []any
	sources, err := filepath.Glob(filepath.Join(chartDir, "files/prometheus/*.yaml"))
	if err != nil || len(sources) == 0 {
		t.Fatal("no rule files", err)
	}
	for _, source := range sources {
		content, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ Groups []any }
		if err := yaml.Unmarshal(content, &file); err != nil {
			t.Fatal(err)
		}
		want = append(want, file.Groups...)
	}
	rule := renderOne(t, "prometheusRule.enabled=true", "prometheusRule.labels.release=prometheus").one(t, "PrometheusRule")
	if got, wanted := asYAML(t, at(rule, "spec", "groups")), asYAML(t, want); got != wanted {
		t.Errorf("got\n%s\nwant\n%s", got, wanted)
	}
	if text(rule, "metadata", "labels", "release") != "prometheus" {
		t.Errorf("labels %v", at(rule, "metadata", "labels"))
	}
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	content, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// TestDashboards: each dashboard is a ConfigMap that Grafana's sidecar finds, unchanged.
func TestDashboards(t *testing.T) {
	sources, err := filepath.Glob(filepath.Join(chartDir, "files/grafana/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(sources) == 0 {
		t.Fatal("no dashboards")
	}
	maps := renderOne(t, "dashboards.enabled=true", "dashboards.annotations.folder=Camunda").kind("ConfigMap")
	if len(maps) != len(sources) {
		t.Errorf("%d ConfigMaps of %d dashboards", len(maps), len(sources))
	}
	held := map[string]string{}
	for _, m := range maps {
		if text(m, "metadata", "labels", "grafana_dashboard") != "1" || text(m, "metadata", "annotations", "folder") != "Camunda" {
			t.Errorf("the sidecar does not find %v", at(m, "metadata"))
		}
		data, _ := at(m, "data").(map[string]any)
		for name := range data {
			held[name] = text(data, name)
		}
	}
	for _, source := range sources {
		content, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		if got := held[filepath.Base(source)]; strings.TrimSpace(got) != strings.TrimSpace(string(content)) {
			t.Errorf("%s came out changed: %.200s", source, got)
		}
	}
}
