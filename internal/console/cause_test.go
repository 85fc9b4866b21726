package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/statistics"
	"retry-worker/internal/testkit"
)

// The page of a cause says what it is and what came of it, takes what an admin teaches and takes it back, and says what is
// wrong with a form beside it.
func TestACauseIsTaught(t *testing.T) {
	w := newWorld(t, now)
	w.DieWaiting(decision.DefaultPolicy, "CLM-001-1", "setor 7 aguarda o auditor", 5)
	id := w.Fail(decision.DefaultPolicy, "CLM-002-1", "setor 8 aguarda o auditor", 0).Fingerprint
	s, at := open(t, w), "/causes/"+id
	if d := s.page("/dead-letters/groups"); !strings.Contains(d.raw, `href="`+at+`"`) {
		t.Errorf("the list of causes does not lead to %s", at)
	}
	s.hold("cause", at)
	s.lang = "pt-BR"
	for _, tt := range []struct {
		to, form, says string
		status         int
	}{
		{"/teach", "reason=x", "Nada foi feito: escolha o que fazer.", http.StatusUnprocessableEntity},
		{"/teach", "classification=PERMANENT&reason=x", "Nada foi feito: escolha a equipe que vai tratar.", http.StatusUnprocessableEntity},
		{"/teach", "classification=TRANSIENT", "justificativa", http.StatusUnprocessableEntity},
		{"/teach", "classification=PERMANENT&team=cadastro&reason=a+operadora+confirmou", "Reenviar não resolve: a equipe Cadastro trata.", http.StatusSeeOther},
		{"/forget", "reason=", "justificativa", http.StatusUnprocessableEntity},
		{"/forget", "reason=foi+engano", "Orientação retirada: valem as regras da política.", http.StatusSeeOther},
	} {
		form, err := url.ParseQuery(tt.form)
		testkit.Must(t, err)
		w := s.post(at+tt.to, form)
		d := s.doc(w, w.Code)
		if tt.status == http.StatusSeeOther {
			to, _, _ := strings.Cut(w.Header().Get("Location"), "#")
			d = s.page(to)
		}
		if w.Code != tt.status || !strings.Contains(strings.ToLower(text(d.tags("main")[0])), strings.ToLower(tt.says)) {
			t.Errorf("%s %s: %d, want %d and %q: %s", tt.to, tt.form, w.Code, tt.status, tt.says, text(d.tags("main")[0]))
		}
	}
	d := s.page("/audit")
	d.mustSay("Causa marcada para não reenviar: equipe Cadastro", "a operadora confirmou", "Orientação sobre a causa removida")
	s.doc(s.get("/causes/0123456789abcdef"), http.StatusNotFound)
}

// Where retries hardly help, the page of the cause says so, and an admin teaches it with one click.
func TestAdviceIsTakenWithOneClick(t *testing.T) {
	w := newWorld(t, now)
	var id string
	for i := range 41 {
		claim := fmt.Sprintf("CLM-%03d-1", i)
		w.Fail(decision.DefaultPolicy, claim, "setor 7 aguarda o auditor", 4)
		id = w.Fail(decision.DefaultPolicy, claim, "setor 7 aguarda o auditor", 5).Fingerprint
	}
	s, at := open(t, w), "/causes/"+id
	s.lang = "pt-BR"
	const sentence = "0 de 41 guias com esta causa foram aceitas em um reenvio. Tratar como permanente?"
	if before := s.page(at); strings.Contains(text(before.tags("main")[0]), "Tratar como permanente") {
		t.Error("advice is given before anything was learnt")
	}
	testkit.Must(t, w.Learner.Refresh(t.Context(), w.Now()))
	d := s.page(at)
	d.mustSay(sentence, "Não reenviar mais: entregar à equipe Faturamento")
	d = s.page("/subjects/tiss-submission/CLM-000-1")
	if d.mustSay("Não reenviar mais: entregar à equipe Faturamento"); !strings.Contains(d.raw, `<a href="`+at+`">`+sentence) {
		t.Error("the page of a claim of that cause says nothing of it")
	}
	form := url.Values{} // of the claim's page
	for _, f := range d.tags("form") {
		for n := range f.Descendants() {
			if attr(f, "action") == at+"/teach" && n.Data == "input" {
				form.Set(attr(n, "name"), attr(n, "value"))
			}
		}
	}
	if got := s.post(at+"/teach", form); got.Code != http.StatusSeeOther {
		t.Fatalf("%v is answered %d", form, got.Code)
	}
	after := s.page(at)
	after.mustSay("Reenviar não resolve: a equipe Faturamento trata.", "0 de 41 guias")
	if strings.Contains(text(after.tags("main")[0]), "Tratar como permanente") {
		t.Error("advice is given on what is taught")
	}
}

// TestNewCausesAreShown: the overview names those of a day and leads to their pages, which say how it was before.
func TestNewCausesAreShown(t *testing.T) {
	w := newWorld(t, now)
	const text = "setor 7 aguarda o auditor"
	fail := func(n int) (id string) {
		for i := range n {
			id = w.Fail(decision.DefaultPolicy, fmt.Sprintf("CLM-%03d-1", i), text, 0).Fingerprint
			w.Advance(time.Second)
		}
		_, err := statistics.FindNew(t.Context(), w.Memory, w.Now())
		testkit.Must(t, err)
		return id
	}
	s := open(t, w)
	s.lang = "pt-BR"
	at := "/causes/" + fail(5)
	d := s.page("/")
	d.mustSay("Causas novas ou que voltaram", "5 falhas em 5 guias (12:00).", "Nunca tinha acontecido.")
	if !strings.Contains(d.raw, `href="`+at+`"`) {
		t.Errorf("the overview does not lead to %s", at)
	}
	w.Advance(25 * time.Hour)
	if d := s.page("/"); strings.Contains(d.raw, "new-causes") {
		t.Error("it is new for more than a day")
	}
	w.Advance(40 * 24 * time.Hour)
	fail(6)
	for _, page := range []string{"/", at} {
		s.page(page).mustSay("6 falhas em 6 guias", "Não acontecia desde", "até então, 5 falhas")
	}
}
