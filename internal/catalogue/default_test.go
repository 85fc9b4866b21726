package catalogue

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/destination"
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
		if diff := cmp.Diff(w, g[:len(w)]); diff != "" {
			t.Errorf("the first %s rules are not the specification's (-want +got):\n%s", class, diff)
		}
	}
	want.UnknownError = decision.RetryUnknown // what its zero value means
	got.Rules, want.Rules, got.Destinations = nil, nil, want.Destinations
	got.Description, got.Catalogue = "", ""
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *regexp.Regexp) bool { return a.String() == b.String() })); diff != "" {
		t.Errorf("the policy differs (-want +got):\n%s", diff)
	}
}

func rulesOf(rules []classify.Rule, class decision.ErrorClassification) []classify.Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r classify.Rule) bool { return r.Class != class })
}

func TestDefaultIDs(t *testing.T) {
	for _, tt := range []struct {
		policy, id string
		ok         bool
	}{
		{"tiss-submission", "CLM-001-123", true}, {"tiss-submission", "clm-001-123", false}, {"tiss-submission", "CLM-123", false},
		{"whatsapp-message", "m", true}, {"whatsapp-message", "5511900000000@s.whatsapp.net/3EB0 é", true},
		{"whatsapp-message", "", false}, {"whatsapp-message", "a\nb", false}, {"whatsapp-message", "a\u2028b", false}, {"whatsapp-message", "a\u200bb", false},
		{"failed-job", "123e4567-e89b-12d3-a456-426614174000", true}, {"failed-job", strings.Repeat("j", 512), true},
		{"failed-job", strings.Repeat("j", 513), false}, {"job-queue", "\x7f", false}, {"job-queue", "job 1", true}, {"no-retry", "1", true},
	} {
		p := Default().Policies[tt.policy]
		_, rejection := p.Read(decision.Variables{ID: decision.Text(tt.id), Error: decision.Text("x")})
		if ok := rejection == nil; ok != tt.ok || !ok && rejection.Code != p.InvalidID {
			t.Errorf("%s: id %.40q: %v, want it taken: %v", tt.policy, tt.id, rejection, tt.ok)
		}
	}
}

// TestDefaultWhatsApp: TRD-0003's table, by the variable and by the text.
func TestDefaultWhatsApp(t *testing.T) {
	rules := Default().Policies["whatsapp-message"].Rules
	for _, tt := range []struct {
		text   string
		status int
		class  decision.ErrorClassification
		rule   string
		reason decision.Reason
	}{
		{"Bad Request", 400, decision.Permanent, "http-400", "INVALID_REQUEST"},
		{"Request failed with status code 404", 0, decision.Permanent, "http-404", "NOT_FOUND"},
		{"404 Not Found", 0, decision.Permanent, "http-404", "NOT_FOUND"},
		{"", 429, decision.Transient, "http-429", "RATE_LIMIT"},
		{"x", 500, decision.Transient, "http-5xx", "SERVER_ERROR"},
		{"x", 502, decision.Transient, "http-5xx", "SERVER_ERROR"},
		{"HTTP 503", 0, decision.Transient, "http-503", "SERVICE_UNAVAILABLE"},
		{"500 Internal Server Error", 0, decision.Transient, "http-5xx", "SERVER_ERROR"},
		{"502 Bad Gateway", 0, decision.Transient, "http-5xx", "SERVER_ERROR"},
		{"503 Service Unavailable", 0, decision.Transient, "http-503", "SERVICE_UNAVAILABLE"},
		{"504 Gateway Timeout", 0, decision.Transient, "TIMEOUT", "TIMEOUT"},
		{"x", 504, decision.Transient, "http-504", "TIMEOUT"},
		{"timeout of 30000ms exceeded", 0, decision.Transient, "TIMEOUT", "TIMEOUT"},
		{"connect ETIMEDOUT 10.0.0.7:8080", 0, decision.Transient, "ETIMEDOUT", "TIMEOUT"},
		{"request timed out", 0, decision.Transient, "TIMED_OUT", "TIMEOUT"},
		{"timeout after HTTP 404", 0, decision.Permanent, "http-404", "NOT_FOUND"}, // R2
		{"message 404 of 500", 0, decision.Unknown, "", "UNKNOWN"},
		{"I'm a teapot", 418, decision.Unknown, "", "UNKNOWN"},
		{"Unauthorized", 401, decision.Unknown, "", "UNKNOWN"},
		{"connect ECONNREFUSED", 0, decision.Unknown, "", "UNKNOWN"},
	} {
		if m := rules.Classify(tt.text, tt.status); m.Class != tt.class || m.Name != tt.rule || m.Reason != tt.reason {
			t.Errorf("%q with %d is %s by %q for %s, want %s by %q for %s", tt.text, tt.status, m.Class, m.Name, m.Reason, tt.class, tt.rule, tt.reason)
		} else if m.Class == decision.Permanent && (m.Team != "atendimento" || m.Hint == "") {
			t.Errorf("%q goes to %q with the hint %q", tt.text, m.Team, m.Hint)
		}
	}
}

// TestOutages: only what speaks of the portal is evidence that it is down; what may be due to the one claim, or what a
// working portal says of it, would hold all claims for its sake.
func TestOutages(t *testing.T) {
	rules := Default().Policies[decision.DefaultPolicy].Rules
	for want, texts := range map[destination.Tells][]string{
		destination.TellsFailed: {"TIMEOUT", "HTTP 503", "O portal está fora do ar. Tente novamente mais tarde.",
			"portal.example:443 failed to respond", "unexpected end of stream", "Conexão encerrada pelo servidor"},
		"": {"HTTP 500", "Erro interno ao processar a guia", "Guia em análise. Aguarde o retorno.", "Tente novamente",
			"Registro do beneficiário em uso (bloqueado), tente novamente", "Validação da carteirinha temporariamente suspensa"},
	} {
		for _, text := range texts {
			if m := rules.Classify(text, 0); destination.TellsOf(&m, 0) != want {
				t.Errorf("%q tells %q of its destination, by %s for %s", text, destination.TellsOf(&m, 0), m.Name, m.Reason)
			}
		}
	}
}
