package classify_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"retry-worker/internal/classify"
)

var specified = []string{"INVALID_PATIENT_DATA", "INSURANCE_EXPIRED", "AUTHORIZATION_DENIED", "DUPLICATE_CLAIM", "INVALID_PROCEDURE_CODE"}

func TestSpecifiedCodesAlwaysWin(t *testing.T) {
	c := shipped()
	for _, s := range samples(t) {
		for _, code := range specified {
			for _, text := range []string{code + ": " + s.text, s.text + "\n" + strings.ToLower(code)} {
				if m := c.Classify(text, 0); m.Rank != classify.SpecifiedPermanent {
					t.Errorf("rank %d %s, expected a specified code: %q", m.Rank, m.Name, text)
				}
			}
		}
	}
}

func TestNegationTakesRefusalAway(t *testing.T) {
	c := shipped()
	for _, refusal := range []string{
		"%s recusada a guia", "a guia %s devolvida", "o CPF %s inválido", "o lote %s rejeitado", "a cobrança %s duplicada",
		"o plano %s suspenso", "a senha %s incorreta", "the claim %s rejected", "the member %s unknown",
	} {
		negations, plain := []string{"não foi", "ainda não foi", "nunca foi"}, "foi"
		if strings.HasPrefix(refusal, "the") {
			negations, plain = []string{"was not", "has never been", "was no longer"}, "was"
		}
		text := strings.Replace(refusal, "%s", plain, 1)
		if m := c.Classify(text, 0); !m.Presumed() {
			t.Errorf("rank %d %s, expected a presumption: %q", m.Rank, m.Name, text)
		}
		for _, negation := range negations {
			text := strings.Replace(refusal, "%s", negation, 1)
			if m := c.Classify(text, 0); m.Class == classify.Permanent {
				t.Errorf("%s at %q, expected nothing: %q", m.Name, m.Text, text)
			}
		}
	}
}

// How a text is written does not change what it says, nor does the courtesy before it.
func TestFormChangesNothing(t *testing.T) {
	c := shipped()
	forms := map[string]func(string) string{
		"upper case":   strings.ToUpper,
		"line breaks":  func(s string) string { return "\n" + s + "\n" },
		"entities":     strings.NewReplacer("ã", "&atilde;", "á", "&#225;", "ç", "&ccedil;", "é", "&#xe9;", "í", "&iacute;").Replace,
		"JSON escapes": strings.NewReplacer("ã", `\u00e3`, "á", `\u00e1`, "ç", `\u00e7`, "é", `\u00e9`, "í", `\u00ed`).Replace,
		"no accents":   strings.NewReplacer("ã", "a", "á", "a", "ç", "c", "é", "e", "í", "i").Replace,
		"courtesy":     func(s string) string { return "Prezado prestador, bom dia.\nAtenção! Dear partner, thank you. " + s },
		"double UTF-8": strings.NewReplacer("ã", "Ã£", "á", "Ã¡", "ç", "Ã§", "é", "Ã©", "í", "Ã\u00ad").Replace,
	}
	for _, s := range samples(t) {
		for name, form := range forms {
			if name == "upper case" && strings.ContainsAny(s.text, `&\\`) {
				continue // no entity is called ATILDE
			}
			if name == "courtesy" && strings.HasPrefix(s.text, "50") {
				continue // a status alone is no longer alone
			}
			if m := c.Classify(form(s.text), 0); m.Rank != s.rank || m.Name != s.name {
				t.Errorf("%s: rank %d %s, expected rank %d %s: %q", name, m.Rank, m.Name, s.rank, s.name, form(s.text))
			}
		}
	}
}

// No text makes classification fail, what matched stands in it, and a specified code in front always wins.
func FuzzClassify(f *testing.F) {
	c := shipped()
	for _, s := range samples(f) {
		f.Add(s.text, 0)
	}
	f.Add("T aguarde", 0)
	f.Add("\xff\xfe&#x;\\u12", 503)
	f.Fuzz(func(t *testing.T, text string, status int) {
		m := c.Classify(text, status)
		if status == 0 && !strings.Contains(text, m.Text) {
			t.Errorf("%q is not in %q", m.Text, text)
		}
		if utf8.ValidString(text) && !utf8.ValidString(m.Text) {
			t.Errorf("%q cuts a character of %q", m.Text, text)
		}
		if all := c.Explain(text, status); m.Rank != classify.Nothing && all[0].Match != m {
			t.Errorf("%q: Explain says %+v, Classify %+v", text, all[0].Match, m)
		}
		if m := c.Classify("DUPLICATE_CLAIM "+text, status); m.Rank != classify.SpecifiedPermanent {
			t.Errorf("%q: rank %d, expected the specified code", text, m.Rank)
		}
	})
}
