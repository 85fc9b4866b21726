package catalogue

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
)

// The tests of this file hold docs/policies.md, and the example that it names, against the program.

func readDocs(t *testing.T) string { return readFile(t, "../../docs/policies.md") }

func readFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	mustDo(t, err)
	return string(content)
}

// rows of the table in text whose head is this, each by its cells.
func rows(t *testing.T, text, head string) [][]string {
	t.Helper()
	_, behind, found := strings.Cut(text, head+"\n")
	if !found {
		t.Fatalf("no table %q", head)
	}
	var table [][]string
	for i, line := range strings.Split(behind, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if i == 0 {
			continue // the line below the head
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for j := range cells {
			cells[j] = strings.Trim(cells[j], " `")
		}
		table = append(table, cells)
	}
	return table
}

func exampleFile(t *testing.T) *Catalogue {
	t.Helper()
	c, err := Load("../../docs/examples/http-api.yaml")
	mustDo(t, err)
	return c
}

func TestExampleDecidesAsItShould(t *testing.T) {
	table := rows(t, readFile(t, "testdata/http-api.md"), "| error | httpStatus | outcome | matched rule | reason | team |")
	if len(table) < 10 {
		t.Fatalf("%d errors", len(table))
	}
	p := exampleFile(t).Policies["eligibility-api"]
	for _, cells := range table {
		v := decision.Variables{ID: decision.Text("REQ-000123"), Error: decision.Text(cells[0]), HTTPStatus: decision.Value(cells[1])}
		f, rejection := p.Read(v)
		if rejection != nil {
			t.Errorf("%s: %v", cells[0], rejection)
			continue
		}
		d := decision.Decide(&f, p, decision.Past{}, time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC))
		team := string(d.Team)
		if got := []string{string(d.Outcome), d.MatchedRule, string(d.Reason), team}; !slices.Equal(got, cells[2:]) {
			t.Errorf("%s with %q: %q, testdata/http-api.md says %q", cells[0], cells[1], got, cells[2:])
		}
	}
	// Every rule of the example is shown.
	for _, r := range p.Rules.Rules() {
		shown := slices.ContainsFunc(table, func(cells []string) bool { return cells[3] == r.Name })
		if !shown {
			t.Errorf("no error of the table shows the rule %s", r.Name)
		}
	}
}

// TestDocumentNamesEverything: each key of the format, each reason, and each limit.
func TestDocumentNamesEverything(t *testing.T) {
	text := readDocs(t)
	var schema struct {
		Properties map[string]any
		Defs       map[string]struct{ Properties map[string]any } `json:"$defs"`
	}
	mustDo(t, json.Unmarshal(Schema(), &schema))
	all := []map[string]any{schema.Properties}
	for _, def := range schema.Defs {
		all = append(all, def.Properties)
	}
	for _, properties := range all {
		for key := range properties {
			if !strings.Contains(text, "`"+key+"`") {
				t.Errorf("the key %s is not explained", key)
			}
		}
	}
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,.\n", r) })
	for _, r := range decision.RuleReasons() {
		if !slices.Contains(words, string(r)) {
			t.Errorf("the reason %s is not listed", r)
		}
	}
}
