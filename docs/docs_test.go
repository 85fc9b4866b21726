// Package docs_test holds the documents against what they describe.
package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
)

// section returns what follows a marker comment in a page, up to the next heading.
func section(t *testing.T, page, marker string) string {
	t.Helper()
	_, rest, found := strings.Cut(testkit.Read(t, page), "<!-- "+marker+":")
	if !found {
		t.Fatalf("%s has no section marked %q", page, marker)
	}
	part, _, _ := strings.Cut(rest, "\n## ")
	return part
}

// TestPagesListWhatThereIs holds lists of names against what they name, in both directions.
func TestPagesListWhatThereIs(t *testing.T) {
	for _, c := range []struct {
		page, marker, pattern string
		want                  []string
		part                  bool // it lists some
	}{
		{"architecture.md", "map", `(?m)^([\w/-]+)/ {2,}\S`, folders(t), false},
		{"process.md", "job types", "(?m)^\\| `([a-z-]+)`(?: \\([^)]*\\), `([a-z-]+)`)?", jobTypes(t), false},
		{"process.md", "outputs", "(?m)^\\| `(\\w+)`(?:, `(\\w+)`)?", outputs(t), false},
		{"../CONTRIBUTING.md", "make", "(?m)^\\| `make ([a-z]+)`", found(testkit.Read(t, "../Makefile"), `(?m)^([a-z]+):.* ## `), true},
		{"resolutions.md", "resolutions", `(?m)^\| (R\d+) `, numbered("R", 37), false},
	} {
		listed := found(section(t, c.page, c.marker), c.pattern)
		for _, name := range c.want {
			if !c.part && !slices.Contains(listed, name) {
				t.Errorf("%s does not list %s", c.page, name)
			}
		}
		for _, name := range listed {
			if !slices.Contains(c.want, name) {
				t.Errorf("%s lists %s, which is not there", c.page, name)
			}
		}
	}
}

// found returns what the groups of a pattern match in a text.
func found(text, pattern string) (names []string) {
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		for _, name := range match[1:] {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

func folders(t *testing.T) []string {
	t.Helper()
	names := []string{"cmd/retry-worker", "bpmn", "e2e", "bench", "scripts", "tools", "deploy", "docs"}
	packages, err := filepath.Glob("../internal/*")
	testkit.Must(t, err)
	for _, folder := range packages {
		names = append(names, strings.TrimPrefix(filepath.ToSlash(folder), "../"))
	}
	return names
}

func jobTypes(t *testing.T) (all []string) {
	t.Helper()
	templates, err := filepath.Glob("../bpmn/element-templates/*.json")
	testkit.Must(t, err)
	for _, file := range templates {
		all = append(all, strings.TrimSuffix(filepath.Base(file), ".json"))
	}
	return all
}

// outputs returns the variables that the element templates take from their tasks.
func outputs(t *testing.T) (all []string) {
	t.Helper()
	for _, jobType := range jobTypes(t) {
		all = append(all, found(testkit.Read(t, "../bpmn/element-templates/"+jobType+".json"), `"source": "=(\w+)"`)...)
	}
	return all
}

func numbered(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, prefix+strconv.Itoa(i+1))
	}
	return names
}

// TestPagesNameFilesThatExist, from the root or from internal/.
func TestPagesNameFilesThatExist(t *testing.T) {
	for _, page := range pages(t) {
		for _, file := range found(testkit.Read(t, page), "`([\\w-]+/[\\w/.-]+\\.(?:go|yaml|json|bpmn|sql))`") {
			_, atRoot := os.Stat(filepath.Join("..", file))
			_, inside := os.Stat(filepath.Join("../internal", file))
			if atRoot != nil && inside != nil {
				t.Errorf("%s names %s, which is not there", page, file)
			}
		}
	}
}

