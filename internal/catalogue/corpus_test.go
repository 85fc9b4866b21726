package catalogue

import (
	"os"
	"strings"
	"testing"

	"retry-worker/internal/decision"
)

// maxBuiltIn of the built-in catalogue in bytes: it can be read in ten minutes.
const maxBuiltIn = 20_000

func TestBuiltInIsShort(t *testing.T) {
	if n := len(defaultYAML); n > maxBuiltIn {
		t.Errorf("%d bytes, want at most %d", n, maxBuiltIn)
	}
}

// kindOf is what a text is taken for: a class in lower case, or presumed.
func kindOf(p *decision.Policy, text string) string {
	m := p.Rules.Classify(text, 0)
	if m.Presumed() {
		return "presumed"
	}
	return strings.ToLower(string(m.Class))
}

// TestCorpus holds the shipped tiss-submission against labelled texts. What the first line says of them is their form.
func TestCorpus(t *testing.T) {
	content, err := os.ReadFile("testdata/corpus.txt")
	mustDo(t, err)
	p := Default().Policies[decision.DefaultPolicy]
	for i, line := range strings.Split(strings.TrimSpace(string(content)), "\n")[1:] {
		want, text, _ := strings.Cut(line, " ")
		text = strings.ReplaceAll(text, " ⏎ ", "\n")
		if got := kindOf(p, text); got != want {
			m := p.Rules.Classify(text, 0)
			t.Errorf("line %d: %s by %s at %q, want %s: %q", i+2, got, m.Name, m.Text, want, text)
		}
	}
}

// TestSpecifiedCodes: every code of RN-BIL-005 and RN-BIL-004 has its class and is its own reason, however R3 lets it
// be written, and whatever stands around it.
func TestSpecifiedCodes(t *testing.T) {
	rules := Default().Policies[decision.DefaultPolicy].Rules
	for class, codes := range map[decision.ErrorClassification][]string{
		decision.Permanent: {"INVALID_PATIENT_DATA", "INSURANCE_EXPIRED", "AUTHORIZATION_DENIED", "DUPLICATE_CLAIM", "INVALID_PROCEDURE_CODE"},
		decision.Transient: {"TIMEOUT", "CONNECTION_ERROR", "SERVICE_UNAVAILABLE", "NETWORK_ERROR", "TEMPORARY_ERROR", "RATE_LIMIT", "SERVER_ERROR", "503", "504"},
	} {
		for _, code := range codes {
			for _, message := range spellings(code) {
				m := rules.Classify(message, 0)
				if m.Class != class || m.Name != code || string(m.Reason) != code {
					t.Errorf("%q is %s by %s, reason %s, expected %s by %s", message, m.Class, m.Name, m.Reason, class, code)
				}
			}
		}
	}
}

// spellings are ways to write a code that R3 takes for the same.
func spellings(code string) []string {
	if strings.Trim(code, "0123456789") == "" {
		return []string{code, "HTTP " + code, "status=" + code, "[" + code + "]", code + ", later", "x" + code, "protocol 15037 ended " + code + ".", "R$ 1.504,00: " + code}
	}
	words := strings.Split(strings.ToLower(code), "_")
	title := make([]string, len(words))
	for i, w := range words {
		title[i] = strings.ToUpper(w[:1]) + w[1:]
	}
	var all []string
	for _, form := range []string{
		code, strings.ToLower(code), strings.Join(title, " "), strings.Join(words, "-"), strings.Join(words, "."), strings.Join(words, " / "),
		strings.Join(words, "__"), strings.Join(words, "\n\t"), strings.Join(title, "_"), strings.Join(words, "ç"),
	} {
		all = append(all, form, "Portal: "+form+" (lote 15037)", "X"+form+"S", "["+form+"]", "CPF 503.504.111-22 "+form)
	}
	return all
}

// TestHints: whoever gets a dead letter is told what to correct, in one sentence, and by whom.
func TestHints(t *testing.T) {
	for _, r := range Default().Policies[decision.DefaultPolicy].Rules.Rules() {
		if r.Class == decision.Permanent && (r.Team == "" || len(r.Hint.String()) < 40 || !strings.HasSuffix(r.Hint.String(), ".")) {
			t.Errorf("%s: team %q, hint %q, expected both, and a sentence", r.Name, r.Team, r.Hint)
		}
	}
}
