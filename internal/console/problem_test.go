package console_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"retry-worker/internal/access"
)

func TestRefusalsAndTheLogIn(t *testing.T) {
	s := open(t, newWorld(t, now))
	for _, lang := range []string{"pt-BR", "en"} {
		ask := func(answer func(http.ResponseWriter, *http.Request)) *doc {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/login", nil)
			r.Header.Set("Accept-Language", lang)
			answer(w, r)
			return s.doc(w, w.Code)
		}
		for _, code := range []string{access.CodeFormExpired, access.CodeForbiddenRole, access.CodeForbiddenOrigin, access.CodeUnsupportedMediaType} {
			d := ask(func(w http.ResponseWriter, r *http.Request) {
				s.pages.Refuse(w, r, access.Refusal{Status: 403, Code: code, Message: "the program's word"})
			})
			if strings.Contains(d.raw, "the program&#39;s word") != (code == access.CodeUnsupportedMediaType) {
				t.Errorf("%s is not said in the reader's words", code)
			}
		}
		d := ask(func(w http.ResponseWriter, r *http.Request) {
			s.pages.Login(w, r, access.Login{Next: `/dead-letters?q="<b>`, Refusal: &access.Refusal{Status: 401, Code: access.CodeTokenUnknown}})
		})
		if got := d.show("[name=next]@value") + " " + d.show("[type=password][aria-invalid=true]@name"); got != `/dead-letters?q="<b> token` {
			t.Errorf("the log-in form has %s", got)
		}
		slowed := ask(func(w http.ResponseWriter, r *http.Request) {
			s.pages.Login(w, r, access.Login{Next: "/", Refusal: &access.Refusal{Status: 429, Code: access.CodeTooManyAttempts}})
		})
		slowed.mustSay(map[string]string{"pt-BR": "Muitas tentativas com código errado", "en": "Too many wrong tokens"}[lang])
		if len(d.tags("nav")) > 0 {
			t.Error("nobody sees the pages' names")
		}
	}
}
