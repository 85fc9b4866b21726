package console_test

import (
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// TestClaimsByDeadlineAndAmount: what is sorted, summed up and exported of claims that have a deadline and are worth
// something.
func TestClaimsByDeadlineAndAmount(t *testing.T) {
	w := newWorld(t, now)
	for _, claim := range []struct {
		id, amount string
		left       time.Duration
	}{{"CLM-3-3", "", 0}, {"CLM-1-1", "31000.00", 30 * time.Second}, {"CLM-2-2", "153200.00", 48 * time.Hour}} {
		a := w.Analysis(decision.DefaultPolicy, claim.id, "DUPLICATE_CLAIM", 0)
		if claim.left > 0 {
			a.Failure.Deadline = now.Add(claim.left)
			a.Failure.Context = decision.Context{{Variable: "operadora", Type: decision.ContextText, Value: "=Unimed; SP"},
				{Variable: "valor", Type: decision.ContextMoney, Value: claim.amount}}
		}
		_, err := w.Journal.Analyze(t.Context(), a)
		testkit.Must(t, err)
	}
	s := withCatalogue(t, w, "policies: {tiss-submission: {context: {operadora: {label: Operadora}, valor: {label: Valor, type: money}}}}")
	for address, want := range map[string]string{
		"/dead-letters":               "CLM-1-1 CLM-2-2 CLM-3-3",
		"/dead-letters?sort=newest":   "CLM-2-2 CLM-1-1 CLM-3-3",
		"/dead-letters?state=all":     "CLM-2-2 CLM-1-1 CLM-3-3",
		"/dead-letters?sort=deadline": "CLM-1-1 CLM-2-2 CLM-3-3",
		"/dead-letters?sort=amount":   "CLM-2-2 CLM-1-1 CLM-3-3",
		"/dead-letters?sort=age":      "CLM-3-3 CLM-1-1 CLM-2-2",
		"/dead-letters?sort=price":    "CLM-1-1 CLM-2-2 CLM-3-3",
	} {
		d, ids := s.page(address), []string{}
		for _, row := range d.rowLinks() {
			ids = append(ids, text(row))
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s lists %s, want %s", address, got, want)
		}
	}
	s.page("/dead-letters").mustSay("Prazo e valor", "vence hoje · R$ 31.000,00", "vence em 04/03 · R$ 153.200,00")
	s.page("/dead-letters?lang=en").mustSay("due today · R$ 31,000.00", "due 4 Mar · R$ 153,200.00")
	for _, address := range []string{"/", "/dead-letters", "/dead-letters/groups"} {
		if d := s.page(address); d.link("1 vence hoje: R$ 31.000,00") == nil {
			t.Errorf("%s does not say what is due today", address)
		}
	}
	const missed = "O prazo de envio já terminou: hoje "
	if of := s.page("/subjects/tiss-submission/CLM-1-1"); strings.Contains(of.raw, missed) {
		t.Error("a deadline that lies ahead has passed")
	}
	if w.Advance(40 * time.Second); !strings.Contains(s.page("/subjects/tiss-submission/CLM-1-1").raw, missed) || strings.Contains(s.page("/subjects/tiss-submission/CLM-2-2").raw, missed) {
		t.Error("whoever sends it again is not told which deadline was missed (R29)")
	}
	run := w.StartBulk(journal.BulkCommand{Action: journal.BulkDiscard, Reason: "x", By: "ada"})
	items, err := w.Memory.BulkItems(t.Context(), run, "", 0, 9)
	testkit.Must(t, err)
	if len(items) != 3 || items[0].Subject.ID != "CLM-1-1" || items[2].Subject.ID != "CLM-3-3" {
		t.Errorf("the most urgent is not decided first: %+v", items)
	}
	file := s.get("/dead-letters.csv?sort=amount").Body.String()
	lines := strings.Split(file, "\r\n")
	if len(lines) != 5 || !strings.HasPrefix(file, "\ufeffGuia;") || !strings.HasSuffix(lines[0], ";Operadora;Erro") ||
		!strings.HasPrefix(lines[1], "CLM-2-2;") || !strings.Contains(lines[1], `;153200,00;`) || !strings.Contains(lines[1], `;"'=Unimed; SP";`) {
		t.Errorf("the file is %s", file)
	}
}
