package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
)

// Nobody reads or changes anything without a token; who has one, what his role allows.
func TestRoles(t *testing.T) {
	c := open(t)
	k := c.prepare()
	for name, l := range calls(k) {
		a := l.to(t, c.url)
		a.refused(t, "nobody: "+name, http.StatusUnauthorized, "login_required")
		if !l.reads(name) {
			a := l.to(t, c.url, c.as("vera"))
			a.refused(t, "a viewer: "+name, http.StatusForbidden, "forbidden_role")
		} else if a := l.to(t, c.url, c.as("vera")); a.status != http.StatusOK {
			t.Errorf("a viewer: %s is answered with %d %s", name, a.status, a.text)
		}
	}
	if a := c.get("vera", "/dead-letters/"+k.dead); a.body["state"] != "open" {
		t.Errorf("the dead letter is then %v", a.body["state"])
	}
}

// A token that is bound to teams decides for them alone.
func TestTeams(t *testing.T) {
	c := open(t)
	ours, theirs := c.exhausted("CLM-001-1"), c.exhausted("CLM-002-1")
	c.Tokens.Teams = map[string]access.Teams{"otto": "ti,faturamento", "vera": "cadastro"}
	c.Tokens.Publish(map[string]access.Role{"otto": access.Operator, "vera": access.Operator}, time.Time{})
	if a := c.post("otto", "/dead-letters/"+ours+"/retry", `{"reason":"x","forceRetry":true}`); a.status != http.StatusOK {
		t.Errorf("of the team, at the limit: got %d %s", a.status, a.text)
	}
	c.refuses("vera", "/dead-letters/"+theirs+"/retry", `{"reason":"x","forceRetry":true}`, http.StatusForbidden, "forbidden_team")
	c.refuses("vera", "/bulk-runs", `{"action":"retry","filter":{},"reason":"x","token":"x"}`, http.StatusForbidden, "forbidden_team")
	c.refuses("otto", "/dead-letters/"+theirs+"/retry", `{"reason":"x","forceRetry":true,"fresh":true}`, http.StatusForbidden, "forbidden_role")
}

// logIn is the cookie of a browser's session.
func (c *fixture) logIn(name string) func(*http.Request) {
	c.t.Helper()
	root := strings.TrimSuffix(c.url, "/api/v1")
	a := ask(c.t, http.MethodPost, root+"/login", url.Values{"token": {c.Tokens.Secret(name)}}.Encode(),
		header("Content-Type", "application/x-www-form-urlencoded"), header("Sec-Fetch-Site", "same-origin"))
	if a.status != http.StatusSeeOther {
		c.t.Fatalf("the log-in is answered with %d %s", a.status, a.text)
	}
	cookie, _, _ := strings.Cut(a.header.Get("Set-Cookie"), ";")
	return header("Cookie", cookie)
}

