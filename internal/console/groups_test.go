package console_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"retry-worker/internal/access"
	"retry-worker/internal/journal"
)

func TestOneCauseIsOneRow(t *testing.T) {
	w := newWorld(t, now)
	w.locked(60)
	s := open(t, w)
	d := s.page("/dead-letters/groups")
	if rows := d.rowLinks(); len(rows) != 2 || text(rows[0]) != "Invalid user or password" {
		t.Fatalf("%d causes, the first %v", len(rows), rows)
	}
	d.mustSay("logininvalido: usuário # bloqueado")
	// The way on: to all of its dead letters, and to a plan for all of them.
	show := s.page(attr(d.link("Show the 60"), "href"))
	if n := len(show.rowLinks()); n != 50 {
		t.Errorf("the list of one cause has %d rows, want the first 50 of 60", n)
	}
	if !show.says("Cause: logininvalido: usuário # bloqueado") || show.link("Act on all 60 of this filter") == nil {
		t.Errorf("the list does not say which cause it is of: %s", text(show.id("list"))[:200])
	}
	s.page(attr(d.link("Act on all 60"), "href")).mustSay("Try 60 again")
	// Filters are kept, and narrow.
	if d := s.page("/dead-letters/groups?q=carteira"); len(d.rowLinks()) != 1 || attr(d.id("q"), "value") != "carteira" {
		t.Error("words of the error find something else")
	}
	s.page("/dead-letters/groups?policy=job-queue").mustSay("No cause fits this filter")
}

func TestTheListIsFilteredByTime(t *testing.T) {
	w := newWorld(t, now.Add(-10*time.Hour))
	w.fails("tiss-submission", "CLM-T-1", "INSURANCE_EXPIRED")
	w.Set(now.Add(-time.Hour))
	w.fails("tiss-submission", "CLM-T-2", "INSURANCE_EXPIRED")
	w.Set(now)
	s := open(t, w)
	// 12:00 UTC is 09:00 in the hospital's zone.
	for address, want := range map[string]string{
		"/dead-letters?since=2026-03-02T09:00": "CLM-T-2", "/dead-letters?until=2026-03-02T09:00": "CLM-T-1",
		"/dead-letters?since=2026-03-02T12:00:00Z": "CLM-T-2",
	} {
		d := s.page(address)
		if rows := d.rowLinks(); len(rows) != 1 || text(rows[0]) != want {
			t.Errorf("%s shows %d rows, want %s", address, len(rows), want)
		}
		act := d.link("Act on all of this filter")
		if act == nil {
			t.Fatalf("%s offers no plan", address)
		}
		if plan := s.page(attr(act, "href")); !plan.says("Found 1") || !plan.says("Causes") {
			t.Errorf("%s: the plan is not for what was filtered", address)
		}
	}
	causes := s.doc(s.get("/dead-letters/groups?state=foo"), http.StatusUnprocessableEntity)
	if !causes.says("There is no state “foo”") || len(causes.rowLinks()) > 0 {
		t.Error("causes of a state that is none are listed")
	}
	if to := s.get("/dead-letters/groups?state=discarded&team=ti").Header().Get("Location"); to != "/dead-letters/groups?team=ti" {
		t.Errorf("the causes of what is discarded lead to %q", to)
	}
	for _, wrong := range []string{"since=yesterday", "until=31/12", "since=2026-03-02T09:00&until=2026-03-02T08:00", "state=foo"} {
		d := s.doc(s.get("/dead-letters?"+wrong), http.StatusUnprocessableEntity)
		marked := len(d.all(func(n *html.Node) bool { return attr(n, "aria-invalid") == "true" }))
		if wrong == "state=foo" { // the plan has no state, the list no field for it
			if d.says("There is no state “foo”") && len(d.rowLinks()) == 0 {
				continue
			}
		}
		if d.id("wrong") == nil || marked != 1 || len(d.rowLinks()) > 0 {
			t.Errorf("%s: it does not say what is wrong, or lists all the same", wrong)
		}
		s.doc(s.get("/bulk-runs/new?"+wrong), http.StatusUnprocessableEntity)
	}
}

func TestAnUnknownCauseIsNobodys(t *testing.T) {
	s := open(t, sampleDead(t, now))
	for _, fingerprint := range []string{"0123456789abcdef", "none", hostile} {
		d := s.page("/dead-letters?fingerprint=" + url.QueryEscape(fingerprint))
		if len(d.rowLinks()) > 0 || d.link("Act on") != nil {
			t.Errorf("%q has dead letters", fingerprint)
		}
	}
}

func TestTheOverviewNamesTheBiggestCausesAndWhatRuns(t *testing.T) {
	w := newWorld(t, now)
	w.locked(12)
	s := open(t, w)
	d := s.page("/")
	if !strings.Contains(text(d.id("overview")), "Main causes Invalid user or password logininvalido: usuário # bloqueado 12 open, the oldest") {
		t.Errorf("the overview does not name the cause: %s", text(d.id("overview")))
	}
	d.mustNotSay("Retry of")
	run := s.world.begin(groupFilter(s), 60, "Senha trocada.")
	s.world.becomes(t, run, 5, journal.BulkTaken)
	d = s.as(access.Viewer).page("/")
	if link := d.link("Retry of 12 dead letters"); link == nil || attr(link, "href") != "/bulk-runs/"+run || !d.says("5 of 12 are through") || !d.says("running") {
		t.Errorf("the run is not named: %s", text(d.id("overview")))
	}
	w.SetEngineUp(time.Time{})
	s.page("/").mustSay("on hold, continues by itself")
	s.world.becomes(t, run, 7, journal.BulkTaken)
	s.page("/").mustNotSay("Retry of")
}
