package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/guard"
)

// logIn is the cookie of a browser's session.
func (c *fixture) logIn(name string) func(*http.Request) {
	c.t.Helper()
	a := ask(c.t, http.MethodPost, c.root+"/login", url.Values{"token": {c.Tokens.Secret(name)}}.Encode(),
		header("Content-Type", "application/x-www-form-urlencoded"), header("Sec-Fetch-Site", "same-origin"))
	if a.status != http.StatusSeeOther {
		c.t.Fatalf("the log-in is answered with %d %s", a.status, a.text)
	}
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	return header("Cookie", cookie)
}

// A browser's session is taken by the API, from the console's own pages only, and ends with its token: what the gate holds
// in internal/access, it holds here.
func TestSessions(t *testing.T) {
	c := open(t)
	session, retry := c.logIn("otto"), call{http.MethodPost, "/dead-letters/" + c.permanent("CLM-001-1") + "/retry", `{"reason":"x"}`}
	other := retry.to(t, c.url, session, header("Sec-Fetch-Site", "cross-site"))
	other.refused(t, "another site", http.StatusForbidden, "forbidden_origin")
	if a := retry.to(t, c.url, session, header("Sec-Fetch-Site", "same-origin")); a.status != http.StatusOK || a.body["review"].(map[string]any)["by"] != "otto" {
		t.Errorf("the console's own page: got %d %s", a.status, a.text)
	}
	c.Memory.SetDown(true)
	unknown := retry.to(t, c.url, session)
	unknown.refused(t, "of which nobody can tell whether it has ended", http.StatusServiceUnavailable, "sessions_unavailable")
	c.Memory.SetDown(false)
	c.Tokens.Publish(map[string]access.Role{"otto": access.Operator}, now.AddDate(0, 0, -1))
	gone := retry.to(t, c.url, session)
	gone.refused(t, "whose token has ended", http.StatusUnauthorized, "login_required")
	expired := retry.to(t, c.url, c.as("otto"))
	expired.refused(t, "an expired token", http.StatusUnauthorized, "token_expired")
}

// What the gate takes for a page never reaches the API, nor the other way round.
func TestPagesAndAPIAreApart(t *testing.T) {
	var seen []string
	c := open(t, func(o *api.Options, _ *guard.Services) {
		o.Pages = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = append(seen, r.Method+" "+r.URL.EscapedPath()+" by "+access.From(r.Context()).Name)
		})
		o.Gate.Public = []string{"/assets/"}
		o.Gate.LoginPage = func(w http.ResponseWriter, _ *http.Request, l access.Login) {
			_, _ = w.Write([]byte("log in, then " + l.Next))
		}
		o.Gate.Refuse = func(w http.ResponseWriter, _ *http.Request, refusal access.Refusal) {
			http.Error(w, "page: "+refusal.Code, refusal.Status)
		}
	})
	browser := header("Accept", "text/html")
	for path, want := range map[string]string{
		"/": "GET / by otto", "/dead-letters?state=open": "GET /dead-letters by otto", "/subjects/p/a%2Fb": "GET /subjects/p/a%2Fb by otto",
		"/audit": "GET /audit by otto", "/policies": "GET /policies by otto", "/apis": "GET /apis by otto", "/api": "GET /api by otto",
	} {
		seen = nil
		get(t, c.root+path, browser, c.logIn("otto"))
		if len(seen) != 1 || seen[0] != want {
			t.Errorf("%s: the pages saw %v, want %q", path, seen, want)
		}
	}
	seen = nil
	for _, path := range []string{"/api/v1/kpis", "/api/", "/api/v1/nowhere", "/%61pi/v1/kpis", "/api%2Fv1%2Fkpis", "/api/../dead-letters"} {
		get(t, c.root+path, browser, c.as("otto"))
	}
	ask(t, http.MethodPost, c.root+"/dead-letters/"+anID+"/retry", "reason=x", browser, c.logIn("otto"), header("Content-Type", "application/x-www-form-urlencoded")) // no form token
	if seen != nil {
		t.Errorf("the pages saw %v", seen)
	}
	if a := get(t, c.root+"/dead-letters", browser); a.status != http.StatusSeeOther || a.header.Get("Location") != "/login?next=%2Fdead-letters" {
		t.Errorf("nobody gets %d %q, want the log-in", a.status, a.header.Get("Location"))
	}
	if a := get(t, c.root+"/login?next=/dead-letters", browser); a.text != "log in, then /dead-letters" {
		t.Errorf("the log-in page is %q", a.text)
	}
	if get(t, c.root+"/assets/console.css"); len(seen) != 1 || seen[0] != "GET /assets/console.css by " {
		t.Errorf("assets: the pages saw %v", seen)
	}
}