// A browser's session is taken by the API, from the console's own pages only, and ends with its token.
func TestSessions(t *testing.T) {
	c := open(t)
	id := c.permanent("CLM-001-1")
	session := c.logIn("otto")
	retry := call{http.MethodPost, "/dead-letters/" + id + "/retry", `{"reason":"x"}`}
	for what, change := range map[string][]func(*http.Request){
		"another site":     {header("Sec-Fetch-Site", "cross-site"), header("Origin", "https://evil.example")},
		"a sibling":        {header("Sec-Fetch-Site", "same-site")},
		"an older browser": {header("Origin", "https://evil.example")},
		"a sandbox":        {header("Origin", "null")},
	} {
		a := retry.to(t, c.url, append(change, session)...)
		a.refused(t, what, http.StatusForbidden, "forbidden_origin")
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
		a := retry.to(t, c.url, session, header("Content-Type", kind))
		a.refused(t, "a form as "+kind, http.StatusUnsupportedMediaType, "unsupported_media_type")
	}
	forged := retry.to(t, c.url, header("Cookie", "retry-worker-session=b3R0bw.AAAA"))
	forged.refused(t, "a forged session", http.StatusUnauthorized, "login_required")
	if a := retry.to(t, c.url, session, header("Sec-Fetch-Site", "same-origin")); a.status != http.StatusOK || a.body["review"].(map[string]any)["by"] != "otto" {
		t.Errorf("the console's own page: got %d %s", a.status, a.text)
	}
	c.Memory.SetDown(true)
	unknown := retry.to(t, c.url, session)
	unknown.refused(t, "of which nobody can tell whether it has ended", http.StatusServiceUnavailable, "sessions_unavailable")
	c.Memory.SetDown(false)
	c.Set(now.Add(13 * time.Hour))
	over := retry.to(t, c.url, session)
	over.refused(t, "a session of yesterday", http.StatusUnauthorized, "login_required")
	c.Set(now)
	c.Tokens.Publish(map[string]access.Role{"vera": access.Viewer}, time.Time{})
	gone := retry.to(t, c.url, session)
	gone.refused(t, "whose token was taken out", http.StatusUnauthorized, "login_required")
	c.Tokens.Publish(map[string]access.Role{"otto": access.Operator}, now.AddDate(0, 0, -1))
	expired := retry.to(t, c.url, c.as("otto"))
	expired.refused(t, "an expired token", http.StatusUnauthorized, "token_expired")
}

// What the gate takes for a page never reaches the API, nor the other way round.
func TestPagesAndAPIAreApart(t *testing.T) {
	var seen []string
	c := open(t, func(o *api.Options, _ *api.Journal) {
		o.Pages = api.Site{
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen = append(seen, r.Method+" "+r.URL.EscapedPath()+" by "+access.From(r.Context()).Name)
			}),
			Public: []string{"/assets/"},
			Login: func(w http.ResponseWriter, _ *http.Request, l access.Login) {
				_, _ = w.Write([]byte("log in, then " + l.Next))
			},
			Refuse: func(w http.ResponseWriter, _ *http.Request, refusal access.Refusal) {
				http.Error(w, "page: "+refusal.Code, refusal.Status)
			},
		}
	})
	root := strings.TrimSuffix(c.url, "/api/v1")
	browser := header("Accept", "text/html")
	for path, want := range map[string]string{
		"/": "GET / by otto", "/dead-letters?state=open": "GET /dead-letters by otto", "/subjects/p/a%2Fb": "GET /subjects/p/a%2Fb by otto",
		"/audit": "GET /audit by otto", "/policies": "GET /policies by otto", "/apis": "GET /apis by otto", "/api": "GET /api by otto",
	} {
		seen = nil
		get(t, root+path, browser, c.logIn("otto"))
		if len(seen) != 1 || seen[0] != want {
			t.Errorf("%s: the pages saw %v, want %q", path, seen, want)
		}
	}
	seen = nil
	for _, path := range []string{"/api/v1/kpis", "/api/", "/api/v1/nowhere", "/%61pi/v1/kpis", "/api%2Fv1%2Fkpis", "/api/../dead-letters"} {
		get(t, root+path, browser, c.as("otto"))
	}
	ask(t, http.MethodPost, root+"/dead-letters/"+anID+"/retry", "reason=x", browser, c.logIn("otto"), header("Content-Type", "application/x-www-form-urlencoded")) // no form token
	if seen != nil {
		t.Errorf("the pages saw %v", seen)
	}
	if a := get(t, root+"/dead-letters", browser); a.status != http.StatusSeeOther || a.header.Get("Location") != "/login?next=%2Fdead-letters" {
		t.Errorf("nobody gets %d %q, want the log-in", a.status, a.header.Get("Location"))
	}
	if a := get(t, root+"/login?next=/dead-letters", browser); a.text != "log in, then /dead-letters" {
		t.Errorf("the log-in page is %q", a.text)
	}
	if get(t, root+"/assets/console.css"); len(seen) != 1 || seen[0] != "GET /assets/console.css by " {
		t.Errorf("assets: the pages saw %v", seen)
	}
}
