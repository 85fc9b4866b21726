package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"retry-worker/internal/access"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// groupFilter chooses the biggest cause of a site.
func groupFilter(s *site) journal.DeadLetterFilter {
	groups, _, err := s.world.DeadLetters.Groups(s.t.Context(), journal.DeadLetterFilter{}, "", 1)
	if err != nil || len(groups) != 1 {
		s.t.Fatal("no group ", err)
	}
	return journal.DeadLetterFilter{Fingerprint: groups[0].Cause.ID}
}

// form as a browser would send it: what stands in its fields.
func (d *doc) form(id string) url.Values {
	d.t.Helper()
	form := d.id(id)
	if form == nil {
		d.t.Fatalf("there is no form %s", id)
	}
	values := url.Values{}
	for _, n := range d.all(func(n *html.Node) bool { return attr(n, "form") == id || !has(n, "form") && within(n, form) }) {
		if n.Type != html.ElementNode || attr(n, "name") == "" {
			continue
		}
		if kind := attr(n, "type"); (kind == "radio" || kind == "checkbox") && !has(n, "checked") {
			continue
		}
		value := attr(n, "value")
		if n.Data == "textarea" {
			value = text(n)
		}
		values.Add(attr(n, "name"), value)
	}
	return values
}

func with(form url.Values, pairs ...string) url.Values {
	for i := 0; i < len(pairs); i += 2 {
		form.Set(pairs[i], pairs[i+1])
	}
	return form
}

// planned is a site with a cause of 40 claims, of which two cannot be retried, and its plan.
func planned(t *testing.T) (s *site, at string, d *doc) {
	w := newWorld(t, now)
	w.locked(38)
	for _, id := range []string{"CLM-T-LATE-1", "CLM-T-LATE-2"} { // no process has come for them
		w.fails("tiss-submission", id, "LoginInvalido: usuário 7 bloqueado")
	}
	s = open(t, w)
	at = "/bulk-runs/new?fingerprint=" + groupFilter(s).Fingerprint
	return s, at, s.page(at)
}

func TestAPlanSaysWhatWouldHappen(t *testing.T) {
	s, at, d := planned(t)
	s.hold("plan", at, at+"&action=discard&perMinute=7")
	if len(s.world.runs(t)) > 0 {
		t.Error("a plan began a run")
	}
	// Other settings are another plan, which keeps what was written.
	again := s.doc(s.post("/bulk-runs/new", with(d.form("start"), "perMinute", "2", "how", "force", "when", "now", "why", "senha trocada")), http.StatusOK)
	if form := again.form("start"); !again.says("Takes 19 min") || form.Get("perMinute") != "2" || form.Get("how") != "force" || form.Get("when") != "now" || form.Get("why") != "senha trocada" {
		t.Errorf("the settings are lost: %v", form)
	}
	discard := s.doc(s.post("/bulk-runs/new", with(d.form("start"), "action", "discard")), http.StatusOK)
	discard.mustSay("Discard 40 for good", "cannot be undone")
	if s.get(at).Header().Get("ETag") != "" {
		t.Error("a plan is made anew every five seconds")
	}
}

func TestAPlanIsStarted(t *testing.T) {
	s, _, d := planned(t)
	w := s.post("/bulk-runs", with(d.form("start"), "why", "Senha trocada com a operadora."))
	s.leads(w, "/bulk-runs/"+s.world.runs(t)[0].ID+"#result")
	c := s.world.runs(t)[0]
	if c.Reason != "Senha trocada com a operadora." || c.By != "ana.souza" || c.Action != journal.BulkRetry || c.PerMinute != 60 || c.Force || c.Fresh || c.When == deadletter.Now || c.Filter != groupFilter(s) {
		t.Errorf("what was started is %+v", c)
	}
	to, _, _ := strings.Cut(w.Header().Get("Location"), "#")
	s.page(to).mustSay("Retry of 40 dead letters running")
}

func TestAPlanThatNoLongerHoldsSaysWhatChanged(t *testing.T) {
	s, _, d := planned(t)
	first := d.form("start")
	item := s.world.letterOf(t, "CLM-T-0003")
	_, err := s.world.DeadLetters.Decide(t.Context(), deadletter.Command{Action: journal.BulkDiscard, ID: item.ID, Reason: "paga", By: "marta.lima"})
	testkit.Must(t, err)
	d = s.doc(s.post("/bulk-runs", with(first, "why", "Senha trocada.")), http.StatusConflict)
	if got := text(d.id("changed")); !strings.Contains(got, "40 fitted the filter and 38 would be decided; now they are 39 and 37") {
		t.Errorf("it says %q", got)
	}
	second := d.form("start")
	if len(s.world.runs(t)) > 0 || second.Get("why") != "Senha trocada." || second.Get("token") == first.Get("token") {
		t.Error("something was started, or what was written is lost")
	}
	s.doc(s.post("/bulk-runs", second), http.StatusSeeOther)
}

