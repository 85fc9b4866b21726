package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/console"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

var now = time.Date(2026, 3, 2, 15, 0, 0, 0, time.UTC)

// brasilia is the hospital's zone.
var brasilia = time.FixedZone("America/Sao_Paulo", -3*3600)

func subjectAddress(policy, id string) string {
	return "/subjects/" + policy + "/" + url.PathEscape(id)
}

func portalAddress(name string) string { return "/destinations/" + url.PathEscape(name) }

// addresses of every kind of page of the sample.
func addresses() []string {
	return []string{
		"/", "/dead-letters", "/dead-letters?state=all", "/dead-letters?state=recovered", "/dead-letters?state=discarded", "/dead-letters?q=nothing-is-called-so",
		subjectAddress("tiss-submission", deadID), subjectAddress("tiss-submission", permanentID), subjectAddress("tiss-submission", longStoryID),
		subjectAddress("tiss-submission", "CLM-2026-004901"), subjectAddress("whatsapp-message", hostileID), subjectAddress("job-queue", "import-lote-2219"),
		"/dead-letters/groups", "/dead-letters/groups?q=credential&team=ti", "/dead-letters?since=2026-03-02T08:00&until=2026-03-02T12:00",
		"/bulk-runs", "/bulk-runs/new", "/bulk-runs/new?team=ti&perMinute=30", "/bulk-runs/new?action=discard&reason=INSURANCE_EXPIRED", "/bulk-runs/new?q=nothing-is-called-so",
		"/destinations", portalAddress(portalName), portalAddress(hostileID), subjectAddress("tiss-submission", heldID), subjectAddress("tiss-submission", passedID),
		"/policies", "/audit", "/audit?policy=tiss-submission&id=" + deadID,
	}
}

func TestEveryPageIsSoundInBothLanguages(t *testing.T) {
	s := open(t, sample(t))
	for _, lang := range []string{"pt-BR", "en"} {
		s.lang = lang
		for _, role := range []access.Role{access.Viewer, access.Admin} {
			for _, address := range addresses() {
				if got := attr(s.as(role).page(address).tags("html")[0], "lang"); got != lang {
					t.Errorf("%s says that it is in %q, want %s", address, got, lang)
				}
			}
		}
	}
}

// TestEveryLinkLeadsSomewhere walks the site from the overview on.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	s := open(t, sample(t))
	seen, left := map[string]bool{"/": true}, []string{"/"}
	for len(left) > 0 && len(seen) < 400 {
		address := left[0]
		left = left[1:]
		w := s.get(address)
		if w.Code != http.StatusOK && w.Code != http.StatusSeeOther {
			t.Errorf("%s answers %d", address, w.Code)
			continue
		}
		if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
			continue
		}
		d := s.doc(w, w.Code)
		for _, n := range d.tags("a", "link", "script") {
			to := attr(n, "href") + attr(n, "src")
			page, fragment, _ := strings.Cut(to, "#")
			if page == "" && fragment != "" && d.id(fragment) == nil {
				t.Errorf("%s: there is no #%s", address, fragment)
			}
			if page != "" && !seen[page] {
				seen[page] = true
				left = append(left, page)
			}
		}
	}
	if len(seen) < 60 {
		t.Errorf("found %d addresses only", len(seen))
	}
}

