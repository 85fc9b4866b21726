package decision_test

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// A rule of one kind of matcher, by the name that it is found by.
func byPhrase(name string, phrases ...string) decision.Rule {
	return decision.Rule{Name: name, Class: decision.Transient, Reason: "TIMEOUT", Phrases: phrases}
}

func byStatus(name string, statuses ...string) decision.Rule {
	return decision.Rule{Name: name, Class: decision.Transient, Reason: "503", Statuses: statuses}
}

func byTISSCode(name string, codes ...string) decision.Rule {
	return decision.Rule{Name: name, Class: decision.Permanent, Reason: "CLAIM_DENIED", Team: "faturamento", TISSCodes: codes}
}

func byFault(name string, faults ...string) decision.Rule {
	return decision.Rule{Name: name, Class: decision.Permanent, Reason: "INVALID_CREDENTIALS", Team: "ti", TISSFaults: faults}
}

func byPattern(name string, patterns ...string) decision.Rule {
	return decision.Rule{Name: name, Class: decision.Transient, Reason: "NETWORK_ERROR", Patterns: patterns}
}

// example is a message, the rule that must match it ("" for none), and what it must match ("" for anything).
type example struct{ message, rule, text string }

func checkExamples(t *testing.T, c *decision.Classifier, examples []example) {
	t.Helper()
	for _, e := range examples {
		m := c.Classify(e.message, 0)
		if m.Name != e.rule || e.text != "" && m.Text != e.text {
			t.Errorf("%q is matched by %q at %q, want %q at %q", e.message, m.Name, m.Text, e.rule, e.text)
		}
	}
}

// TestManyCodesAtOnce: 1,000 random codes in one pass find what strings.Contains finds one by one, and the first of
// them in their order.
func TestManyCodesAtOnce(t *testing.T) {
	// Few letters, so that codes stand in one another and share their parts.
	letters := rapid.StringMatching(`[ABC]{1,9}(_[ABC]{1,9}){0,3}`).Filter(func(s string) bool { return len(s) >= 4 })
	codes := make([]string, 1000)
	for i := range codes {
		codes[i] = letters.Example(i)
	}
	slices.SortStableFunc(codes, func(a, b string) int { return len(b) - len(a) }) // the long ones first, or they never win
	classifiers := map[int]*decision.Classifier{}
	for from := 0; from < 1000; from += 250 {
		rules := make([]decision.Rule, 0, 1000)
		for _, code := range codes[from:] {
			rules = append(rules, decisiontest.Transient(code))
		}
		classifiers[from] = decisiontest.Rules(rules...)
	}
	text := rapid.StringMatching(`([abcABC]{1,9}[ _.é-]{0,3}){0,9}`)
	found, none := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.SampledFrom([]int{0, 250, 500, 750}).Draw(t, "from")
		classifier, codes := classifiers[from], codes[from:]
		for range 10 {
			message := text.Draw(t, "message")
			normalised := outsideAZ09.ReplaceAllString(strings.ToUpper(message), "_")
			want := ""
			if first := slices.IndexFunc(codes, func(c string) bool { return strings.Contains(normalised, c) }); first >= 0 {
				want = codes[first]
				found++
			} else {
				none++
			}
			if m := classifier.Classify(message, 0); m.Name != want {
				t.Fatalf("%q is matched by %q, want %q", message, m.Name, want)
			}
		}
	})
	t.Logf("%d messages matched, %d not", found, none)
	if found < 50 || none < 50 {
		t.Errorf("%d messages are matched and %d not: the texts are badly chosen", found, none)
	}
}

// everything has matchers of every kind that share letters and digits with R3's codes.
func everything() []decision.Rule {
	return append(slices.Clone(decisiontest.TISSSubmission().Rules.Rules()),
		byPhrase("phrases", "tempo limite", "servico indisponivel", "conexao recusada", "time out", "rate limit exceeded", "temporariamente indisponiv*"),
		byStatus("statuses", "5xx", "404"), byStatus("429", "429"),
		byTISSCode("denials", "1308", "50xx"), byFault("faults", "LoginInvalido", "SchemaInvalido"),
		byPattern("patterns", `connection (?:was )?refused by [a-z0-9.]{1,40}`, `lote [0-9]{1,9} (?:nao|ja) processado`))
}

