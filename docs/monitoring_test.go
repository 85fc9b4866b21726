package docs_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "write the tables of monitoring.md anew")

// TestMonitoringListsEveryAlertAndPanel: the tables are those of the rule files and of the dashboards.
func TestMonitoringListsEveryAlertAndPanel(t *testing.T) {
	text, err := os.ReadFile("monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for marker, table := range map[string]string{
		"alerts": alertTable(t), "business": panelTable(t, "business"), "operations": panelTable(t, "operations"),
	} {
		part := regexp.MustCompile(`(<!-- ` + marker + `: [^\n]*-->\n)(?:\|[^\n]*\n)*`)
		if !part.MatchString(want) {
			t.Fatalf("monitoring.md has no table marked %s", marker)
		}
		want = part.ReplaceAllStringFunc(want, func(old string) string {
			return part.FindStringSubmatch(old)[1] + table
		})
	}
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatal("the tables of monitoring.md are not up to date; run: go test ./docs -run TestMonitoring -update")
	}
	if err := os.WriteFile("monitoring.md", []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func alertTable(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("../deploy/prometheus/*.rules.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rule files: %v", err)
	}
	var b strings.Builder
	b.WriteString("| alert | severity | after | what it tells |\n| --- | --- | --- | --- |\n")
	for _, file := range files {
		var rules struct {
			Groups []struct {
				Rules []struct {
					Alert, For          string
					Labels, Annotations map[string]string
				}
			}
		}
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.Unmarshal(text, &rules)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rules.Groups[0].Rules {
			if r.Alert != "" {
				fmt.Fprintf(&b, "| [%s](runbooks/%s.md) | %s | %s | %s |\n", r.Alert, r.Alert, r.Labels["severity"], or(r.For, "at once"), r.Annotations["description"])
			}
		}
	}
	return b.String()
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

func panelTable(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../deploy/grafana/dashboards/retry-worker-" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct{ Type, Title, Description string }
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| panel | what it tells |\n| --- | --- |\n")
	for _, p := range d.Panels {
		if p.Type == "row" {
			fmt.Fprintf(&b, "| **%s** | |\n", p.Title)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s |\n", p.Title, p.Description)
	}
	return b.String()
}
