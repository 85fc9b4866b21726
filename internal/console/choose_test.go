package console_test

import (
	"net/http"
	"net/url"
	"slices"
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
	plan.mustSay("Found 2", "Selected 2")
	s.doc(s.post("/bulk-runs", with(plan.form("start"), "why", "Senha trocada.")), http.StatusSeeOther)
	items, err := s.world.Memory.BulkItems(t.Context(), s.world.runs(t)[0].ID, "", 0, 9)
	if err != nil || len(items) != 2 {
		t.Fatalf("the run has %+v (%v), want the two that were ticked", items, err)
	}
	for _, i := range items {
		if !slices.Contains(two["ids"], i.DeadLetter) {
			t.Errorf("the run has %s, which was not ticked", i.DeadLetter)
		}
	}
	if none := s.doc(s.get("/bulk-runs/new?ids="), http.StatusUnprocessableEntity); !none.says("No dead letter was selected") || none.id("start") != nil {
		t.Error("whoever ticks none plans for all")
	}
	if s = s.as(access.Viewer); len(ticks()) > 0 {
		t.Error("a viewer ticks")
	}
}

// TestAFilterIsAChip, which its link takes away.
func TestAFilterIsAChip(t *testing.T) {
	s := open(t, sampleDead(t, now))
	list := s.page("/dead-letters?team=ti&sort=deadline&reason=MAX_RETRIES")
	if chip := list.link("Remove the filter Team: IT (ti)"); chip == nil || attr(chip, "href") != "/dead-letters?reason=MAX_RETRIES&sort=deadline" {
		t.Errorf("the team's chip is %v", chip)
	}
}

// TestOnlyWhatTheReaderMayIsOffered: links carry his team, and where a page is of all teams he acts on nothing there.
func TestOnlyWhatTheReaderMayIsOffered(t *testing.T) {
	s, _, _ := planned(t)
	s.who = access.Identity{Name: "rui", Role: access.Operator, Teams: "ti"}
	groups := attr(s.page("/").link("See all causes"), "href")
	if groups != "/dead-letters/groups?team=ti" {
		t.Errorf("the overview leads to %s", groups)
	}
	all := s.page(groups).link("Act on all 40")
	if all == nil {
		t.Fatal("the causes of his own team offer nothing")
	}
	if s.page(attr(all, "href")).id("start") == nil {
		t.Error("what is offered cannot be started")
	}
	for _, address := range []string{"/dead-letters/groups", "/dead-letters?reason=INVALID_CREDENTIALS", "/dead-letters?team=cadastro"} {
		if d := s.page(address); d.link("Act on") != nil || d.id("chosen") != nil {
			t.Errorf("%s offers what is refused", address)
		}
	}
	if s.page("/dead-letters?team=ti").id("chosen") == nil {
		t.Error("he cannot choose among his own team's")
	}
}
