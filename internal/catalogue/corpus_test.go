package catalogue

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
)

// minRight is the part of a corpus that must be classified right.
const minRight = 0.95

var classes = []decision.ErrorClassification{decision.Permanent, decision.Transient, decision.Unknown}

// corpusCase is one labelled message.
type corpusCase struct {
	line    int
	class   decision.ErrorClassification
	reason  decision.Reason // empty where several are right
	message string
}

// readCorpus reads a file of cases; its form stands in the first lines of testdata/corpus/tiss.txt.
func readCorpus(t *testing.T, path string) (cases []corpusCase) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSuffix(string(content), "\n"), "\n") {
		if head, ok := strings.CutPrefix(line, "=== "); ok {
			cases = append(cases, newCase(t, fmt.Sprintf("%s:%d", path, i+1), i+1, head))
		} else if last := len(cases) - 1; last >= 0 {
			if i > cases[last].line {
				cases[last].message += "\n"
			}
			cases[last].message += line
		}
	}
	return cases
}

func newCase(t *testing.T, place string, line int, head string) corpusCase {
	t.Helper()
	class, reason, _ := strings.Cut(head, " ")
	c := corpusCase{line: line, class: decision.ErrorClassification(class)}
	if reason != "-" {
		c.reason = decision.Reason(reason)
	}
	if !slices.Contains(classes, c.class) || c.reason != "" && !slices.Contains(decision.Reasons(), c.reason) {
		t.Fatalf("%s: %q, expected a class and a reason", place, head)
	}
	return c
}

// confusion counts messages by what they are and what they were taken for.
type confusion map[[2]decision.ErrorClassification]int

func (n confusion) precision(c decision.ErrorClassification) string {
	taken := 0
	for _, is := range classes {
		taken += n[[2]decision.ErrorClassification{is, c}]
	}
	return share(n[[2]decision.ErrorClassification{c, c}], taken)
}

func (n confusion) recall(c decision.ErrorClassification) string {
	return share(n[[2]decision.ErrorClassification{c, c}], n.cases(c))
}

func (n confusion) cases(c decision.ErrorClassification) (sum int) {
	for _, taken := range classes {
		sum += n[[2]decision.ErrorClassification{c, taken}]
	}
	return sum
}

func share(part, whole int) string {
	if whole == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f %%", 100*float64(part)/float64(whole))
}

// TestCorpus holds the shipped tiss-submission against every message of the corpus: no permanent error is retried, no
// transient one given up, and at least minRight are classified right.
func TestCorpus(t *testing.T) {
	files, err := filepath.Glob("testdata/corpus/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	rules := Default().Policies[decision.DefaultPolicy].Rules
	fmt.Printf("PRINT corpus %-14s %-9s %5s %6s %6s %6s %9s %9s %12s\n", "file", "class", "cases", "PERM", "TRANS", "UNKN", "precision", "recall", "reason right")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) { checkCorpus(t, rules, file) })
	}
}

func checkCorpus(t *testing.T, rules *classify.Classifier, file string) {
	counts, right := make(confusion), 0
	reasons, reasonsRight := make(map[decision.ErrorClassification]int), make(map[decision.ErrorClassification]int)
	cases := readCorpus(t, file)
	for _, c := range cases {
		m := rules.Classify(c.message, 0)
		counts[[2]decision.ErrorClassification{c.class, m.Classification}]++
		if c.reason != "" {
			reasons[c.class]++
		}
		switch {
		case m.Classification != c.class:
			c.missed(t, file, m)
		case c.reason == "":
			right++
		default:
			right++
			if m.Reason == c.reason {
				reasonsRight[c.class]++
			} else {
				t.Logf("%s:%d: reason %s, expected %s (%s matched %q)", file, c.line, m.Reason, c.reason, m.Name, m.Text)
			}
		}
	}
	for _, c := range classes {
		fmt.Printf("PRINT corpus %-14s %-9s %5d %6d %6d %6d %9s %9s %12s\n", filepath.Base(file), c, counts.cases(c), counts[[2]decision.ErrorClassification{c, decision.Permanent}],
			counts[[2]decision.ErrorClassification{c, decision.Transient}], counts[[2]decision.ErrorClassification{c, decision.Unknown}], counts.precision(c), counts.recall(c), share(reasonsRight[c], reasons[c]))
	}
	fmt.Printf("PRINT corpus %-14s %d of %d right: %s\n", filepath.Base(file), right, len(cases), share(right, len(cases)))
	if float64(right) < minRight*float64(len(cases)) {
		t.Errorf("%d of %d are right, expected %.0f %%", right, len(cases), 100*minRight)
	}
}

