package classify_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/classify"
)

// byKind has a rule of each kind of matcher, in the order of their strength, with a message that it matches.
var byKind = []struct {
	message string
	rule    classify.Rule
}{
	{"DUPLICATE-claim", classify.Rule{Class: classify.Permanent, Rank: classify.SpecifiedPermanent, Codes: []string{"DUPLICATE_CLAIM"}}},
	{"glosa 1308", classify.Rule{Class: classify.Permanent, Rank: classify.Refusal, TISSCodes: []string{"1308", "50xx"}}},
	{"LoginInvalido", classify.Rule{Class: classify.Permanent, Rank: classify.Refusal, TISSFaults: []string{"LoginInvalido"}}},
	{"SocketTimeoutException", classify.Rule{Class: classify.Transient, Rank: classify.SpecifiedTransient, Codes: []string{"503", "TIMEOUT"}}},
	{"PKIX path building failed", classify.Rule{Class: classify.Permanent, Phrases: []string{"pkix path building failed"}}},
	{"connection was refused by a.b", classify.Rule{Class: classify.Transient, Patterns: []string{`connection was refused by [a-z.]{1,40}`}}},
	{"HTTP 418", classify.Rule{Class: classify.Transient, Statuses: []string{"418"}}},
	{"não autorizada", classify.Rule{Class: classify.Permanent, Rank: classify.Refusal, Approvals: []string{"autorizad*"}}},
	{"CPF inválido", classify.Rule{Class: classify.Permanent, Rank: classify.Refusal, Things: []string{"cpf"}}},
	{"portal fora do ar", classify.Rule{Class: classify.Transient, Rank: classify.PassingFault, Phrases: []string{"fora do ar"}, Statuses: []string{"5xx"}}},
}

var words = classify.Vocabulary{Refusals: []string{"invalid*", "recusad*"}, Approvals: []string{"encontrad*"}, Bystanders: []string{"conexao", "host"}}

// everything returns a classifier of all kinds, not given in the order of their strength. A rule's name is its message.
func everything(t *testing.T) *classify.Classifier {
	t.Helper()
	var rules []classify.Rule
	for _, k := range byKind {
		k.rule.Name, k.rule.Reason = k.message, "UNKNOWN"
		rules = append(rules, k.rule)
	}
	rules[0], rules[3] = rules[3], rules[0] // only those of one rank count in their order
	return classify.New(rules, words)
}

// winner returns the name of the kind that a message is matched by.
func winner(c *classify.Classifier, message string) string {
	m := c.Classify(message, 0)
	for _, k := range byKind {
		if slices.Contains(k.rule.Codes, m.Name) {
			return k.message
		}
	}
	return m.Name
}

// TestStrongestEvidenceDecides: of two kinds in one text the one of the stronger rank, whichever stands first; and the
// text that is told is the message's own.
func TestStrongestEvidenceDecides(t *testing.T) {
	c := everything(t)
	for i, strong := range byKind {
		if got := winner(c, strong.message); got != strong.message {
			t.Errorf("%q alone is matched by %q", strong.message, got)
		}
		for _, weak := range byKind[i+1:] {
			for _, message := range []string{strong.message + "; " + weak.message, weak.message + "; " + strong.message} {
				if got := winner(c, message); got != strong.message {
					t.Errorf("%q is matched by %q, want %q", message, got, strong.message)
				}
			}
		}
	}
}

// TestFirstRuleDecides: of two rules alike the first one, which is the first of all.
func TestFirstRuleDecides(t *testing.T) {
	for _, k := range byKind {
		k.rule.Name, k.rule.Reason = "of both", "first"
		second := k.rule
		second.Reason = "second"
		c := classify.New([]classify.Rule{k.rule, second}, words)
		for _, message := range append(k.rule.Codes, k.message) {
			if m := c.Classify(message, 0); m.Reason != "first" {
				t.Errorf("%q is matched by the rule %q", message, m.Reason)
			}
		}
		if m := c.Classify("", 418); k.rule.Statuses != nil && k.rule.Phrases == nil && m.Reason != "first" {
			t.Errorf("a status is matched by the rule %q", m.Reason)
		}
	}
	all, presumed := everything(t).Rules(), []string(nil)
	for _, r := range all {
		if r.Presumed() {
			presumed = append(presumed, r.Name)
		}
	}
	if want := []string{"glosa 1308", "LoginInvalido", "não autorizada", "CPF inválido"}; all[0].Name != "DUPLICATE-claim" || !slices.Equal(presumed, want) {
		t.Errorf("%q is first, %q presume", all[0].Name, presumed)
	}
}

