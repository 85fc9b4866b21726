package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/console"
	"retry-worker/internal/journal"
)

func TestProblemsSayWhatToDo(t *testing.T) {
	w := sampleDead(t, now)
	s := open(t, w)
	closed := &site{t: t, world: w, pages: console.New(console.Options{Now: w.Now, Zone: brasilia, Health: func() console.Health { return console.Health{} }, Catalogue: catalogue.Default, Log: zap.NewNop()}), who: s.who, lang: "en", header: http.Header{}}
	for _, c := range []struct {
		what   string
		from   *httptest.ResponseRecorder
		status int
		words  string
	}{
		{"an address that is none", s.get("/nope"), 404, "Page not found"},
		{"a path trick", s.get("/subjects/tiss-submission/a/b"), 404, "Page not found"},
		{"an unknown subject", s.get("/subjects/tiss-submission/CLM-T-0"), 404, "Claim not found"},
		{"an unknown run", s.get("/bulk-runs/%3Cb%3E"), 404, "Bulk run not found"},
		{"a step of one", s.post("/bulk-runs/%3Cb%3E/pause", nil), 404, "Bulk run not found"},
		{"an asset that is none", s.get("/assets/pages.go"), 404, "Page not found"},
		{"a wrong method", s.post("/audit", nil), 405, "does not take that"},
		{"a journal that is not open", closed.get("/"), 503, "The system is still starting"},
		{"its export", closed.get("/audit/export?format=csv"), 503, "The system is still starting"},
		{"an unknown export", s.get("/audit/export?format=pdf"), 422, "export links"},
	} {
		s.doc(c.from, c.status).mustSay(c.words)
	}
	closed.page("/policies").mustSay("TISS submission") // policies need no journal
	for at, form := range map[string]string{
		"/dead-letters/a%2Fb": "retry", "/dead-letters/x": "undo", "/causes/x": "teach", "/bulk-runs/x": "pause",
		"/destinations/x": "hold",
	} {
		s.leads(s.get(at+"/"+form), at)
	}
	w.Memory.SetDown(true)
	for _, address := range []string{"/", "/dead-letters", subjectAddress("tiss-submission", deadID)} {
		from := s.get(address)
		if d := s.doc(from, 503); !d.says("The data cannot be read now") || from.Header().Get("Retry-After") == "" {
			t.Errorf("%s does not say that it cannot be read", address)
		}
	}
}

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
		if attr(d.field("next"), "value") != `/dead-letters?q="<b>` || attr(d.field("token"), "type") != "password" || attr(d.field("token"), "aria-invalid") != "true" {
			t.Error("the log-in form lacks something")
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

// TestEachPostIsARedirect: Back and reload repeat nothing, and show what was written to who wrote it alone.
func TestEachPostIsARedirect(t *testing.T) {
	s, below, _ := reviewing(t)
	run := s.world.begin(journal.DeadLetterFilter{Team: "cadastro"}, 60, "x")
	const written = "liguei <b>para</b> a operadora"
	for at, form := range map[string]url.Values{
		"/dead-letters/" + below.ID + "/retry":    {"how": {"next"}, "when": {"never"}, "reason": {written}},
		"/dead-letters/" + below.ID + "/discard":  {"reason": {strings.Repeat(written, 50)}},
		"/causes/" + below.Fingerprint + "/teach": {"reason": {written}},
		"/bulk-runs":                    {"why": {written}, "all": {"yes"}},
		"/bulk-runs/new":                {"why": {written}},
		"/bulk-runs/" + run + "/resume": {},
	} {
		w := s.send(at, form)
		to, _, _ := strings.Cut(w.Header().Get("Location"), "#")
		if w.Code != http.StatusSeeOther || strings.Contains(to, "liguei") {
			t.Errorf("%s is answered %d %s", at, w.Code, to)
			continue
		}
		writer := *s
		writer.header = http.Header{}
		writer.keep(w.Header())
		for range 2 { // and when it is loaded anew
			d := writer.doc(writer.get(to), writer.get(to).Code)
			if said := text(d.tags("main")[0]); len(form) > 0 && !strings.Contains(said, written) || len(form) == 0 && d.id("wrong") == nil {
				t.Errorf("%s leads to a page that says %s", at, said)
			}
		}
		if d := s.doc(s.get(to), s.get(to).Code); d.says("liguei") {
			t.Errorf("%s: another browser reads what was written", to)
		}
	}
}