// missed reports a wrong class in one line. To retry what is permanent, or to give up what is transient, is no matter
// of degree.
func (c *corpusCase) missed(t *testing.T, file string, m classify.Match) {
	t.Helper()
	message := c.message
	if len(message) > 160 {
		message = strings.ToValidUTF8(message[:160], "") + "…"
	}
	line := fmt.Sprintf("%s:%d: %s, expected %s (%s matched %q) in %q", file, c.line, m.Classification, c.class, m.Name, m.Text, message)
	if c.class == decision.Permanent || c.class == decision.Transient && m.Classification == decision.Permanent {
		t.Error(line)
		return
	}
	t.Log(line)
}

// business are subjects that a transient error may be told with; their nouns are those that the permanent rules know.
var business = []string{
	"Consulta de beneficiário", "Validação da carteira do paciente", "Elegibilidade do associado 99", "Consulta ao plano do titular",
	"Autorização do procedimento 40301010", "Envio da guia 123 do prestador 4410", "Envio do lote 77 da competência 05/2025",
	"Cobrança da conta hospitalar", "Protocolo do arquivo 12", "Consulta da tabela TUSS", "Auditoria da guia 88", "Cálculo do hash do lote",
	"Validação do schema do XML", "Verificação do certificado digital", "Validação da senha do usuário WS", "Login do prestador",
	"Checking member eligibility", "Prior authorization lookup for patient", "Claim submission for batch 12", "Token request",
}

// maxGivenUp is the part of transient errors beside business nouns that may be given up for these.
const maxGivenUp = 0.005

// TestTransientBesideBusiness: what fails on the way is not taken for a refusal because of what was on its way.
func TestTransientBesideBusiness(t *testing.T) {
	files, err := filepath.Glob("testdata/corpus/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	rules := Default().Policies[decision.DefaultPolicy].Rules
	tried, given := 0, 0
	for _, file := range files {
		for _, c := range readCorpus(t, file) {
			if c.class != decision.Transient || len(c.message) > 160 { // a longer one has no place where both are close
				continue
			}
			for _, subject := range business {
				for _, message := range []string{subject + ": " + c.message, c.message + " (" + subject + ")"} {
					tried++
					if m := rules.Classify(message, 0); m.Classification == decision.Permanent {
						given++
						t.Logf("%s matched %q in %q", m.Name, m.Text, message)
					}
				}
			}
		}
	}
	fmt.Printf("PRINT corpus transient beside business: %d of %d given up\n", given, tried)
	if tried == 0 || float64(given) > maxGivenUp*float64(tried) {
		t.Errorf("%d of %d are given up, expected at most %.1f %%", given, tried, 100*maxGivenUp)
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
				if m.Classification != class || m.Name != code || string(m.Reason) != code {
					t.Errorf("%q is %s by %s, reason %s, expected %s by %s", message, m.Classification, m.Name, m.Reason, class, code)
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
		if r.Class == decision.Permanent && (r.Team == "" || len(r.Hint) < 40 || !strings.HasSuffix(r.Hint, ".")) {
			t.Errorf("%s: team %q, hint %q, expected both, and a sentence", r.Name, r.Team, r.Hint)
		}
	}
}
