package docs_test

import (
	"cmp"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/config"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/destination"
	"retry-worker/internal/gate"
	"retry-worker/internal/journal"
	"retry-worker/internal/kpi"
	"retry-worker/internal/metrics"
	"retry-worker/internal/testkit"
)

var update = flag.Bool("update", false, "write the tables of the pages anew")

// TestTablesAreUpToDate holds the tables that are made from code and rule files.
func TestTablesAreUpToDate(t *testing.T) {
	for _, c := range []struct{ page, marker, table string }{
		{"configuration.md", "settings", settingsTable(t)},
		{"monitoring.md", "metrics", metricsTable(t)},
		{"monitoring.md", "alerts", alertTable(t)},
	} {
		text := testkit.Read(t, c.page)
		part := regexp.MustCompile(`(<!-- ` + c.marker + `: [^\n]*-->\n)(?:\|[^\n]*\n)*`)
		marker := part.FindStringSubmatch(text)
		if marker == nil {
			t.Fatalf("%s has no table marked %s", c.page, c.marker)
		}
		want := strings.Replace(text, marker[0], marker[1]+c.table, 1)
		switch {
		case want == text:
		case !*update:
			t.Errorf("the table %s of %s is not up to date; run: go test ./docs -run TestTables -update", c.marker, c.page)
		default:
			testkit.Must(t, os.WriteFile(c.page, []byte(want), 0o644))
		}
	}
}

func settingsTable(t *testing.T) string {
	t.Helper()
	variables, err := config.Variables()
	testkit.Must(t, err)
	var b strings.Builder
	b.WriteString("| variable | default | meaning |\n| --- | --- | --- |\n")
	for i, v := range variables {
		if i == 0 || variables[i-1].Group != v.Group {
			fmt.Fprintf(&b, "| **%s** | | |\n", v.Group)
		}
		if v.Default != "" {
			v.Default = "`" + v.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.Name, v.Default, v.Meaning)
	}
	return b.String()
}

func metricsTable(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("| name | type | meaning |\n| --- | --- | --- |\n")
	text := exposition(t)
	for _, metric := range regexp.MustCompile(`(?m)^# HELP (\S+) (.*)\n# TYPE \S+ (\S+)$`).FindAllStringSubmatch(text, -1) {
		if regexp.MustCompile(`^(go|process|promhttp)_`).MatchString(metric[1]) {
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", metric[1], metric[3], metric[2])
	}
	return b.String()
}

// exposition returns what /metrics answers where every metric has a value.
func exposition(t *testing.T) string {
	t.Helper()
	m := metrics.New(metrics.Build{}, decisiontest.Policies())
	m.StartJobType("analyze-retry")
	m.Hooks().Rejected("analyze-retry", decision.InvalidClaimID)
	rate := 1.0 // absent while nothing closed
	m.SetKPIs([]kpi.KPI{{Policy: decision.DefaultPolicy, Name: kpi.SuccessRate, Value: &rate}})
	now := time.Now() // absent while nothing waits
	m.SetDeadLetters([]deadletter.Count{{Policy: decision.DefaultPolicy, State: journal.DeadLetterOpen, N: 1, Oldest: now}}, now)
	m.WatchDestinations(func() ([]gate.Destination, error) {
		return []gate.Destination{{State: destination.New(now), Deadline: now}}, nil
	}, gate.Settings{}.Label, time.Now)
	server, err := metrics.Listen(net.Listen, "127.0.0.1:0", m, &metrics.Readiness{}, false)
	testkit.Must(t, err)
	defer server.Close(t.Context())
	_, text := testkit.Get(t, "http://"+server.Addr()+"/metrics")
	return text
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
		testkit.Must(t, err)
		for _, r := range rules.Groups[0].Rules {
			if r.Alert != "" {
				sentence, _, _ := strings.Cut(r.Annotations["description"], ". ")
				fmt.Fprintf(&b, "| [%s](runbooks/%s.md) | %s | %s | %s |\n", r.Alert, r.Alert, r.Labels["severity"], cmp.Or(r.For, "at once"), strings.TrimSuffix(sentence, "."))
			}
		}
	}
	return b.String()
}