// TestReadmeDecidesAsItSays holds the README's table against the built-in catalogue: each code, and each example.
func TestReadmeDecidesAsItSays(t *testing.T) {
	p := catalogue.Default().Policies[decision.DefaultPolicy]
	rows := regexp.MustCompile(`(?m)^\| ([^|-][^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*)\|$`).FindAllStringSubmatch(section(t, "../README.md", "decisions"), -1)
	if len(rows) < 9 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows[1:] {
		count, _ := strconv.Atoi(strings.Join(found(row[2], `retryCount. (\d+)`), ""))
		id := append(found(row[2], "`([^`]*)` as `claimId`"), "CLM-001-1234567890")[0]
		examples := append(found(row[1], `\b([A-Z]+_[A-Z_]+|TIMEOUT|50\d)\b`), found(row[2], "^`([^`]*)`")...)
		if len(examples) == 0 {
			examples = []string{""}
		}
		want := found(row[3], "`([A-Z_]+)`")
		if len(want) == 0 {
			want = []string{string(decision.Rejected)}
		}
		for _, example := range examples {
			for i, outcome := range want { // at one count after another
				f, rejection := p.Read(decision.Variables{
					ID: decision.Text(id), Error: decision.Text(example), RetryCount: decision.Value(strconv.Itoa(count + i)),
				})
				d := decision.Decision{Outcome: decision.Rejected}
				if rejection == nil {
					d = decision.Decide(&f, p, decision.Past{}, time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC))
				}
				if string(d.Outcome) != outcome || i == len(want)-1 && string(d.Team) != strings.TrimSpace(row[4]) {
					t.Errorf("%q at retryCount %d: %s, %s; README.md says %s, %s", example, count+i, d.Outcome, d.Team, outcome, row[4])
				}
			}
		}
	}
}

// rule is an alert, or a recording, of deploy/prometheus.
type rule struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

// rules returns the rules of one file, or of all.
func rules(t *testing.T, pattern string) (all []rule) {
	t.Helper()
	files, err := filepath.Glob("../deploy/prometheus/" + pattern)
	testkit.Must(t, err)
	for _, file := range files {
		var content struct {
			Groups []struct{ Rules []rule }
		}
		testkit.Must(t, yaml.Unmarshal([]byte(testkit.Read(t, file)), &content))
		for _, group := range content.Groups {
			all = append(all, group.Rules...)
		}
	}
	return all
}

// TestRunbooksFitTheirAlerts: an alert links to its section, which says how bad it is.
func TestRunbooksFitTheirAlerts(t *testing.T) {
	page := testkit.Read(t, "runbooks.md")
	for _, heading := range found(page, `(?m)^## (\w+)$`) {
		if !slices.ContainsFunc(rules(t, "*.rules.yaml"), func(r rule) bool { return r.Alert == heading }) {
			t.Errorf("docs/runbooks.md has a section of %s, which is no alert", heading)
		}
	}
	for _, r := range rules(t, "*.rules.yaml") {
		if r.Alert == "" {
			continue
		}
		if want := "docs/runbooks.md#" + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, expected %s", r.Alert, r.Annotations["runbook_url"], want)
		}
		_, text, _ := strings.Cut(page, "\n## "+r.Alert+"\n\n")
		if severity := r.Labels["severity"]; !strings.HasPrefix(strings.ToLower(text), "**"+severity) {
			t.Errorf("docs/runbooks.md does not say of %s that it is %s", r.Alert, severity)
		}
	}
}

// TestAlertIsTheConsoles: the banner of the console and the alert speak of the same number (TRD-0003).
func TestAlertIsTheConsoles(t *testing.T) {
	first := rules(t, "dead-letters.rules.yaml")[0]
	want := "> " + strconv.Itoa(deadletter.AlertAbove)
	if !strings.HasSuffix(first.Expr, want) {
		t.Errorf("%s is raised at %s, want %s", first.Alert, first.Expr, want)
	}
}

// TestReleaseHasOneVersion: scripts/release takes it from the chart.
func TestReleaseHasOneVersion(t *testing.T) {
	chart, log := testkit.Read(t, "../deploy/helm/retry-worker/Chart.yaml"), testkit.Read(t, "../CHANGELOG.md")
	all := found(chart, `(?m)^(?:v|appV)ersion: "?([^"\s]+)`)
	if all = append(all, found(log, `(?m)^## (\S+)`)[0]); len(all) != 3 || len(slices.Compact(all)) != 1 {
		t.Errorf("chart, image and changelog have the versions %q, expected one", all)
	}
}

// TestLinksLeadSomewhere follows the relative links of all pages, anchors included.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		for _, link := range found(testkit.Read(t, page), `\]\(([^):]+)\)`) {
			file, anchor, _ := strings.Cut(link, "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil || anchor != "" && !slices.Contains(anchors(testkit.Read(t, target)), anchor) {
				t.Errorf("%s links to %s, which is not there", page, link)
			}
		}
	}
}

// pages returns the files of all documents.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{"../README.md", "../CHANGELOG.md", "../CONTRIBUTING.md", "../SECURITY.md", "../deploy/helm/retry-worker/README.md"}
	more, err := filepath.Glob("*.md")
	testkit.Must(t, err)
	return append(all, more...)
}

// anchors returns what the headings of a page can be linked by.
func anchors(text string) (all []string) {
	for _, heading := range found(text, `(?m)^#+ (.*)$`) {
		plain := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading), "")
		all = append(all, strings.ReplaceAll(plain, " ", "-"))
	}
	return all
}