func TestHostileTextsAreShownInert(t *testing.T) {
	w := sample(t)
	s := open(t, w)
	run := "019c0000-0000-7000-8000-00000000000b"
	_, err := w.Journal.Bulk(t.Context(), &journal.BulkStep{Verb: journal.BulkStart, By: hostile, Run: journal.BulkRun{ID: run, Through: 1 << 40, BulkCommand: journal.BulkCommand{
		Action: journal.BulkRetry, PerMinute: 60, Reason: hostile, By: hostile, Filter: journal.DeadLetterFilter{Policy: "<b>", Team: "<b>", Reason: "<b>", Query: hostile}}}})
	testkit.Must(t, err)
	refused := w.StartBulk(journal.BulkCommand{Action: journal.BulkDiscard, Filter: journal.DeadLetterFilter{Query: hostileID}, Reason: "x", By: "marta.lima"})
	testkit.Must(t, w.Journal.RefuseBulkItem(t.Context(), refused, 1, "<b>"))
	for _, address := range []string{"/", "/bulk-runs", "/bulk-runs/" + run, "/bulk-runs/" + refused, subjectAddress("whatsapp-message", hostileID), "/dead-letters?q=alert", subjectAddress("no-retry", hostileID), "/audit", "/destinations", portalAddress(hostileID),
		"/dead-letters?q=" + url.QueryEscape(hostile), "/audit?policy=failed-job&id=" + url.QueryEscape("\"><script>alert(3)</script>"), "/dead-letters?state=all&team=" + url.QueryEscape("<b>"),
		"/dead-letters/groups", "/dead-letters/groups?reason=" + url.QueryEscape("<b>"), "/bulk-runs/new", "/bulk-runs/new?fingerprint=" + url.QueryEscape("<b>"), "/bulk-runs/new?q=" + url.QueryEscape(hostile)} {
		status := http.StatusOK
		if strings.HasPrefix(address, "/bulk-runs/new?fingerprint=") { // of which there is none
			status = http.StatusUnprocessableEntity
		}
		d := s.doc(s.get(address), status)
		d.inert(address)
	}
	if rows := s.page("/dead-letters?q=alert").pick(".row-link"); len(rows) != 1 || text(rows[0]) != hostileID {
		t.Errorf("the list has %d rows of it", len(rows))
	}
	d := s.page(subjectAddress("whatsapp-message", hostileID))
	if got := text(d.tags("h1")[0]); got != hostileID {
		t.Errorf("the heading is %q", got)
	}
	d.mustSay("<script>alert(1)</script>", `\x1B`, "U+202E")
}

// inert fails the test where somebody's text has become markup, or acts as it stands.
func (d *doc) inert(address string) {
	d.t.Helper()
	if len(d.tags("script")) != 1 || len(d.tags("b", "img")) > 0 {
		d.t.Errorf("%s has markup of somebody's", address)
	}
	if at := strings.IndexFunc(d.raw, func(r rune) bool { return r < ' ' && r != '\n' || r == '\u202e' || r == '\u200b' || r == 0x7f }); at >= 0 {
		d.t.Errorf("%s holds a character as it is: %q", address, d.raw[at:][:4])
	}
}

func TestALargeErrorIsCut(t *testing.T) {
	w := newWorld(t, now)
	w.Fail("failed-job", "job-1", strings.Repeat("<é\x1b>", 200_000), -1)
	for _, address := range []string{subjectAddress("failed-job", "job-1"), "/audit"} {
		if d := open(t, w).page(address); len(d.raw) > 400<<10 {
			t.Errorf("%s has %d bytes", address, len(d.raw))
		}
	}
}

// TestInstantsAreExact: behind what a reader sees of an instant stands which it is; a retry that lies ahead has a countdown.
func TestInstantsAreExact(t *testing.T) {
	s := open(t, sample(t))
	for _, n := range s.page(subjectAddress("tiss-submission", longStoryID)).tags("time") {
		if _, err := time.Parse(time.RFC3339, attr(n, "datetime")); err != nil || !strings.HasSuffix(attr(n, "title"), " UTC") {
			t.Errorf("an instant has datetime %q and title %q", attr(n, "datetime"), attr(n, "title"))
		}
	}
	ahead := s.page(subjectAddress("tiss-submission", "CLM-2026-004901"))
	if n := len(ahead.pick("strong/[data-kind=in]")); n != 1 {
		t.Errorf("a retry that lies ahead has %d countdowns", n)
	}
}

// onlyHead is a journal of which nothing but the ledger's head can be read.
type onlyHead struct {
	console.Source
	head *testkit.Memory
}

func (h onlyHead) Head(ctx context.Context) (journal.Head, error) { return h.head.Head(ctx) }

// TestAnOpenPageCostsTheHeadAlone: what did not change, but for ages, is answered before anything else is read (a nil Source panics).
// It is sent to another reader, a minute later, and when something changed.
func TestAnOpenPageCostsTheHeadAlone(t *testing.T) {
	s := open(t, sample(t))
	for _, address := range []string{"/", "/dead-letters", "/dead-letters/groups", "/bulk-runs", "/audit", "/policies", subjectAddress("tiss-submission", deadID)} {
		seen := func() {
			s.header = http.Header{}
			s.header.Set("If-None-Match", s.get(address).Header().Get("ETag"))
		}
		seen()
		s.world.Advance(7 * time.Second)
		blind := s.world.Services()
		blind.DeadLetters = nil
		s.pages.Open(onlyHead{head: s.world.Memory}, guard.New(blind))
		if w := s.get(address); w.Code != http.StatusNotModified || w.Body.Len() > 0 || w.Header().Get("Date") != s.world.Now().UTC().Format(http.TimeFormat) {
			t.Errorf("%s is answered %d, at %s", address, w.Code, w.Header().Get("Date"))
		}
		s.pages.Open(s.world.Memory, guard.New(s.world.Services()))
		for what, change := range map[string]func(){
			"another reader": func() { s.who.Name += "x" }, "a minute later": func() { s.world.Advance(time.Minute) },
			"something changed": func() { s.world.Fail("tiss-submission", "CLM-T-7", "INSURANCE_EXPIRED", -1) },
		} {
			if seen(); s.get(address).Code != http.StatusNotModified {
				t.Errorf("%s is sent again", address)
			}
			if change(); s.get(address).Code != http.StatusOK {
				t.Errorf("%s is not sent: %s", address, what)
			}
		}
	}
}

