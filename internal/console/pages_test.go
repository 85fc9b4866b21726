package console_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"golang.org/x/net/html"

	"retry-worker/internal/access"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/console"
	"retry-worker/internal/journal"
)

var now = time.Date(2026, 3, 2, 15, 0, 0, 0, time.UTC)

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
		"/kpis", "/bulk-runs", "/bulk-runs/new", "/bulk-runs/new?team=ti&perMinute=30", "/bulk-runs/new?action=discard&reason=INSURANCE_EXPIRED", "/bulk-runs/new?q=nothing-is-called-so",
		"/destinations", portalAddress(portalName), portalAddress(hostileID), subjectAddress("tiss-submission", heldID), subjectAddress("tiss-submission", passedID),
		"/policies", "/audit", "/audit?policy=tiss-submission&id=" + deadID,
	}
}

func TestEveryPageIsSoundInBothLanguages(t *testing.T) {
	s := open(t, sampleDead(t, now))
	for _, lang := range []string{"pt-BR", "en"} {
		s.lang = lang
		for _, role := range []access.Role{access.Viewer, access.Admin} {
			for _, address := range addresses() {
				checkPage(t, s.as(role).page(address), address, lang)
			}
		}
	}
}

func TestEveryEmptyPageSaysWhatWillAppear(t *testing.T) {
	s := open(t, newWorld(t, now))
	for _, lang := range []string{"pt-BR", "en"} {
		s.lang = lang
		for _, address := range []string{"/", "/dead-letters", "/dead-letters?state=reprocessing", "/dead-letters?state=recovered", "/dead-letters?state=discarded", "/dead-letters?state=all", "/dead-letters/groups", "/bulk-runs", "/destinations", "/audit"} {
			d := s.page(address)
			checkPage(t, d, address, lang)
			empty := d.all(func(n *html.Node) bool { return attr(n, "class") == "empty" })
			if len(empty) == 0 {
				t.Errorf("%s (%s) says nothing", address, lang)
			}
			for _, e := range empty {
				if word := map[string]string{"pt-BR": "aparece", "en": " appear"}[lang]; !strings.Contains(text(e), word) {
					t.Errorf("%s (%s) does not say what will appear: %s", address, lang, text(e))
				}
			}
		}
	}
}

// TestEveryLinkLeadsSomewhere walks the site from the overview on.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	s := open(t, sampleDead(t, now))
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
	s := open(t, sampleDead(t, now))
	for _, address := range []string{subjectAddress("whatsapp-message", hostileID), "/dead-letters?q=alert", subjectAddress("no-retry", hostileID), "/audit", "/destinations", portalAddress(hostileID),
		"/dead-letters?q=" + url.QueryEscape(hostile), "/audit?policy=failed-job&id=" + url.QueryEscape("\"><script>alert(3)</script>"), "/dead-letters?state=all&team=" + url.QueryEscape("<b>"),
		"/dead-letters/groups", "/dead-letters/groups?reason=" + url.QueryEscape("<b>"), "/bulk-runs/new", "/bulk-runs/new?fingerprint=" + url.QueryEscape("<b>"), "/bulk-runs/new?q=" + url.QueryEscape(hostile)} {
		status := http.StatusOK
		if strings.HasPrefix(address, "/bulk-runs/new?fingerprint=") { // of which there is none
			status = http.StatusUnprocessableEntity
		}
		d := s.doc(s.get(address), status)
		checkPage(t, d, address, "en")
		if n := len(d.tags("script")); n != 1 {
			t.Errorf("%s has %d scripts", address, n)
		}
		if n := len(d.tags("b", "img")); n > 0 {
			t.Errorf("%s has markup of the error's", address)
		}
		for _, r := range d.raw {
			if r < ' ' && r != '\n' || r == '\u202e' || r == '\u200b' || r == 0x7f {
				t.Errorf("%s holds the character %U as it is", address, r)
				break
			}
		}
	}
	if rows := s.page("/dead-letters?q=alert").all(func(n *html.Node) bool { return attr(n, "class") == "row-link" }); len(rows) != 1 || text(rows[0]) != hostileID {
		t.Errorf("the list has %d rows of it", len(rows))
	}
	d := s.page(subjectAddress("whatsapp-message", hostileID))
	if got := text(d.tags("h1")[0]); got != hostileID {
		t.Errorf("the heading is %q", got)
	}
	if !d.says("<script>alert(1)</script>") || !d.says(`\x1B`) || !d.says("U+202E") {
		t.Error("the error is not shown as it is")
	}
}