// TestR03WithAllMatchers: rules of every other kind change nothing where a code matches, and find nothing that they
// should not.
func TestR03WithAllMatchers(t *testing.T) {
	c := decisiontest.Rules(everything()...)
	withCode := 0
	rapid.Check(t, func(t *rapid.T) {
		text := message.Draw(t, "text")
		class, code := oracleClass(text)
		m := c.Classify(text, 0)
		if code == "" || class == decision.Transient && m.Classification == decision.Permanent {
			return // another rule's part
		}
		withCode++
		if m.Name != code || m.Classification != class {
			t.Fatalf("%q is %s by %q, want %s by %q", text, m.Classification, m.Name, class, code)
		}
	})
	if withCode < 50 {
		t.Errorf("%d messages held a code", withCode)
	}
}

// TestMatchTextIsOfTheMessage: what matched stands in the message word for word, and makes the code.
func TestMatchTextIsOfTheMessage(t *testing.T) {
	c := decisiontest.Rules(everything()...)
	rapid.Check(t, func(t *rapid.T) {
		text := message.Draw(t, "before") + rapid.SampledFrom([]string{"", "", "ção ", "&ccedil;", `\u00e7`, "tempo limite", "glosa 1308"}).Draw(t, "other") + message.Draw(t, "after")
		checkMatch(t, c, text)
	})
}

type failer interface {
	Fatalf(format string, args ...any)
}

func checkMatch(t failer, c *decision.Classifier, text string) {
	m := c.Classify(text, 0)
	if !strings.Contains(text, m.Text) || (m.Text == "") != (m.Classification == decision.Unknown) {
		t.Fatalf("%q is %s by %q at %q", text, m.Classification, m.Name, m.Text)
	}
	if class, code := oracleClass(m.Text); m.Name == string(m.Reason) && (code != m.Name || class != m.Classification) {
		t.Fatalf("%q of %q is %s by %q, yet it was matched by %q", m.Text, text, class, code, m.Name)
	}
	if normalised := outsideAZ09.ReplaceAllString(strings.ToUpper(m.Text), "_"); m.Name == string(m.Reason) && normalised != m.Name {
		t.Fatalf("%q of %q becomes %q, want %q", m.Text, text, normalised, m.Name)
	}
}

// TestOrderOfRules: permanent before transient, then as listed, whatever the kind of matcher and the place in the text.
func TestOrderOfRules(t *testing.T) {
	kinds := map[string]struct {
		rule    decision.Rule
		message string
	}{
		"code":      {decision.Rule{Codes: []string{"GATEWAY_DOWN"}}, "gateway-down"},
		"number":    {decision.Rule{Codes: []string{"911"}}, "911"},
		"status":    {decision.Rule{Statuses: []string{"502"}}, "HTTP 502"},
		"TISS code": {decision.Rule{TISSCodes: []string{"1308"}}, "glosa 1308"},
		"fault":     {decision.Rule{TISSFaults: []string{"LoginInvalido"}}, "LoginInvalido"},
		"phrase":    {decision.Rule{Phrases: []string{"nao foi possivel"}}, "não foi possível"},
		"prefix":    {decision.Rule{Phrases: []string{"indisponiv*"}}, "indisponível"},
		"pattern":   {decision.Rule{Patterns: []string{`lote \d{1,9} recusado`}}, "lote 77 recusado"},
	}
	for first, a := range kinds {
		for second, b := range kinds {
			if first == second {
				continue
			}
			for _, text := range []string{a.message + "; " + b.message, b.message + "; " + a.message} {
				check := func(classA, classB decision.ErrorClassification, want string) {
					t.Helper()
					a.rule.Class, a.rule.Reason, a.rule.Name = classA, "A", "A"
					b.rule.Class, b.rule.Reason, b.rule.Name = classB, "B", "B"
					if m := decisiontest.Rules(a.rule, b.rule).Classify(text, 0); string(m.Reason) != want {
						t.Errorf("%q: a %s %s, then a %s %s: %s wins by %q, want %s", text, classA, first, classB, second, m.Reason, m.Name, want)
					}
				}
				check(decision.Transient, decision.Transient, "A")
				check(decision.Permanent, decision.Permanent, "A")
				check(decision.Permanent, decision.Transient, "A")
				check(decision.Transient, decision.Permanent, "B")
			}
		}
	}
}

