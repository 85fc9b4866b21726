package console_test

import (
	"fmt"
	"testing"

	"go.uber.org/zap"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/console"
	"retry-worker/internal/decision"
	"retry-worker/internal/guard"
	"retry-worker/internal/testkit"
)

// withCatalogue shows the world's pages in Portuguese, by another catalogue.
func withCatalogue(t *testing.T, w world, file string) *site {
	t.Helper()
	c, err := catalogue.Parse("policies.yaml", []byte("extends: built-in\n"+file))
	testkit.Must(t, err)
	s := open(t, w)
	s.lang = "pt-BR"
	s.pages = console.New(console.Options{Now: w.Now, Zone: brasilia, Health: func() console.Health { return console.Health{} }, Catalogue: func() *catalogue.Catalogue { return c }, Log: zap.NewNop()})
	s.pages.Open(w.Memory, guard.New(w.Services()))
	return s
}

// TestPortalsAreCalledByTheirLabels: in the list, on their own pages and in what became of a claim, in the reader's language.
func TestPortalsAreCalledByTheirLabels(t *testing.T) {
	s := withCatalogue(t, sample(t, now), "destinations: {unimed-sp: {label: {pt-BR: Unimed SP, en: Unimed (São Paulo)}}}")
	for address, says := range map[string][2]string{
		"/destinations":                             {"O portal Unimed SP não responde desde", "Unimed (São Paulo) has not answered"},
		portalAddress(portalName):                   {"O portal Unimed SP não responde desde", "Unimed (São Paulo) has not answered"},
		subjectAddress("tiss-submission", passedID): {"Aguarda o portal Unimed SP", "Waits for the destination Unimed (São Paulo)"},
	} {
		for i, lang := range console.Langs() {
			s.lang = string(lang)
			s.page(address).mustSay(says[i])
		}
	}
}

// TestClaimsShowTheirContext: by the catalogue's names, and what they are worth together.
func TestClaimsShowTheirContext(t *testing.T) {
	w := newWorld(t, now)
	for i, valor := range []decision.ContextValue{{Variable: "valor", Type: "money", Value: "184200.00"}, {Variable: "valor", Type: "money", Value: "0.05"},
		{Variable: "valor", Type: "text", Value: "a definir"}} {
		a := w.Analysis("tiss-submission", fmt.Sprintf("CLM-2026-00900%d", i), "DUPLICATE_CLAIM", 0)
		a.Failure.Context = decision.Context{{Variable: "operadora", Type: "text", Value: "Unimed <SP>"}, valor,
			{Variable: "lote", Type: "number", Value: "1234.5"}, {Variable: "prazo", Type: "time", Value: "2026-03-05T21:00:00Z"}}
		_, err := w.Journal.Analyze(t.Context(), a)
		testkit.Must(t, err)
	}
	s := withCatalogue(t, w, "policies: {tiss-submission: {context: {operadora: {label: {pt-BR: Operadora, en: Insurer}}, valor: {label: Valor, type: money}, prazo: {label: Prazo, type: time}}}}")
	for address, says := range map[string][]string{
		"/dead-letters":        {"Operadora Unimed <SP> · lote 1234,5 · Prazo 05/03 18:00 R$ 184.200,00", "R$ 0,05", "Valor a definir"},
		"/dead-letters/groups": {"3 R$ 184.200,05"},
		"/dead-letters?field=operadora&value=Unimed+%3CSP%3E":               {"Abertas 3", "R$ 184.200,05 em aberto", "Tratar todas as 3"},
		"/dead-letters?context=lote%3D1234.5&state=all":                     {"CLM-2026-009002"},
		"/dead-letters?context=operadora%3DBradesco":                        {"Nenhuma"},
		"/dead-letters/groups?context=operadora%3DUnimed+%3CSP%3E":          {"3 R$ 184.200,05"},
		"/bulk-runs/new?action=discard&context=operadora%3DUnimed+%3CSP%3E": {"Operadora Unimed <SP>", "R$ 184.200,05"},
		"/":                             {"3 R$ 184.200,05"},
		"/bulk-runs/new?action=discard": {"R$ 184.200,05"},
		subjectAddress("tiss-submission", "CLM-2026-009000"): {"R$ 184.200,00 DUPLICATE_CLAIM", "Operadora Unimed <SP> lote 1234,5 Prazo 05/03 18:00"},
	} {
		s.page(address).mustSay(says...)
	}
	s.lang = "en"
	s.page("/dead-letters").mustSay("Insurer Unimed <SP> · lote 1234.5 · Prazo")
}