func TestALargeErrorIsCut(t *testing.T) {
	w := newWorld(t, now)
	w.fails("failed-job", "job-1", strings.Repeat("<é\x1b>", 200_000))
	for _, address := range []string{subjectAddress("failed-job", "job-1"), "/audit"} {
		if d := open(t, w).page(address); len(d.raw) > 400<<10 {
			t.Errorf("%s has %d bytes", address, len(d.raw))
		}
	}
}

func TestTheOverviewSaysWhoShouldAct(t *testing.T) {
	s := open(t, sampleDead(t, now))
	d := s.page("/")
	open := 0
	for _, item := range s.world.items() {
		if item.State == journal.DeadLetterOpen {
			open++
		}
	}
	if !strings.Contains(text(d.id("overview")), "Open dead letters "+strconv.Itoa(open)) {
		t.Errorf("the overview does not say %d", open)
	}
	if d.id("alert") != nil {
		t.Error("there is an alert below 100")
	}
	for _, words := range []string{"Billing (faturamento)", "Retry limit reached", "Registration (cadastro)", "Success rate", "Zeebe engine working", "Version " + catalogue.Default().Version} {
		if !d.says(words) {
			t.Errorf("the overview does not say %q", words)
		}
	}
	if !s.page("/kpis").says("target ≥ 80 % (RN-BIL-005)") {
		t.Error("the page of the key figures does not say what they are to be")
	}
	for _, row := range []string{"Failures", "Retried", "Became dead letters", "Held for a destination"} { // each with what it is drawn by
		if n := len(d.all(func(n *html.Node) bool { return n.Data == "th" && text(n) == row })); n != 3 {
			t.Errorf("%s stands %d times", row, n)
		}
	}
	links := d.all(func(n *html.Node) bool {
		return n.Data == "a" && strings.Contains(attr(n, "href"), "team=ti") && text(n) == "Invalid user or password"
	})
	if len(links) != 1 {
		t.Fatalf("%d links lead to TI's credentials", len(links))
	}
	rows := s.page(attr(links[0], "href")).all(func(n *html.Node) bool { return attr(n, "class") == "row-link" })
	if len(rows) != 3 {
		t.Errorf("they are %d dead letters, want 3", len(rows))
	}
}

// TestTheOverviewSaysForWhomNobodyIsTold: teams that have neither an address nor a webhook, in the reader's language.
func TestTheOverviewSaysForWhomNobodyIsTold(t *testing.T) {
	const some = "extends: built-in\nteams: {ti: {email: [ti@h.example]}, atendimento: {webhook: {url: https://h.example, secretFile: /s}}"
	for _, tt := range []struct{ file, lang, want string }{
		{some + "}", "en", "Nobody is told of dead letters of: Registration (cadastro), Billing (faturamento)."},
		{some + "}", "pt-BR", "Ninguém é avisado das pendências de: "},
		{some + ", cadastro: {email: [c@h.example]}, faturamento: {email: [f@h.example]}}", "en", ""},
	} {
		c, err := catalogue.Parse("policies.yaml", []byte(tt.file))
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, now)
		s := open(t, w)
		s.lang = tt.lang
		s.pages = console.New(console.Options{Now: w.Now, Catalogue: func() *catalogue.Catalogue { return c }, Log: zap.NewNop()})
		s.pages.Open(w.Memory, w.DeadLetters, w.DeadLetters, w.Gates())
		if notice := s.page("/").id("untold"); (notice == nil) != (tt.want == "") || notice != nil && !strings.Contains(text(notice), tt.want) {
			t.Errorf("by %s the overview says %v, want %q", tt.file, notice, tt.want)
		}
	}
}

