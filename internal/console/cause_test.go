package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"retry-worker/internal/decision"
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
	d.mustSay("Causa marcada para não repetir: equipe Cadastro", "a operadora confirmou", "Orientação sobre a causa retirada")
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
	if claim := s.page("/subjects/tiss-submission/CLM-000-1"); !strings.Contains(claim.raw, `<a href="`+at+`">`+sentence) {
		t.Error("the page of a claim of that cause says nothing of it")
	}
	form := url.Values{}
	for _, input := range d.tags("input") {
		if form.Get("reason") == "" { // the first form's end with it
			form.Set(attr(input, "name"), attr(input, "value"))
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
