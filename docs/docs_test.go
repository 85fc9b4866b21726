// Package docs_test holds the README against what it describes.
package docs_test

import (
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/config"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/metrics"
	"retry-worker/internal/review"

	"go.yaml.in/yaml/v3"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section is what follows a marker comment, up to the next heading.
func section(t *testing.T, marker string) string {
	t.Helper()
	_, rest, found := strings.Cut(readme(t), "<!-- "+marker)
	if !found {
		t.Fatalf("README.md has no section marked %q", marker)
	}
	part, _, _ := strings.Cut(rest, "\n## ")
	return part
}

func TestReadmeListsEverySetting(t *testing.T) {
	var help strings.Builder
	if err := config.Usage(&help); err != nil {
		t.Fatal(err)
	}
	table := section(t, "settings:")
	for line := range strings.Lines(help.String()) {
		name := strings.Fields(line)[0]
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("README.md does not list the setting %s", name)
		}
	}
	for _, name := range regexp.MustCompile(`(?:RETRY_WORKER|ZEEBE)_[A-Z_]+`).FindAllString(table, -1) {
		if !strings.Contains(help.String(), name+" ") {
			t.Errorf("README.md lists %s, which `serve --help` does not know", name)
		}
	}
}

func TestReadmeListsEveryMetric(t *testing.T) {
	m := metrics.New(metrics.Build{}, decisiontest.Policies())
	m.StartJobType("analyze-retry")
	m.Hooks().Rejected("analyze-retry", decision.InvalidClaimID)
	rate := 1.0 // absent while nothing closed
	m.SetKPIs([]journal.KPI{{Policy: decision.DefaultPolicy, Name: journal.KPISuccessRate, Value: &rate}})
	now := time.Now() // absent while nothing waits
	m.SetDeadLetters([]journal.DeadLetterCount{{Policy: decision.DefaultPolicy, State: journal.DeadLetterOpen, N: 1, Oldest: now}}, now)
	server, err := metrics.Listen("127.0.0.1:0", m, &metrics.Readiness{}, false)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close(t.Context())
	response, err := http.Get("http://" + server.Addr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	table := section(t, "metrics:")
	exposed := make(map[string]bool)
	for _, found := range regexp.MustCompile(`(?m)^# TYPE (\S+)`).FindAllStringSubmatch(string(text), -1) {
		name := found[1]
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") || strings.HasPrefix(name, "promhttp_") {
			continue
		}
		exposed[name] = true
		if !strings.Contains(table, "`"+name+"`") {
			t.Errorf("README.md does not list the metric %s", name)
		}
	}
	for _, found := range regexp.MustCompile("(?m)^\\| (`[^|]*) \\|").FindAllStringSubmatch(table, -1) {
		for _, name := range strings.Split(found[1], ", ") {
			if name = strings.Trim(name, "` "); !exposed[name] {
				t.Errorf("README.md lists the metric %s, which is not exposed", name)
			}
		}
	}
	for _, name := range regexp.MustCompile(`retry_worker_[a-z_]+`).FindAllString(alertRules(t), -1) {
		if !exposed[name] {
			t.Errorf("an alert watches %s, which is not exposed", name)
		}
	}
}

// alertRules are those of deploy/prometheus.
func alertRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../deploy/prometheus/dead-letters.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAlertIsTheConsoles: the banner of the console and the alert speak of the same number (TRD-0003).
func TestAlertIsTheConsoles(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal([]byte(alertRules(t)), &rules); err != nil {
		t.Fatal(err)
	}
	want := "> " + strconv.Itoa(review.AlertAbove)
	if first := rules.Groups[0].Rules[0]; !strings.HasSuffix(first.Expr, want) {
		t.Errorf("%s is raised at %s, want %s", first.Alert, first.Expr, want)
	}
}

func TestReadmeMapMatchesTheTree(t *testing.T) {
	listed := make(map[string]bool)
	for _, found := range regexp.MustCompile(`(?m)^([\w/-]+)/ {2,}\S`).FindAllStringSubmatch(section(t, "map:"), -1) {
		listed[found[1]] = true
		if info, err := os.Stat(filepath.Join("..", found[1])); err != nil || !info.IsDir() {
			t.Errorf("README.md maps %s/, which is not there", found[1])
		}
	}
	folders, err := filepath.Glob("../internal/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range append(folders, "../bpmn", "../e2e", "../bench", "../scripts", "../tools", "../docs") {
		if name, _ := filepath.Rel("..", folder); !listed[name] {
			t.Errorf("README.md does not map %s/", name)
		}
	}
}

func TestLinksInTheDocumentsLeadSomewhere(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../README.md", "../CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), found[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, found[1])
			}
		}
	}
}

// TestProofsExist: each test that a document names as what holds it is there.
func TestProofsExist(t *testing.T) {
	there := testsOfTheTree(t)
	for page, least := range map[string]int{"proofs.md": 30, "security.md": 150} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(string(text), -1)
		if len(named) < least {
			t.Errorf("docs/%s names %d tests only; this test looks for the wrong thing", page, len(named))
		}
		for _, name := range named {
			if !there[name[1]] {
				t.Errorf("docs/%s names %s, which does not exist", page, name[1])
			}
		}
	}
}

// testsOfTheTree are the names of all tests.
func testsOfTheTree(t *testing.T) map[string]bool {
	t.Helper()
	there := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, found := range declared.FindAllStringSubmatch(string(source), -1) {
			there[found[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return there
}

// TestThreatsAreAnswered: each threat of docs/security.md names a test, and each limit; each requirement shows that it is met,
// or says what stands instead.
func TestThreatsAreAnswered(t *testing.T) {
	text, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}
	threats, limits, requirements := 0, 0, 0
	heading := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		cells := strings.Split(strings.Trim(line, "|"), "|")
		switch {
		case strings.HasPrefix(line, "#"):
			heading = line
		case !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| ---"):
		case strings.HasPrefix(heading, "### B") && cells[0] != " " && len(cells) == 5:
			threats++
			if !strings.Contains(cells[3], "`Test") {
				t.Errorf("no test holds what answers a threat: %s", line)
			}
		case heading == "## Limits" && !strings.HasPrefix(line, "| input"):
			limits++
			if !strings.Contains(cells[len(cells)-1], "`Test") {
				t.Errorf("no test holds a limit: %s", line)
			}
		case strings.HasPrefix(heading, "### V") && !strings.HasPrefix(line, "| requirement"):
			requirements++
			if !answersRequirement(strings.TrimSpace(cells[1]), line) {
				t.Errorf("it shows nothing that it is met, or does not say why it is not: %s", line)
			}
		}
	}
	if threats < 35 || limits < 30 || requirements < 120 {
		t.Errorf("%d threats, %d limits and %d requirements were found; this test looks for the wrong thing", threats, limits, requirements)
	}
}

// shown is what shows that a requirement is met: a test, a section, a file, a command.
var shown = regexp.MustCompile("`(?:Test|Fuzz)\\w+`|\\*[A-Z][^*]+\\*|\\]\\(|`[\\w./-]+\\.\\w+`|`make \\w+`")

// answersRequirement reports whether a row of the standard shows what its answer claims, or gives the reason.
func answersRequirement(answer, row string) bool {
	switch {
	case strings.Contains(answer, "**left**"):
		_, why, _ := strings.Cut(answer, "**left**")
		return len(why) > len(": why it is")
	case strings.HasPrefix(answer, "met"):
		return shown.MatchString(row)
	default:
		return answer == "operator" || strings.HasPrefix(answer, "operator;") || strings.HasPrefix(answer, "operator:") || strings.HasPrefix(answer, "n/a: ")
	}
}
