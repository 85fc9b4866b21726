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

// TestHints: whoever gets a dead letter is told what to correct, in one sentence, and by whom.
func TestHints(t *testing.T) {
	for _, r := range Default().Policies[decision.DefaultPolicy].Rules.Rules() {
		if r.Class == decision.Permanent && (r.Team == "" || len(r.Hint.String()) < 40 || !strings.HasSuffix(r.Hint.String(), ".")) {
			t.Errorf("%s: team %q, hint %q, expected both, and a sentence", r.Name, r.Team, r.Hint)
		}
	}
}