// TestMatchSaysWhatToDo: the rule's own words come back.
func TestMatchSaysWhatToDo(t *testing.T) {
	c := decisiontest.Rules(decision.Rule{
		Name: "credenciais", Class: decision.Permanent, Reason: "INVALID_CREDENTIALS", Team: "ti", Hint: "Confira a senha do webservice.",
		Phrases: []string{"senha invalida"}, Codes: []string{"BAD_LOGIN"},
	})
	want := decision.Match{Classification: decision.Permanent, Name: "credenciais", Reason: "INVALID_CREDENTIALS", Team: "ti",
		Hint: "Confira a senha do webservice.", Text: "SENHA  inválida"}
	if m := c.Classify("Falha: SENHA  inválida!", 0); m != want {
		t.Errorf("got %+v, want %+v", m, want)
	}
	want.Name, want.Text = "BAD_LOGIN", "bad-login" // a code stands for itself
	if m := c.Classify("bad-login", 0); m != want {
		t.Errorf("got %+v, want %+v", m, want)
	}
}

// TestNoRules: what knows nothing says so.
func TestNoRules(t *testing.T) {
	var none *decision.Classifier
	for name, c := range map[string]*decision.Classifier{"nil": none, "zero": {}, "empty": decisiontest.Rules()} {
		if m := c.Classify("TIMEOUT 503", 503); m != (decision.Match{Classification: decision.Unknown, Reason: decision.ReasonUnknown}) {
			t.Errorf("%s: %+v", name, m)
		}
		if n := len(c.Rules()); n != 0 {
			t.Errorf("%s: %d rules", name, n)
		}
	}
}

