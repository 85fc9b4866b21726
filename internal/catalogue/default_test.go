package catalogue

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/destination"
	"retry-worker/internal/testkit/golden"
	"retry-worker/internal/text"
)

func TestDefaultIsTheContracts(t *testing.T) {
	c := Default()
	want := []string{"failed-job", "job-queue", "no-retry", "tiss-submission", "whatsapp-message"}
	if got := c.Policies.Names(); !slices.Equal(got, want) {
		t.Errorf("policies %q, want %q", got, want)
	}
	for _, name := range []decision.Team{"cadastro", "faturamento", "ti", "atendimento"} { // R21, TRD-0003
		if c.Teams[name].Description == "" {
			t.Errorf("the team %s is not described", name)
		}
	}
	if c.Source != "built-in" || !regexp.MustCompile("^[0-9a-f]{12}$").MatchString(c.Version) || !bytes.Equal(c.Effective(), defaultYAML) {
		t.Errorf("source %q, version %q, %d bytes of YAML", c.Source, c.Version, len(c.Effective()))
	}
	for name, p := range c.Policies {
		if p.Catalogue != c.Version || p.Name != name || p.Description == "" {
			t.Errorf("%s is %q of catalogue %s, %q", name, p.Name, p.Catalogue, p.Description)
		}
		if (name == "tiss-submission") != (p.InvalidID == decision.InvalidClaimID) {
			t.Errorf("%s rejects ids by %s", name, p.InvalidID)
		}
	}
}

// TestDefaultTISSIsTheRules: tiss-submission is the business rules' policy, whose rules come first in each class; what
// else it knows comes behind.
func TestDefaultTISSIsTheRules(t *testing.T) {
	got, want := *Default().Policies["tiss-submission"], *decisiontest.TISSSubmission()
	gotRules, wantRules := got.Rules.Rules(), want.Rules.Rules()
	for _, class := range []decision.ErrorClassification{decision.Permanent, decision.Transient} {
		g, w := rulesOf(gotRules, class), rulesOf(wantRules, class)
		if len(g) < len(w) {
			t.Fatalf("%d %s rules, want at least %d", len(g), class, len(w))
		}
		for i := range w {
			if class == decision.Permanent && g[i].Hint.String() == "" {
				t.Errorf("%s tells nobody what to correct", g[i].Name)
			}
			g[i].Hint, g[i].Matches, g[i].Not = text.Translated{}, nil, nil
		}
		if diff := gocmp.Diff(w, g[:len(w)]); diff != "" {
			t.Errorf("the first %s rules are not the specification's (-want +got):\n%s", class, diff)
		}
	}
	want.UnknownError = decision.RetryUnknown // what its zero value means
	got.Rules, want.Rules, got.Destinations = nil, nil, want.Destinations
	got.Description, got.Catalogue = "", ""
	if diff := gocmp.Diff(want, got, gocmp.Comparer(func(a, b *regexp.Regexp) bool { return a.String() == b.String() })); diff != "" {
		t.Errorf("the policy differs (-want +got):\n%s", diff)
	}
}

func rulesOf(rules []classify.Rule, class decision.ErrorClassification) []classify.Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r classify.Rule) bool { return r.Class != class })
}

// TestShipped holds testdata/shipped.txt: what the shipped policies make of texts and ids.
func TestShipped(t *testing.T) {
	makes := map[string]func(p *decision.Policy, given string) string{"answers": answers, "rules": ruleOf, "ids": takes, "tells": tells}
	for _, lines := range golden.Cases(t, "testdata/shipped.txt") {
		kind, policy, _ := strings.Cut(lines[0], " ")
		for _, line := range lines[1:] {
			given, want, _ := strings.Cut(line, " -> ")
			if got := makes[kind](Default().Policies[policy], given); got != want {
				t.Errorf("%s: %q is %s, want %s", lines[0], given, got, want)
			}
		}
	}
}

// answers are the outcomes of an error the first time and the second, with the reason and the team of the end.
func answers(p *decision.Policy, given string) string {
	id := map[string]decision.Value{"tiss-submission": `"CLM-001-123"`}[p.Name]
	var said []string
	for _, count := range []decision.Value{"0", "1"} {
		f, _ := p.Read(decision.Variables{ID: cmp.Or(id, `"m1"`), Error: decision.Text(given), RetryCount: count})
		d := decision.Decide(&f, p, decision.Past{}, time.Unix(1.7e9, 0))
		if said = append(said, string(d.Outcome)); count == "1" && d.Team != "" {
			said[1] += fmt.Sprintf(" %s for %s", d.Reason, d.Team)
		}
	}
	return strings.Join(said, ", ")
}

// ruleOf is how a text is classified, by the status that stands before it, if any.
func ruleOf(p *decision.Policy, given string) string {
	status, text := 0, given
	if before, after, is := strings.Cut(given, ": "); is {
		status, _ = strconv.Atoi(before)
		text = after
	}
	m := p.Rules.Classify(text, status)
	said := fmt.Sprintf("%s %s", m.Class, m.Reason)
	if m.Name != "" {
		said += " by " + m.Name
	}
	if m.Team != "" {
		said += " for " + string(m.Team)
	}
	if m.Hint != "" {
		said += ", with a hint"
	}
	return said
}

// takes says whether an id is taken, or what is wrong with how it is refused.
func takes(p *decision.Policy, given string) string {
	_, rejection := p.Read(decision.Variables{ID: decision.Text(given), Error: `"x"`})
	switch {
	case rejection == nil:
		return "taken"
	case rejection.Code == p.InvalidID:
		return "refused"
	default:
		return rejection.Error()
	}
}

// tells is what a text tells of its destination.
func tells(p *decision.Policy, given string) string {
	m := p.Rules.Classify(given, 0)
	return cmp.Or(string(destination.TellsOf(&m, 0)), "nothing")
}