// TestTheOverviewSaysWhoIsNotTold: a mail server that is down is seen before somebody misses a message.
func TestTheOverviewSaysWhoIsNotTold(t *testing.T) {
	s := open(t, sampleDead(t, now))
	const untold = "Message to team Registration (cadastro) not sent yet"
	if d := s.page("/"); d.says(untold) {
		t.Error("a message is missed that nobody made")
	}
	s.untold = []console.Notice{{Team: "cadastro", Way: "email", Since: now.Add(-20 * time.Minute), Failure: "mail.hospital.example:25: connection refused <b>"}}
	d := s.page("/")
	for _, words := range []string{untold, "20 min ago", "By e-mail; it will be tried again. Details mail.hospital.example:25: connection refused <b>"} {
		if !d.says(words) {
			t.Errorf("the overview does not say %q in\n%s", words, text(d.id("health").Parent))
		}
	}
	s.untold = slices.Repeat(s.untold, 9)
	if n := strings.Count(text(s.page("/").root), untold); n != 3 {
		t.Errorf("it names %d of nine, expected 3", n)
	}
}

func TestMoreThanAHundredIsAnAlert(t *testing.T) {
	w := newWorld(t, now)
	for i := range 100 {
		w.fails("tiss-submission", "CLM-T-"+strconv.Itoa(i), "INSURANCE_EXPIRED")
	}
	s := open(t, w)
	if s.page("/").id("alert") != nil {
		t.Error("100 are an alert")
	}
	w.fails("tiss-submission", "CLM-T-100", "INSURANCE_EXPIRED")
	if d := s.page("/"); d.id("alert") == nil || !d.says("101 open dead letters") {
		t.Error("101 are no alert")
	}
}

func TestFiltersOutlivePaging(t *testing.T) {
	w := newWorld(t, now)
	for i := range 130 {
		w.Advance(time.Second)
		w.fails("tiss-submission", "CLM-T-"+strconv.Itoa(i), []string{"INSURANCE_EXPIRED", "INVALID_PATIENT_DATA"}[i%2])
	}
	s := open(t, w)
	address, seen := "/dead-letters?policy=tiss-submission&reason=INSURANCE_EXPIRED&q=CLM", map[string]bool{}
	for page := 1; address != ""; page++ {
		d := s.page(address)
		for _, n := range d.all(func(n *html.Node) bool { return attr(n, "class") == "row-link" }) {
			if seen[text(n)] {
				t.Errorf("%s comes twice", text(n))
			}
			seen[text(n)] = true
		}
		if got := attr(d.field("q"), "value"); got != "CLM" {
			t.Errorf("page %d searches for %q", page, got)
		}
		chosen := d.all(func(n *html.Node) bool { return n.Data == "option" && has(n, "selected") })
		if len(chosen) != 2 || attr(chosen[0], "value") != "tiss-submission" || attr(chosen[1], "value") != "INSURANCE_EXPIRED" {
			t.Errorf("page %d lost its filter", page)
		}
		next := d.all(func(n *html.Node) bool { return attr(n, "rel") == "next" })
		if address = ""; len(next) > 0 {
			address = attr(next[0], "href")
		}
		if page > 3 {
			t.Fatal("there is no end")
		}
	}
	if len(seen) != 65 {
		t.Errorf("%d dead letters, want 65", len(seen))
	}
	if w := s.get("/dead-letters?q=CLM&cursor=forged"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/dead-letters?q=CLM" {
		t.Errorf("a forged cursor leads to %d %s", w.Code, w.Header().Get("Location"))
	}
}

func TestADeadLettersIdLeadsToItsSubject(t *testing.T) {
	s := open(t, sampleDead(t, now))
	for _, item := range s.world.items() {
		w := s.get("/dead-letters/" + item.ID)
		to, err := url.Parse(w.Header().Get("Location"))
		if w.Code != http.StatusSeeOther || err != nil {
			t.Fatalf("%s: %d", item.ID, w.Code)
		}
		if d := s.page(to.RequestURI()); text(d.tags("h1")[0]) != item.Subject.ID {
			t.Errorf("%s leads to %s", item.Subject.ID, text(d.tags("h1")[0]))
		}
	}
	checkPage(t, s.doc(s.get("/dead-letters/none"), http.StatusNotFound), "/dead-letters/none", "en")
}