func TestAssetsAreKeptForGood(t *testing.T) {
	s := open(t, newWorld(t, now))
	for _, n := range s.page("/").tags("link", "script") {
		w := s.get(attr(n, "href") + attr(n, "src"))
		if w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d %v", attr(n, "href"), w.Code, w.Header())
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
		for _, code := range []string{"form_expired", "forbidden_role", "forbidden_origin", "unsupported_media_type"} {
			d := ask(func(w http.ResponseWriter, r *http.Request) {
				s.pages.Refuse(w, r, access.Refusal{Status: 403, Code: code, Message: "the program's word"})
			})
			if strings.Contains(d.raw, "the program&#39;s word") != (code == "unsupported_media_type") {
				t.Errorf("%s is not said in the reader's words", code)
			}
		}
		d := ask(func(w http.ResponseWriter, r *http.Request) {
			s.pages.Login(w, r, access.Login{Next: `/dead-letters?q="<b>`, Refusal: &access.Refusal{Status: 401, Code: "token_unknown"}})
		})
		if got := d.show("[name=next]@value") + " " + d.show("[type=password][aria-invalid=true]@name"); got != `/dead-letters?q="<b> token` {
			t.Errorf("the log-in form has %s", got)
		}
		slowed := ask(func(w http.ResponseWriter, r *http.Request) {
			s.pages.Login(w, r, access.Login{Next: "/", Refusal: &access.Refusal{Status: 429, Code: "too_many_attempts"}})
		})
		slowed.mustSay(map[string]string{"pt-BR": "Muitas tentativas com código errado", "en": "Too many wrong tokens"}[lang])
		if len(d.tags("nav")) > 0 {
			t.Error("nobody sees the pages' names")
		}
	}
}

// TestTimesAreInTheHospitalsZone, which each page names, whatever the reader's browser is set to.
func TestTimesAreInTheHospitalsZone(t *testing.T) {
	s := open(t, sample(t))
	story, _, _ := s.world.Memory.Story(t.Context(), journal.Subject{Tenant: journal.DefaultTenant, Policy: "tiss-submission", ID: longStoryID})
	first := story.Attempts[0].Decision.AnalysedAt
	d := s.page(subjectAddress("tiss-submission", longStoryID))
	d.mustSay(first.Add(-3*time.Hour).Format("2 Jan 2006 15:04:05"), "Times of Brasília")
	if zone := attr(d.tags("body")[0], "data-zone"); zone != "America/Sao_Paulo" {
		t.Errorf("the script is told the zone %q", zone)
	}
}

// TestPagesAreSmall: the policies and the longest list, as they are sent, are 40 kB at most.
func TestPagesAreSmall(t *testing.T) {
	s := open(t, sample(t))
	s.header.Set("Accept-Encoding", "gzip")
	style := attr(open(t, newWorld(t, now)).page("/").tags("link")[0], "href")
	for _, address := range []string{"/", "/policies", "/dead-letters?state=all", style} {
		if w := s.get(address); w.Header().Get("Content-Encoding") != "gzip" || w.Body.Len() > 40_000 {
			t.Errorf("%s is sent as %q with %d bytes", address, w.Header().Get("Content-Encoding"), w.Body.Len())
		}
	}
}

// TestALanguageIsChosen for the pages that follow, by a cookie which over TLS is for TLS alone.
func TestALanguageIsChosen(t *testing.T) {
	s := open(t, newWorld(t, now))
	s.header.Set("X-Forwarded-Proto", "https")
	if c := s.get("/?lang=pt-BR").Result().Cookies()[0]; !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
		t.Errorf("over TLS the cookie is %v", c)
	}
	s.header.Set("Cookie", "lang=xx")
	s.page("/").mustSay("Overview")
}