// TestWhatIsSaid: negation, the thing that is refused, the last of several tries, numbers in their context.
func TestWhatIsSaid(t *testing.T) {
	c := everything(t)
	for _, tt := range []struct{ message, rule, text string }{
		{"CPF do beneficiário INVÁLIDO.", "CPF inválido", "CPF do beneficiário INVÁLIDO"},
		{"cpf inv&aacute;lido", "CPF inválido", "cpf inv&aacute;lido"},
		{`CPF inv\u00e1lido`, "CPF inválido", `CPF inv\u00e1lido`},
		{"CPF não encontrado", "CPF inválido", ""},
		{"não foi autorizada", "não autorizada", "autorizada"},
		{"autorizada", "", ""},
		{"o CPF não é inválido", "", ""},
		{"nenhum CPF inválido", "", ""},
		{"cpf encontrado", "", ""},
		{"CPF. Argumento inválido", "", ""},          // another sentence
		{"conexão recusada ao enviar o CPF", "", ""}, // the nearest thing is a bystander
		{"inválido", "", ""},                         // one word alone
		{"o portal não está fora do ar", "", ""},     // negated
		{"o portal não está fora do ar: TIMEOUT", "SocketTimeoutException", "TIMEOUT"},
		{"não houve TIMEOUT", "SocketTimeoutException", "TIMEOUT"}, // R3 knows no negation
		{"tentativa 1: HTTP 418; tentativa 2: HTTP 500", "portal fora do ar", "500"},
		{"tentativa 1: HTTP 500; tentativa 2: HTTP 418", "HTTP 418", "418"},
		{"attempt 1: HTTP 503; attempt 2: DUPLICATE_CLAIM", "DUPLICATE-claim", "DUPLICATE_CLAIM"},
		{"DuplicateClaimException", "DUPLICATE-claim", "DuplicateClaimException"},
		{"DuplicateClaimFilter", "", ""},
		{"glosas 9999 e 1308", "glosa 1308", "1308"},
		{"<ans:codigoGlosa>5014</ans:codigoGlosa>", "glosa 1308", "5014"},
		{"valor da glosa: 1308", "", ""},
		{"fila 1308", "", ""},
		{"LoginInvalidoFilter", "", ""},
		{"lote 418", "", ""},
		{"418 guias", "", ""},
		{"attempt 1: DUPLICATE_CLAIM; attempt 2: HTTP 418", "DUPLICATE-claim", "DUPLICATE_CLAIM"},
		{"CPF recusado, inválido", "CPF inválido", "CPF recusado"},
		{"inválido, recusado o CPF", "CPF inválido", "inválido, recusado o CPF"},
		{"CPF do CPF inválido", "CPF inválido", "CPF do CPF inválido"},
	} {
		m := c.Classify(tt.message, 0)
		if got := winner(c, tt.message); got != tt.rule || tt.text != "" && m.Text != tt.text {
			t.Errorf("%q is matched by %q at %q, want %q at %q", tt.message, got, m.Text, tt.rule, tt.text)
		}
	}
}

// TestStatusBesideTheText is believed, and a number in the text then is none.
func TestStatusBesideTheText(t *testing.T) {
	c := everything(t)
	for _, tt := range []struct {
		message string
		status  int
		rule    string
	}{
		{"", 418, "HTTP 418"}, {"HTTP 418", 502, "portal fora do ar"}, {"HTTP 418", 404, ""}, {"CPF inválido", 418, "HTTP 418"}, {"DUPLICATE_CLAIM", 418, "DUPLICATE-claim"},
	} {
		if m := c.Classify(tt.message, tt.status); m.Name != tt.rule && m.Name != "DUPLICATE_CLAIM" {
			t.Errorf("%q with %d is matched by %q, want %q", tt.message, tt.status, m.Name, tt.rule)
		}
	}
}

