package decision_test

import (
	"strings"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

func byWords(name string, entries ...string) decision.Rule {
	return decision.Rule{Name: name, Class: decision.Permanent, Reason: "POSSIBLY_ACCEPTED", Team: "faturamento", Words: entries}
}

// TestWordsStandNearEachOther in any order, as whole words but for *, and not too
// far apart.
func TestWordsStandNearEachOther(t *testing.T) {
	c := decisiontest.Rules(byWords("again", "já | already + recebid* | received"), byWords("three", "sem + senha + autorizacao | authorization"))
	far := strings.Repeat("x ", 40)
	for text, want := range map[string]string{
		"Lote já recebido":                           "já recebido",
		"LOTE JA RECEBIDO em 12/01":                  "JA RECEBIDO",
		"received already":                           "received already",
		"recebida, ao que parece, já":                "recebida, ao que parece, já",
		"j&aacute; recebido":                         "j&aacute; recebido",
		"o lote 17 de ontem foi recebido por nós já": "recebido por nós já",
		"ja":                     "",
		"recebido":               "",
		"jato recebido":          "",
		"já sobrerecebido":       "",
		"already receivedX":      "",
		"já " + far + "recebido": "",
		"recebido " + far + "já": "",
		"recebido " + strings.Repeat("x", 500) + " já": "",
		strings.Repeat("y", 500) + " recebido já":      "recebido já",
		"recebido " + far + "já recebido":              "já recebido",
		"autorização de senha: sem":                    "autorização de senha: sem",
		"senha sem autorizacao":                        "senha sem autorizacao",
		"sem senha":                                    "",
		"sem autorização":                              "",
	} {
		m := c.Classify(text, 0)
		if m.Text != want || (m.Name != "") != (want != "") {
			t.Errorf("%.60q matches %q by %q, want %q", text, m.Text, m.Name, want)
		}
	}
}

// TestWordsReach: eight words before and behind, and no further.
func TestWordsReach(t *testing.T) {
	c := decisiontest.Rules(byWords("again", "ja + recebido"))
	for between, matches := range map[int]bool{0: true, 6: true, 7: true, 8: false, 20: false} {
		filler := strings.Repeat("a ", between)
		for _, text := range []string{"ja " + filler + "recebido", "recebido " + filler + "ja", "x ja " + filler + "recebido y"} {
			if got := c.Classify(text, 0).Name != ""; got != matches {
				t.Errorf("%d words between: %q matches %t, want %t", between, text, got, matches)
			}
		}
	}
}

// TestUnsoundWords: refused with what was expected.
func TestUnsoundWords(t *testing.T) {
	for entry, want := range map[string]string{
		"":                 "groups of words",
		"+":                "groups of words",
		"recebido +":       "groups of words",
		"recebido + | ja":  "groups of words",
		"rece*bido + ja":   "groups of words",
		"ja + nao":         "a group whose words all have at least 4 letters or digits",
		"ja | recebido":    "a group whose words all have at least 4 letters or digits",
		"abc* | recebido*": "a group whose words all have at least 4 letters or digits",
	} {
		_, err := decision.NewClassifier([]decision.Rule{byWords("again", entry)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error that expects %s", entry, err, want)
		}
	}
	if _, err := decision.NewClassifier([]decision.Rule{byWords("again", "recebido", "ja|nao+recebid*|enviado ja")}); err != nil {
		t.Error(err)
	}
}

// TestPresumedPermanentComesLast: behind every permanent and every transient rule, before UNKNOWN.
func TestPresumedPermanentComesLast(t *testing.T) {
	weak := byWords("weak", "recusad* | invalid*")
	weak.Presumed = true
	c := decisiontest.Rules(weak, decisiontest.Transient("TIMEOUT"), byPhrase("refused", "conexao recusada"), decisiontest.Permanent("DUPLICATE_CLAIM", "faturamento"))
	for text, want := range map[string]string{
		"guia recusada":                           "PERMANENT weak",
		"dado inválido":                           "PERMANENT weak",
		"guia recusada após TIMEOUT":              "TRANSIENT TIMEOUT",
		"conexão recusada":                        "TRANSIENT refused",
		"guia recusada, TIMEOUT, DUPLICATE_CLAIM": "PERMANENT DUPLICATE_CLAIM",
		"guia parada":                             "UNKNOWN ",
	} {
		if m := c.Classify(text, 0); string(m.Classification)+" "+m.Name != want {
			t.Errorf("%q is %s by %q, want %s", text, m.Classification, m.Name, want)
		}
	}
}

// TestWordsInHostileMessages: a message of anchors alone is looked at once for each, in small surroundings.
func TestWordsInHostileMessages(t *testing.T) {
	c := decisiontest.Rules(byWords("again", "ja + recebido"))
	for _, piece := range []string{"recebido ", "recebido", "ja ", "_", "recebido_ja"[:9]} {
		if m := c.Classify(strings.Repeat(piece, 1<<20/len(piece)), 0); m.Name != "" {
			t.Errorf("%q: matched %.40q", piece, m.Text)
		}
	}
}
