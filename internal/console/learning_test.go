package console_test

import (
	"fmt"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
)

// The page of what was learnt says it in words, as a picture with a table behind it, and cause by cause.
func TestWhatWasLearnt(t *testing.T) {
	w := newWorld(t, now)
	s := open(t, w)
	for lang, says := range map[string]string{"pt-BR": "Ainda não há resultados suficientes", "en": "Too few outcomes are known"} {
		s.lang = lang
		d := s.page("/learning")
		if checkPage(t, d, "/learning", lang); !d.says(says) {
			t.Errorf("of nothing (%s) it says %s", lang, text(d.tags("main")[0]))
		}
	}
	for n := range 60 {
		id := fmt.Sprintf("CLM-%03d-1", n)
		for count := 0; ; count++ {
			a := w.Fail(decision.DefaultPolicy, id, "setor 7 aguarda o auditor", count)
			if !a.Decision.ShouldRetry() {
				break
			}
			w.Set(a.Decision.NextRetryTime)
		}
		if n%10 == 9 {
			testkit.Must(t, w.Learner.Refresh(t.Context(), w.Policies(), w.Now()))
		}
	}
	for lang, says := range map[string][]string{"pt-BR": {"Erro das previsões (Brier)", "0 a 10 %", "setor # aguarda o auditor", "Novas tentativas quase não resolvem"},
		"en": {"Error of the chances (Brier score)", "0 to 10 %", "setor # aguarda o auditor", "Retries hardly help"}} {
		s.lang = lang
		d := s.page("/learning")
		checkPage(t, d, "/learning", lang)
		for _, what := range says {
			if !d.says(what) {
				t.Errorf("it (%s) does not say %q: %s", lang, what, text(d.tags("main")[0]))
			}
		}
	}
}