func TestWhatIsWrongStandsBesideThePlan(t *testing.T) {
	s, at, d := planned(t)
	none := s.doc(s.post("/bulk-runs", with(d.form("start"), "why", " ")), http.StatusUnprocessableEntity)
	wrong := text(none.id("wrong"))
	if !strings.Contains(wrong, "write the reason") || attr(none.field("why"), "aria-invalid") != "true" || none.id("changed") != nil {
		t.Errorf("without a reason it says %s", wrong)
	}
	for _, pace := range []string{"0", "-1", "6001", "2.5", "x", "99999999999999999999"} {
		d := s.doc(s.get(at+"&perMinute="+pace), http.StatusUnprocessableEntity)
		if !d.says("whole number from 1 to 6000") || d.id("start") != nil || attr(d.field("perMinute"), "value") != pace {
			t.Errorf("a pace of %s is planned, or not said to be wrong", pace)
		}
	}
	s.world.Memory.SetDown(true)
	unknown := s.doc(s.post("/bulk-runs", with(d.form("start"), "why", "x")), http.StatusServiceUnavailable)
	unknown.mustSay("The run may not have begun")
	unknown.mustNotSay("the store is down")
	s.doc(s.get(at), http.StatusServiceUnavailable).mustSay("The data cannot be read now")
}

func TestNothingAndEverythingAreSaid(t *testing.T) {
	s, _, _ := planned(t)
	d := s.page("/bulk-runs/new?q=nothing-is-called-so")
	if !d.says("No open dead letter fits this filter.") || d.id("start") != nil {
		t.Error("nothing is not said")
	}
	for _, address := range []string{"/bulk-runs/new", "/bulk-runs/new?policy=tiss-submission"} {
		d = s.page(address)
		if d.id("everything") == nil || !d.says("This is all that is open: 41 dead letters.") {
			t.Errorf("%s does not say that it is everything", address)
		}
		form := with(d.form("start"), "why", "Tudo corrigido.")
		d = s.doc(s.post("/bulk-runs", form), http.StatusUnprocessableEntity)
		if !strings.Contains(text(d.id("wrong")), "tick the confirmation") || len(s.world.runs(t)) > 0 {
			t.Errorf("%s was started without being confirmed", address)
		}
	}
	s.doc(s.post("/bulk-runs", with(d.form("start"), "everything", "yes")), http.StatusSeeOther)
}

// Who may start a run: the page says who else where the reader may not, and so does the refusal. TestWhoMayWhat
// (internal/api) has all that is refused.
func TestWhoStartsAndSteers(t *testing.T) {
	s, at, _ := planned(t)
	run := s.world.StartBulk(journal.BulkCommand{Action: journal.BulkRetry, Filter: journal.DeadLetterFilter{Team: "ti"}, Reason: "x", By: "ada"})
	for _, c := range []struct {
		role              access.Role
		teams             access.Teams
		filter            string
		words, wordsAfter string // none: it may be started
	}{
		{access.Viewer, "", "&team=ti", "plans but does not start", "bulk runs, a role bound to the team"},
		{access.Operator, "", "&team=ti", "plans but does not start", "bulk runs, a role bound to the team"},
		{access.Operator, "faturamento", "&team=ti", "You can start for your own team only: choose it in the filter (Billing (faturamento))", "belongs to another team"},
		{access.Operator, "ti", "", "You can start for your own team only", "belongs to another team"},
		{access.Operator, "ti", "&team=ti&how=fresh", "plans but does not start", "starting over, admin"},
		{access.Operator, "ti,faturamento", "&team=ti&how=force", "", ""},
		{access.Admin, "", "&how=fresh", "", ""},
		{access.Admin, "faturamento", "&team=ti", "You can start for your own team only", "belongs to another team"},
	} {
		other := s.as(c.role)
		other.who.Teams = c.teams
		page := other.page(at + c.filter)
		if page.mustSay(c.words); (page.id("start") != nil) != (c.words == "") || page.id("settings") == nil {
			t.Errorf("%s of %q plans %s: start %t", c.role, c.teams, c.filter, page.id("start") != nil)
		}
		query, _ := url.ParseQuery(strings.SplitN(at+c.filter, "?", 2)[1])
		if query.Set("why", "x"); c.words != "" {
			refused := other.doc(other.post("/bulk-runs", query), http.StatusForbidden)
			refused.mustSay(c.wordsAfter)
		}
	}
	other := s.as(access.Operator)
	other.doc(other.post("/bulk-runs/"+run+"/pause", nil), http.StatusForbidden).mustSay("bulk runs, a role bound to the team")
	if state := s.world.run(t, run).State; state != journal.BulkRunning {
		t.Errorf("the run is %s", state)
	}
}

func TestForgedFormsAreRefused(t *testing.T) {
	s, _, d := planned(t)
	good := d.form("start")
	for what, form := range map[string]url.Values{
		"a time that is none": with(d.form("start"), "since", "yesterday", "why", "x"), "a token of another": with(d.form("start"), "token", "x", "why", "x"),
		"another pace": with(d.form("start"), "perMinute", "6000", "why", "x"), "nothing at all": {},
	} {
		if w := s.post("/bulk-runs", form); w.Code < 400 || w.Code >= 500 {
			t.Errorf("%s: got %d", what, w.Code)
		}
	}
	if len(s.world.runs(t)) > 0 || len(good) == 0 {
		t.Error("something was started")
	}
	nothing, err := s.world.DeadLetters.Plan(t.Context(), journal.BulkCommand{Action: journal.BulkRetry, Filter: journal.DeadLetterFilter{Query: "nothing-is-called-so"}, PerMinute: 60})
	testkit.Must(t, err)
	good.Del("fingerprint")
	none := with(good, "why", "x", "q", "nothing-is-called-so", "token", nothing.Token)
	s.doc(s.post("/bulk-runs", none), 422).mustSay("none is left to be decided")
}
