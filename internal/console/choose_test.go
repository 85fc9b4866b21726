package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"retry-worker/internal/access"
)

// TestDeadLettersAreChosen: those that are ticked are planned and started together, and nobody who ticks none acts on all.
func TestDeadLettersAreChosen(t *testing.T) {
	s, _, _ := planned(t)
	ticks := func() []*html.Node {
		return s.page("/dead-letters?q=CLM-T-00").all(func(n *html.Node) bool { return attr(n, "name") == "ids" && attr(n, "form") == "chosen" })
	}
	all := ticks()
	if len(all) != 38 {
		t.Fatalf("%d can be ticked, want 38", len(all))
	}
	two := url.Values{"ids": {"", attr(all[3], "value"), attr(all[5], "value")}}
	plan := s.page("/bulk-runs/new?" + two.Encode())
	plan.mustSay("Found 2", "Chosen 2")
	s.doc(s.post("/bulk-runs", with(plan.form("start"), "why", "Senha trocada.")), http.StatusSeeOther)
	if run := s.world.runs(t)[0]; run.Filter.IDs != two["ids"][1]+","+two["ids"][2] {
		t.Errorf("the run is for %q", run.Filter.IDs)
	}
	if none := s.doc(s.get("/bulk-runs/new?ids="), http.StatusUnprocessableEntity); !none.says("No dead letter was chosen") || none.id("start") != nil {
		t.Error("whoever ticks none plans for all")
	}
	if s = s.as(access.Viewer); len(ticks()) > 0 {
		t.Error("a viewer ticks")
	}
}

// TestViewsAreSaved: a filter is a chip, which its link takes away; a list is saved under a name, by the browser.
func TestViewsAreSaved(t *testing.T) {
	s := open(t, sampleDead(t, now))
	list := s.page("/dead-letters?team=ti&sort=deadline&reason=MAX_RETRIES")
	if chip := list.link("Take away the filter Team: IT (ti)"); chip == nil || attr(chip, "href") != "/dead-letters?reason=MAX_RETRIES&sort=deadline" {
		t.Errorf("the team's chip is %v", chip)
	}
	w := s.get("/dead-letters?team=ti&sort=deadline&save=IT+first")
	cookie, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
	s.leads(w, "/dead-letters?sort=deadline&team=ti")
	s.header.Set("Cookie", cookie)
	saved := s.page("/dead-letters").link("IT first")
	if saved == nil || attr(saved, "href") != "/dead-letters?sort=deadline&team=ti" {
		t.Fatalf("the saved view is %v", saved)
	}
	cookie, _, _ = strings.Cut(s.get("/dead-letters?forget=IT+first").Header().Get("Set-Cookie"), ";")
	if s.header.Set("Cookie", cookie); s.page("/dead-letters").link("IT first") != nil {
		t.Error("what was forgotten is listed")
	}
	if s.header.Set("Cookie", "views=e30"); s.page("/dead-letters").link("IT first") != nil {
		t.Error("a view of nobody is listed")
	}
}
