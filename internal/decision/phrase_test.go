package decision_test

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"retry-worker/internal/decision/decisiontest"
)

// TestPhrases: without case, accents, entities, escapes and punctuation, as whole words.
func TestPhrases(t *testing.T) {
	c := decisiontest.Rules(
		byPhrase("invalid", "operacao invalida"), byPhrase("down", "temporariamente indisponiv*"), byPhrase("late", "prazo de 60 dias"),
		byPhrase("full", "disco cheio"), byPhrase("written with accents", "Não há saldo!"))
	checkExamples(t, c, []example{
		// Case and accents.
		{"operacao invalida", "invalid", "operacao invalida"},
		{"OPERAÇÃO INVÁLIDA", "invalid", "OPERAÇÃO INVÁLIDA"},
		{"A operação inválida foi", "invalid", "operação inválida"},
		{"operac\u0327a\u0303o inva\u0301lida", "invalid", "operac\u0327a\u0303o inva\u0301lida"}, // accents by themselves
		{"Operaçäo ïnvãlida", "invalid", "Operaçäo ïnvãlida"},
		{"não há saldo", "written with accents", "não há saldo"},
		// Entities, escapes.
		{"opera&ccedil;&atilde;o inv&aacute;lida", "invalid", "opera&ccedil;&atilde;o inv&aacute;lida"},
		{"opera&#231;&#xE3;o&nbsp;inv&#225;lida", "invalid", "opera&#231;&#xE3;o&nbsp;inv&#225;lida"},
		{`{"m":"opera\u00e7\u00E3o inv\u00e1lida"}`, "invalid", `opera\u00e7\u00E3o inv\u00e1lida`},
		{`{"m":"Erro.\nOpera\u00e7\u00e3o\tinv\u00e1lida\r\nfim"}`, "invalid", `Opera\u00e7\u00e3o\tinv\u00e1lida`},
		{"operaopera&ccedil;&atilde;o invalida", "", ""},
		{"disco&amp;cheio", "full", "disco&amp;cheio"},
		{"disco &copy=1; cheio", "", ""},                 // a parameter, no ©
		{"x?a=1&disco;cheio", "full", "disco;cheio"},     // no entity
		{"&;&disco cheio&", "full", "disco cheio"},       // nor these
		{`disco\u00 cheio`, "", ""},                      // half an escape
		{`disco\ cheio\`, "full", `disco\ cheio`},        // a path
		{`\udisco cheio \u12`, "", ""},                   // "udisco"
		{"disco \xc3 cheio \xff", "full", ""},            // no UTF-8
		{"disco &#0; cheio", "full", "disco &#0; cheio"}, // U+FFFD
		// UTF-8 that was read as Latin-1 or Windows-1252.
		{"operaÃ§Ã£o invÃ¡lida", "invalid", "operaÃ§Ã£o invÃ¡lida"},
		{"OPERAÃ\u0087Ã\u0083O INVÃ\u0081LIDA", "invalid", "OPERAÃ\u0087Ã\u0083O INVÃ\u0081LIDA"},
		{"OPERAÃ‡ÃƒO INVÃ\u0081LIDA", "invalid", "OPERAÃ‡ÃƒO INVÃ\u0081LIDA"},
		{"disco Âº cheio", "full", "disco Âº cheio"},
		{"DISCÃO CHEIO", "", ""}, {"ÃÂ disco cheio Ã", "full", "disco cheio"},
		// Punctuation and white space.
		{"prazo  de\n60\tdias", "late", "prazo  de\n60\tdias"},
		{"<prazo>de</prazo> 60 dias", "", ""}, // the element's name is a word
		{"prazo-de-60_dias", "late", ""}, {"(prazo, de 60... dias)", "late", "prazo, de 60... dias"}, {"prazo\u00a0de 60\u200bdias", "late", ""},
		// Whole words.
		{"cooperacao invalida", "", ""}, {"operacao invalidada", "", ""}, {"prazo de 60diasx", "", ""}, {"prazo de 160 dias", "", ""},
		{"2operacao invalida", "", ""}, {"operacao invalida2", "", ""}, {"éoperacao invalida", "", ""}, {"operacao invalidaé", "", ""},
		{"«operacao invalida»", "invalid", "operacao invalida"}, {"operacao invalida", "invalid", ""},
		// The last word goes on.
		{"temporariamente indisponível", "down", "temporariamente indisponível"},
		{"Temporariamente INDISPONÍVEIS.", "down", "Temporariamente INDISPONÍVEIS"},
		{"temporariamente indisponiv", "down", ""}, {"temporariamente indisponi", "", ""}, {"contemporariamente indisponivel", "", ""},
		{"", "", ""}, {" ", "", ""}, {"operacao", "", ""},
	})
}

// TestSharpLettersAreRead: what has an ASCII upper or lower case is that letter in a phrase too.
func TestSharpLettersAreRead(t *testing.T) {
	c := decisiontest.Rules(byPhrase("sessao", "sessao interrompida"), byPhrase("kelvin", "kelvin alto"))
	checkExamples(t, c, []example{
		{"ſeſsão ınterrompida", "sessao", "ſeſsão ınterrompida"}, {"SESSÃO İNTERROMPİDA", "sessao", ""}, {"\u212aelvin alto", "kelvin", ""},
	})
}

// TestCodesBesideAccents: an accented letter is a gap to a code (R3) and a letter to a phrase, in one message.
func TestCodesBesideAccents(t *testing.T) {
	c := decisiontest.Rules(decisiontest.Transient("RATE_LIMIT"), decisiontest.Transient("A_1_B"), decisiontest.Transient("SERVICE_UNAVAILABLE"),
		decisiontest.Transient("CCEDIL"), byPhrase("phrase", "ratelimit"), byPhrase("acao", "acao negada"))
	checkExamples(t, c, []example{
		{"rateçlimit", "RATE_LIMIT", "rateçlimit"}, {"éRATE LIMITé", "RATE_LIMIT", "RATE LIMIT"}, {"aé1é b", "A_1_B", "aé1é b"},
		{"não: service éã unavailable", "SERVICE_UNAVAILABLE", "service éã unavailable"}, {"rate\u0301limit", "RATE_LIMIT", "rate\u0301limit"},
		{"ra&shy;te limit não", "", ""}, {"Não &ccedil; é", "CCEDIL", "ccedil"}, {"raté limit", "", ""}, {"serviço unavailable é", "", ""},
		{"ação negada, não rate-limit", "RATE_LIMIT", "rate-limit"}, {"ação negada, não rate é", "acao", "ação negada"},
	})
}

var (
	accents  = strings.NewReplacer("á", "a", "à", "a", "ã", "a", "â", "a", "ç", "c", "é", "e", "ê", "e", "í", "i", "ó", "o", "õ", "o", "ô", "o", "ú", "u", "ü", "u", "\u0301", "", "\u0303", "")
	noWord   = regexp.MustCompile(`[^a-z0-9]+`)
	escaping = map[string]func(string) string{
		"as it is": func(s string) string { return s },
		"upper":    strings.ToUpper,
		"entities": func(s string) string {
			return strings.NewReplacer("ã", "&atilde;", "ç", "&#231;", "é", "&#xe9;", "<", "&lt;").Replace(s)
		},
		"escapes": func(s string) string {
			return strings.NewReplacer("ã", `\u00e3`, "ç", `\u00E7`, "\n", `\n`).Replace(s)
		},
		"mojibake": func(s string) string {
			return strings.NewReplacer("ã", "Ã£", "ç", "Ã§", "é", "Ã©", "ó", "Ã³").Replace(s)
		},
	}
	phrasePieces = rapid.SampledFrom([]string{"ação", "acao", "AÇÃO", "negada", "negadas", "não", "é", "e", "ação negada", "ação não negada", " ", " ", " ", ", ", "\n", "-", "<", "1", "\u0301", "só"})
)

// TestPhrasesEqualOracle: whatever a text is written in, a phrase stands in it where it stands in its folded words.
func TestPhrasesEqualOracle(t *testing.T) {
	phrases := map[string]string{"whole": "acao negada", "prefix": "nao neg*", "single": "negadas"}
	found := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(phrasePieces, 0, 10).Draw(t, "pieces"), "")
		folded := " " + noWord.ReplaceAllString(accents.Replace(strings.ToLower(text)), " ") + " "
		for way, escape := range escaping {
			written := escape(text)
			for name, phrase := range phrases {
				want := strings.Contains(folded, " "+strings.TrimSuffix(phrase, "*"))
				if !strings.HasSuffix(phrase, "*") {
					want = strings.Contains(folded, " "+phrase+" ")
				}
				m := decisiontest.Rules(byPhrase(name, phrase)).Classify(written, 0)
				if got := m.Name == name; got != want {
					t.Fatalf("%q (%s): %q found %t, want %t", written, way, phrase, got, want)
				}
				if want {
					found[name+" "+way]++
				}
				if read := accents.Replace(strings.ToLower(html.UnescapeString(m.Text))); want && way != "escapes" && way != "mojibake" &&
					!strings.Contains(noWord.ReplaceAllString(read, " "), strings.TrimSuffix(phrase, "*")) {
					t.Fatalf("%q: %q is not in what matched, %q", written, phrase, m.Text)
				}
			}
		}
	})
	if len(found) != len(phrases)*len(escaping) {
		t.Errorf("found %v", found)
	}
}

// TestDamagedLetters: a letter that was lost on the way is read as the one that it was most likely, in phrases alone.
func TestDamagedLetters(t *testing.T) {
	c := decisiontest.Rules(byPhrase("refused", "autorizacao nao encontrada", "beneficiario invalido"), decisiontest.Transient("RATE_LIMIT"))
	for text, want := range map[string]string{
		"Autoriza\ufffd\ufffdo n\ufffdo encontrada": "refused",
		"benefici\ufffdrio inv\ufffdlido":           "refused",
		"Autoriza\xe7\xe3o n\xe3o encontrada":       "refused", // Latin-1 as it is
		"benefici\ufffdrio":                         "",
		"R\ufffdTE LIMIT":                           "", // R3 knows no such guess
		"\ufffd":                                    "",
		"\xff\xfe":                                  "",
	} {
		if m := c.Classify(text, 0); m.Name != want {
			t.Errorf("%q matches %q, want %q", text, m.Name, want)
		}
	}
}