// TestRulesThatAreRefused: each by its rule, its field, its place, what was found and what was expected.
func TestRulesThatAreRefused(t *testing.T) {
	const (
		code    = "at least 4 upper-case letters, digits and single underscores, or digits only (R3)"
		status  = "an HTTP status from 100 to 599, or a hundred of them such as 5xx"
		tiss    = "a code of four digits of table 38, or a hundred of them such as 10xx"
		fault   = "one word of at least 4 letters, such as LoginInvalido"
		phrase  = "words of together at least 4 letters; only the last may end in *"
		bound   = "a bound such as {0,40}"
		fixed   = "a fixed word of at least 4 letters or digits in every alternative"
		foreign = "lower case without accents, as messages are compared with it"
		re2     = "a regular expression as RE2 reads them"
	)
	wrong := map[string]map[string]string{ // by field: the item and what is expected
		"Codes":      {"": code, "ABC": code, "timeout": code, "A__B": code, "A B C": code, "É_ERRO": code, "____": code, "50.3": code},
		"Statuses":   {"": status, "99": status, "600": status, "4x": status, "xxx": status, "6xx": status, "0xx": status, "40x": status, "0404": status, "-404": status, "4xxx": status},
		"TISSCodes":  {"": tiss, "130": tiss, "13088": tiss, "0130": tiss, "1xx": tiss, "xx": tiss, "13x": tiss, "100xx": tiss, "+130": tiss, "1xxx": tiss},
		"TISSFaults": {"": fault, "abc": fault, "Login Invalido": fault, "Login_Invalido": fault, "!!!!": fault},
		"Phrases":    {"": phrase, "*": phrase, "cpf": phrase, "a*b cdef": phrase, "tempo**": phrase, "- . -": phrase},
		"Patterns": {
			`erro.*fatal`: bound, `erro+ fatal`: bound, `erro{2,} fatal`: bound, `(?:erro ){1,201}fatal`: bound, `fatal (?:a(?:b*)c)`: bound, `erro.*?fatal`: bound,
			`abc`: fixed, `[a-z]{4}`: fixed, `fatal|abc`: fixed, `(?:fatal)?`: fixed, `(?:fatal){0,2}`: fixed, `fatal|`: fixed, ``: fixed, `\d{4}`: fixed,
			`Fatal`: foreign, `não foi`: foreign, `(?i)não foi`: foreign, "fatal\n": foreign,
			`fatal(`: re2, `fatal[`: re2, `(?=fatal)`: re2, `\1fatal`: re2, `fatal{1001}`: re2,
			`fatal (?:[a-z]{1,200} [a-z]{1,200}){1,5}`: "one of at most 4000 steps",
		},
	}
	good := decisiontest.Transient("TIMEOUT")
	for field, items := range wrong {
		for item, expected := range items {
			bad := decision.Rule{Name: "bad", Class: decision.Transient, Reason: "TIMEOUT"}
			reflect.ValueOf(&bad).Elem().FieldByName(field).Set(reflect.ValueOf([]string{sound[field], item}))
			_, err := decision.NewClassifier([]decision.Rule{good, bad})
			var wrong *decision.RuleError
			if !errors.As(err, &wrong) {
				t.Errorf("%s %q is taken (%v)", field, item, err)
				continue
			}
			if wrong.Rule != 1 || wrong.Field != field || wrong.Item != 1 || wrong.Expected != expected {
				t.Errorf("%s %q: %+v, want rule 1, item 1, expected %s", field, item, wrong, expected)
			}
			if message := err.Error(); !strings.HasPrefix(message, fmt.Sprintf("%q", item)) || !strings.HasSuffix(message, ", expected "+expected) || strings.Contains(message, "\n") {
				t.Errorf("%s %q: message %s", field, item, message)
			}
		}
	}
}

// sound is an item that each field takes.
var sound = map[string]string{
	"Codes": "GOOD_CODE", "Statuses": "5xx", "TISSCodes": "10xx", "TISSFaults": "LoginInvalido", "Phrases": "sem resposta*", "Patterns": `lote \d{1,9} recusado`,
}

func TestRefusedClass(t *testing.T) {
	for _, class := range []decision.ErrorClassification{"", decision.Unknown, "transient"} {
		_, err := decision.NewClassifier([]decision.Rule{decisiontest.Transient("TIMEOUT"), {Name: "x", Class: class, Codes: []string{"CODE"}}})
		var wrong *decision.RuleError
		if !errors.As(err, &wrong) || wrong.Rule != 1 || wrong.Field != "Class" || wrong.Item >= 0 {
			t.Errorf("class %q: %v", class, err)
		}
	}
}

