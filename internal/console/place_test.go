package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"retry-worker/internal/access"
)

// keep has the browser of a site send back the cookies that an answer set.
func (s *site) keep(h http.Header) {
	r := http.Response{Header: h}
	for _, c := range r.Cookies() {
		s.header.Add("Cookie", c.Name+"="+c.Value)
	}
}

// TestAListIsWorkedThrough decides a filter's dead letters one by one, by one button each behind the first.
func TestAListIsWorkedThrough(t *testing.T) {
	w := newWorld(t, now)
	w.locked(4) // of a team, and a last one of another
	s := open(t, w)
	list := s.page("/dead-letters?team=ti")
	rows := list.rowLinks()
	at, _, _ := strings.Cut(attr(rows[0], "href"), "#")
	for n := range rows {
		d := s.page(at)
		if !strings.Contains(d.raw, `href="/dead-letters?state=open&amp;team=ti"`) {
			t.Fatalf("%s: the way back has lost the filter", at)
		}
		form, words := attr(d.id("retry"), "action"), words("senha trocada", "next", "now")
		if chips := d.all(func(n *html.Node) bool { return attr(n, "class") == "chip" }); len(chips) != min(n, 1) {
			t.Fatalf("claim %d: %d recent reasons", n, len(chips))
		} else if n > 0 {
			words["reason"], words["recent"] = []string{""}, []string{attr(chips[0], "value")}
		}
		answer := s.post(form, words)
		s.keep(answer.Header())
		next := answer.Header().Get("Location")
		wanted := subjectAddress("tiss-submission", fmt.Sprintf("CLM-T-%04d", n+1)) + "?after="
		if n == len(rows)-1 {
			wanted = strings.SplitN(at, "?", 2)[0] + "?done="
		}
		if !strings.HasPrefix(next, wanted) {
			t.Fatalf("after claim %d comes %q, want %s", n, next, wanted)
		}
		at, _, _ = strings.Cut(next, "#")
		s.page(at).mustSay("Undo")
	}
	other := s.as(access.Admin)
	other.who.Name = "bruno"
	if d := other.page(subjectAddress("tiss-submission", "CLM-T-9999")); len(d.classed("chip")) > 0 {
		t.Error("somebody else reads the reasons")
	}
}

func TestPagesLeadToOperateAndGrafana(t *testing.T) {
	w := newWorld(t, now)
	a := w.fails("tiss-submission", "CLM-T-1", "INVALID_PATIENT_DATA")
	s := open(t, w)
	s.links("https://operate.example", "https://grafana.example/d/x")
	for address, to := range map[string]string{
		subjectAddress("tiss-submission", "CLM-T-1"): fmt.Sprintf("https://operate.example/processes/%d", a.ProcessInstanceKey),
		"/": "https://grafana.example/d/x",
	} {
		if page := s.get(address).Body.String(); !strings.Contains(page, `href="`+to+`"`) {
			t.Errorf("%s does not lead to %s", address, to)
		}
	}
}

// TestEveryPageSaysWhatIsDown looks at pages that have nothing to do with it, and at the one that says it itself.
func TestEveryPageSaysWhatIsDown(t *testing.T) {
	s := open(t, sample(t, now))
	s.down = true
	for _, address := range []string{"/policies", "/dead-letters"} {
		if got := text(s.page(address).id("banners")); !strings.Contains(got, "Zeebe engine: no answer") || !strings.Contains(got, "2 destinations are down") {
			t.Errorf("%s says %q", address, got)
		}
	}
	if s.down = false; s.page("/destinations").id("banners").FirstChild != nil {
		t.Error("the page of what is down says it twice")
	}
}

func TestTheTeamIsRemembered(t *testing.T) {
	w := newWorld(t, now)
	w.locked(2)
	w.fails("tiss-submission", "CLM-U-1", "INVALID_PATIENT_DATA")
	s := open(t, w)
	for _, c := range []struct{ ask, teams, want string }{
		{"/", "", "/dead-letters"}, {"/", "cadastro", "/dead-letters?team=cadastro"}, {"/", "cadastro,ti", "/dead-letters"},
		{"/?mine=cadastro", "ti", "/dead-letters?team=cadastro"}, {"/", "ti", "/dead-letters?team=cadastro"}, {"/?mine=", "", "/dead-letters"},
	} {
		s.who.Teams = access.Teams(c.teams)
		answer := s.get(c.ask)
		d := s.doc(answer, http.StatusOK)
		if got := attr(d.all(func(n *html.Node) bool { return n.Data == "a" && inside(n, "nav") })[1], "href"); got != c.want {
			t.Errorf("%s of %q: the navigation leads to %s, want %s", c.ask, c.teams, got, c.want)
		}
		if c.want != "/dead-letters" && !strings.Contains(text(d.tags("tbody")[0]), map[bool]string{true: "cadastro", false: "(ti)"}[strings.HasSuffix(c.want, "cadastro")]) {
			t.Errorf("%s: the team does not stand first", c.ask)
		}
		s.keep(answer.Header())
	}
	if d := s.page("/dead-letters?list=" + url.QueryEscape("%zz")); d.id("list") == nil {
		t.Error("a place that is none of ours matters")
	}
}