// TestExplain: all that was found, what decided first, the others each with why it lost.
func TestExplain(t *testing.T) {
	for message, want := range map[string][]string{
		"Portal fora do ar; o CPF não é inválido; TIMEOUT": {`3 "TIMEOUT" `, `6 "fora do ar" weaker than a specified transient code`, `5 "inválido" negated`},
		"não autorizada; CPF inválido":                     {`5 "autorizada" `, `5 "CPF inválido" an earlier rule of the same rank matched`},
	} {
		var got []string
		for _, f := range everything(t).Explain(message, 0) {
			got = append(got, fmt.Sprintf("%d %q %s", f.Rank, f.Text, f.Lost))
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// TestNoRules: what knows nothing says so.
func TestNoRules(t *testing.T) {
	for name, c := range map[string]*classify.Classifier{"nil": nil, "empty": classify.New(nil, classify.Vocabulary{})} {
		if m := c.Classify("TIMEOUT 503", 503); m != classify.NoMatch || len(c.Rules())+len(c.Explain("TIMEOUT", 0)) != 0 {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

// TestItemsThatAreRefused: each with what was expected. The catalogue says where it stands.
func TestItemsThatAreRefused(t *testing.T) {
	const (
		phrase  = "words of together at least 2 letters; only the last may end in *"
		bound   = "a bound such as {0,40}"
		foreign = "letters without accents, as messages are compared with it"
		re2     = "a regular expression as RE2 reads them"
		some    = "a pattern that matches some text"
	)
	for key, items := range map[string]map[string]string{ // the item, and what is expected
		"phrases": {
			"!!!!": phrase, "*": phrase, "a*b cdef": phrase, "tempo**": phrase, "- . -": phrase, "a": phrase, "ab": "", "nao autoriz*": "",
		},
		"tissFaults": {"!!!!": phrase}, "things": {"*": phrase}, "refusals": {"*": phrase}, "approvals": {"*": phrase}, "bystanders": {"*": phrase},
		"patterns": {
			`erro.*fatal`: bound, `erro+ fatal`: bound, `erro{2,} fatal`: bound, `fatal (?:a(?:b*)c)`: bound,
			`É fatal`: foreign, `não foi`: foreign, "fatal\n": foreign, `fatal(`: re2, `(?=fatal)`: re2, `\1fatal`: re2, `a{0,3}`: some,
			`fatal (?:[a-z]{1,200} [a-z]{1,200}){1,5}`: "one of at most 4000 steps",
			`fatal~`: "", `(?i)Fatal~`: "", `fatal a{0}`: "", `(?:[a-z]{1,200} ){5}`: "",
		},
	} {
		all := append(new(classify.Rule).Lists(), new(classify.Vocabulary).Lists()...)
		list := all[slices.IndexFunc(all, func(l classify.List) bool { return l.Key == key })]
		for item, want := range items {
			got := ""
			if err := list.Check(item); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("%s %q: expected is %q, want %q", key, item, got, want)
			}
		}
	}
}

// TestFarBehind: codes and words are found wherever they stand, patterns in the first 64 kB.
func TestFarBehind(t *testing.T) {
	c := everything(t)
	for _, filler := range []string{"x ", "ã ", "&amp; "} {
		far := strings.Repeat(filler, 40_000)
		for _, k := range byKind {
			want := k.message
			if k.rule.Patterns != nil {
				want = ""
			}
			if got := winner(c, far+"; "+k.message); got != want {
				t.Errorf("%q behind 80 kB of %q is matched by %q, want %q", k.message, filler, got, want)
			}
		}
	}
}

// hostile are pieces of which a message may be made to keep the classifier busy: nothing of it is ever matched.
var hostile = []string{"&", "&#x;&a;", `\u`, "Ã", "\u0301", "\xff", "501 ", "503-", "(501 ", "guia 1308 ", "9999, ", "<a>1308", "DUPLICATE_CLAI ",
	"pkix path building ", "cpf ", "invalido ", "conexao recusada ", "cpf conexao invalido ", "nao ", "connection was refused by "}

// TestHostileMessagesCostLinearMemory: four times the message allocates about four times as much.
func TestHostileMessagesCostLinearMemory(t *testing.T) {
	c := everything(t)
	for _, piece := range hostile {
		short, long := strings.Repeat(piece, 1<<16/len(piece)), strings.Repeat(piece, 1<<18/len(piece))
		small, large := allocated(c, short), allocated(c, long)
		if large > 6*small+1<<17 {
			t.Errorf("%q: %d bytes for 64 kB, %d for 256 kB", piece, small, large)
		}
	}
}

func allocated(c *classify.Classifier, message string) uint64 {
	var before, after runtime.MemStats
	runtime.GC() // twice empties the pools: what they keep would hide the cost of one message only
	runtime.GC()
	runtime.ReadMemStats(&before)
	c.Classify(message, 0)
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