// TestRefusalNamesTheCause of a pattern, of which more than one thing can be wrong.
func TestRefusalNamesTheCause(t *testing.T) {
	for pattern, want := range map[string]string{
		`erro.*fatal`:   `"erro.*fatal" may go on for ever at (?-s:.*), expected a bound such as {0,40}`,
		`abc`:           `"abc" would have to be tried on every message, expected a fixed word of at least 4 letters or digits in every alternative`,
		`erro Fatal`:    `"erro Fatal" holds "erro Fatal", expected lower case without accents, as messages are compared with it`,
		`fatal(`:        "\"fatal(\" is none: error parsing regexp: missing closing ): `fatal(`, expected a regular expression as RE2 reads them",
		`erro{3,} fixo`: `"erro{3,} fixo" repeats without end or more than 200 times at o{3,}, expected a bound such as {0,40}`,
	} {
		_, err := decision.NewClassifier([]decision.Rule{byPattern("p", pattern)})
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// TestPatterns: on the text in lower case, without accents, white space single.
func TestPatterns(t *testing.T) {
	c := decisiontest.Rules(
		byPattern("refused", `conexao recusada por [a-z.]{1,30}`),
		byPattern("or", `(?:prazo|limite) de \d{1,3} (?:dias|horas) (?:vencido|excedido)`),
		byPattern("start", `^falha geral`), byPattern("end", `fim abrupto$`), byPattern("word", `\bquota\b`), byPattern("any case", `(?i)Disk Full`),
	)
	checkExamples(t, c, []example{
		{"Conexão RECUSADA por portal.exemplo!", "refused", "Conexão RECUSADA por portal.exemplo"},
		{"conex&atilde;o\n\trecusada   por x", "refused", "conex&atilde;o\n\trecusada   por x"},
		{`conex\u00e3o\nrecusada por x`, "refused", `conex\u00e3o\nrecusada por x`},
		{"conexÃ£o recusada por x", "refused", "conexÃ£o recusada por x"},
		{"conexa\u0303o recusada por x", "refused", "conexa\u0303o recusada por x"},
		{"conexão recusada pelo x", "", ""},
		{"conexão, recusada por x", "", ""}, // punctuation counts in a pattern
		{"O prazo de 60 dias vencido", "or", "prazo de 60 dias vencido"},
		{"LIMITE DE 2 HORAS EXCEDIDO", "or", ""},
		{"prazo de 6000 dias vencido", "", ""},
		{"Falha geral", "start", "Falha geral"}, {"Grande falha geral", "", ""},
		{"um fim abrupto", "end", "fim abrupto"}, {"um fim abrupto!", "", ""},
		{"a quota.", "word", "quota"}, {"aquota", "", ""}, {"cotação", "", ""},
		{"disk full", "any case", "disk full"},
	})
}

var (
	unaccented = strings.NewReplacer("á", "a", "ã", "a", "ç", "c", "é", "e", "í", "i", "ó", "o", "ú", "u", "\u0303", "", "\u00a0", " ")
	white      = regexp.MustCompile(`\s+`)
	patterns   = []string{
		`falha \d{1,3}\b`, `(?:erro|falha) na[o]? (?:rede|porta)`, `porta{1,3}`, `^erro.{0,5}rede$`, `(?:rede ){2}`, `(?:nao|na) (?:rede|porta)`, `erro (?:na )?(?:re|por)(?:de|ta)`, `[ef][ra][rl](?:ro|ha) (?:rede|na|12|)`, `(?:falha (?:x|) ?rede)?erro`,
		`(?:erro|(?:rede){1,2}|porta[a-z]{0,3} erro)[ -]rede`, `(?i)FALHA (?:NA|rede)`, `\b(?:acao|cao)?rede\b`, `falha,? ?(?:nao|na|porta|erro|rede|acao|12) `, `nao.{0,9}rede|rede.{1,4}erro`, `[^ ]{0,3}porta`,
	}
	patternPieces = rapid.SampledFrom([]string{"falha", "FALHA", "erro", "Érro", "não", "na", "nã\u0303o", "rede", "porta", "portaaa", "12", "1234", " ", " ", " ", "  ", "\n", "\u00a0", "-", ",", "ção"})
)

// TestPatternsEqualTheirExpressions: a pattern that is tried only where its literal stands finds what its expression
// finds on every text.
func TestPatternsEqualTheirExpressions(t *testing.T) {
	matched := 0
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(patternPieces, 0, 14).Draw(t, "pieces"), "")
		plain := white.ReplaceAllString(unaccented.Replace(strings.ToLower(text)), " ")
		for _, p := range patterns {
			want := regexp.MustCompile(p).MatchString(plain)
			m := decisiontest.Rules(byPattern("p", p)).Classify(text, 0)
			if got := m.Name == "p"; got != want {
				t.Fatalf("%s finds %t in %q, want %t", p, got, text, want)
			}
			if want {
				matched++
			}
		}
	})
	if matched < 50 {
		t.Errorf("%d matches", matched)
	}
}
