package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/journal"
)

func TestTimesAreInTheReadersZone(t *testing.T) {
	s := open(t, sampleDead(t, now))
	address := subjectAddress("tiss-submission", longStoryID)
	story, _, _ := s.world.Memory.Story(t.Context(), journal.Subject{Tenant: journal.DefaultTenant, Policy: "tiss-submission", ID: longStoryID})
	first := story.Attempts[0].Decision.AnalysedAt
	for zone, cookie := range map[string]string{"America/Sao_Paulo": "", "Asia/Tokyo": "tz=Asia/Tokyo", "America/Sao_Paulo ": "tz=../../etc/passwd"} {
		location, _ := time.LoadLocation(strings.TrimSpace(zone))
		s.header.Set("Cookie", cookie)
		s.page(address).mustSay(first.In(location).Format("2 Jan 2006 15:04:05"))
	}
}

// TestAZoneIsChosen: one zone for all times of a page, which it names; the browser is not asked again.
func TestAZoneIsChosen(t *testing.T) {
	s := open(t, newWorld(t, now))
	if first := s.page("/"); has(first.tags("body")[0], "data-zone-known") {
		t.Error("the browser's zone is not asked for")
	}
	s.keep(s.get("/?tz=America/Manaus").Header())
	d := s.page("/")
	if body := d.tags("body")[0]; !has(body, "data-zone-known") || attr(body, "data-zone") != "America/Manaus" || attr(d.link("Manaus"), "aria-current") != "true" {
		t.Error("the page does not say which zone it has")
	}
}

// TestPagesAreSmall: the policies and the longest list, as they are sent, are 40 kB at most.
func TestPagesAreSmall(t *testing.T) {
	s := open(t, sampleDead(t, now))
	s.header.Set("Accept-Encoding", "gzip")
	style := attr(open(t, newWorld(t, now)).page("/").tags("link")[0], "href")
	for _, address := range []string{"/", "/policies", "/dead-letters?state=all", style} {
		if w := s.get(address); w.Header().Get("Content-Encoding") != "gzip" || w.Body.Len() > 40_000 {
			t.Errorf("%s is sent as %q with %d bytes", address, w.Header().Get("Content-Encoding"), w.Body.Len())
		}
	}
}

func TestAChosenLanguageIsKept(t *testing.T) {
	s := open(t, newWorld(t, now))
	s.keep(s.get("/?lang=pt-BR").Header())
	s.page("/").mustSay("Visão geral")
	s.header.Set("X-Forwarded-Proto", "https")
	if c := s.get("/?lang=pt-BR").Result().Cookies()[0]; !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
		t.Errorf("over TLS the cookie is %v", c)
	}
	s.header.Set("Cookie", "lang=xx")
	s.page("/").mustSay("Overview")
}