func TestTheStoryTellsAll(t *testing.T) {
	s := open(t, sampleDead(t, now))
	d := s.page(subjectAddress("tiss-submission", longStoryID))
	story := text(d.id("events"))
	at := -1
	for _, words := range []string{"Failure 1 analysed.", "Timeout waiting for", "Matched Timeout", "Retry 1 of 5. Waits 5 min, until", "Failure 6 analysed.", "Billing (faturamento)",
		"Retry limit reached (5)", "Sent again by a person.", "marta.lima", "Portal da operadora voltou", "The process took the decision.", "The process reported success."} {
		i := strings.Index(story, words)
		if i < at || i < 0 {
			t.Errorf("%q is not told, or not in its place", words)
		}
		at = max(at, i)
	}
	if pictures := d.all(func(n *html.Node) bool { return strings.HasPrefix(attr(n, "class"), "story ") }); len(pictures) != 2 {
		t.Errorf("%d pictures, want one for wide and one for narrow screens", len(pictures))
	}
	for _, n := range d.tags("time") {
		if _, err := time.Parse(time.RFC3339, attr(n, "datetime")); err != nil || !strings.HasSuffix(attr(n, "title"), " UTC") {
			t.Errorf("an instant has datetime %q and title %q", attr(n, "datetime"), attr(n, "title"))
		}
	}
	if d := s.page(subjectAddress("tiss-submission", "CLM-2026-004901")); !d.says("A retry is scheduled. Next retry in ") || len(d.all(func(n *html.Node) bool { return attr(n, "data-kind") == "in" && inside(n, "strong") })) != 1 {
		t.Error("a retry that lies ahead has no countdown")
	}
}

func TestAPermanentErrorSaysWhatToDo(t *testing.T) {
	d := open(t, sampleDead(t, now)).page(subjectAddress("tiss-submission", permanentID))
	for _, words := range []string{"Corrija os dados do paciente", "Registration (cadastro)", "INVALID_PATIENT_DATA"} {
		if !d.says(words) {
			t.Errorf("it does not say %q", words)
		}
	}
}

func TestAPageIsSentAgainOnlyWhenItChanged(t *testing.T) {
	s := open(t, sampleDead(t, now))
	for _, address := range []string{"/", "/dead-letters", subjectAddress("tiss-submission", longStoryID), "/dead-letters/groups", "/bulk-runs", "/audit", "/policies"} {
		s.header.Del("If-None-Match")
		tag := s.get(address).Header().Get("ETag")
		s.header.Set("If-None-Match", tag)
		s.world.Advance(7 * time.Second) // ages change
		if w := s.get(address); tag == "" || w.Code != http.StatusNotModified || w.Body.Len() > 0 {
			t.Errorf("%s is sent again (%d)", address, w.Code)
		}
	}
	s.header.Del("If-None-Match")
	tag := s.get("/").Header().Get("ETag")
	s.world.fails("tiss-submission", "CLM-T-7", "INSURANCE_EXPIRED")
	s.header.Set("If-None-Match", tag)
	if w := s.get("/"); w.Code != http.StatusOK {
		t.Errorf("what changed is not sent: %d", w.Code)
	}
	for _, address := range []string{"/", "/dead-letters"} {
		s.header.Del("If-None-Match")
		d := s.page(address)
		if summary := attr(d.tags("body")[0], "data-summary"); !strings.Contains(summary, "open dead letters") {
			t.Errorf("%s tells screen readers %q", address, summary)
		}
		if said := d.id("said"); said == nil || attr(said, "role") != "status" {
			t.Errorf("%s has no place to tell it", address)
		}
		if len(d.all(func(n *html.Node) bool { return has(n, "data-live") && attr(n, "id") == "" })) > 0 {
			t.Errorf("%s has a live part without an id", address)
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

func TestALongStoryIsBounded(t *testing.T) {
	w := newWorld(t, now)
	for range 230 {
		w.Advance(50 * time.Hour) // each begins anew
		w.fails("tiss-submission", "CLM-T-1", "HTTP 503")
	}
	d := open(t, w).page(subjectAddress("tiss-submission", "CLM-T-1"))
	checkPage(t, d, "a long story", "en")
	if n := len(d.all(func(n *html.Node) bool { return attr(n, "class") == "event" })); n != 200 || !d.says("The last 200 of 230 records") {
		t.Errorf("%d events are shown", n)
	}
}
