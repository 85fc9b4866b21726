package console_test

import (
	"net/http"
	"testing"
	"time"

	"retry-worker/internal/journal"
)

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
