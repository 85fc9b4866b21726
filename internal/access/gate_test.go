package access_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
)

func TestTeamsOverHTTP(t *testing.T) {
	free, ana := token(t, "ana", access.Operator)
	bound, maria := token(t, "maria", access.Operator)
	maria.Teams = "faturamento,ti"
	none, bia := token(t, "bia", access.Operator)
	bia.Teams = access.NoTeam
	w := newWorld(t, ana, maria, bia)
	for _, tt := range []struct{ secret, team, code, message string }{
		{bound, "ti", "", ""},
		{bound, "", "forbidden_team", "maria may retry or discard many at once of its own teams alone; name one of them in the filter: faturamento,ti"},
		{bound, "cadastro", "forbidden_team", `maria is bound to faturamento,ti and may not retry or discard many at once for another team; ask somebody of "cadastro", or an admin`},
		{free, "ti", "forbidden_role", "ana is operator of no team and may not retry or discard many at once, which needs the role admin, or a token that names its teams"},
		{none, "ti", "forbidden_team", "bia is operator of no team and may not retry or discard many at once; ask an admin"},
	} {
		a := w.postJSON("/api/v1/bulk?team="+tt.team, bearer(tt.secret))
		if tt.code == "" {
			a.is(t, "the own team", "maria", "operator")
		} else if a.refused(t, tt.team, http.StatusForbidden, tt.code); a.body["message"] != tt.message {
			t.Errorf("got %v, want %s", a.body["message"], tt.message)
		}
	}
}

// Nobody gets 401 from the API, and as a browser that wants a page the log-in form.
func TestNobody(t *testing.T) {
	_, maria := token(t, "maria", access.Operator)
	w := newWorld(t, maria)
	for _, path := range []string{"/", "/dead-letters", "/api/v1/kpis", "/assets", "/assetsx/a.css", "/assets/../dead-letters", "/assets/%2e%2e/dead-letters", "/assets//x"} {
		a := w.get(path)
		a.refused(t, path, http.StatusUnauthorized, "login_required")
		if got := a.header.Get("WWW-Authenticate"); got != `Bearer realm="retry-worker"` {
			t.Errorf("%s: WWW-Authenticate %q", path, got)
		}
	}
	w.get("/api/v1/kpis", browser).refused(t, "a browser at the API", http.StatusUnauthorized, "login_required")
	w.postForm("/dead-letters/retry", nil, browser).refused(t, "a form", http.StatusUnauthorized, "login_required")
	w.postJSON("/assets/a.css").refused(t, "a change of what is public", http.StatusUnauthorized, "login_required")
	w.get("/dead-letters", browser).sentToLogIn(t, "a page")
	w.ask(http.MethodHead, "/dead-letters", "", browser).sentToLogIn(t, "a page's head")
	if got, want := w.get("/dead-letters?state=open&q=a%26b", browser).header.Get("Location"), "/login?next=%2Fdead-letters%3Fstate%3Dopen%26q%3Da%2526b"; got != want {
		t.Errorf("sent to %s, want %s", got, want)
	}
	if a := w.get("/assets/app.css"); a.status != http.StatusOK || a.body["name"] != "" {
		t.Errorf("what is public: got %d %s", a.status, a.text)
	}
	if a := w.get("/login", browser); a.status != http.StatusOK || a.text != "next=/" || w.page.Provider || !w.page.Tokens {
		t.Errorf("the log-in page: got %d %s, %+v", a.status, a.text, w.page)
	}
}

func TestBearer(t *testing.T) {
	secret, maria := tokenUntil(t, "maria", access.Operator, "2026-11-03")
	stranger, _ := token(t, "maria", access.Admin)
	w := newWorld(t, maria)
	w.get("/api/v1/kpis", bearer(secret)).is(t, "a token", "maria", "operator")
	w.get("/", header("Authorization", "bearer  "+secret+" ")).is(t, "another spelling of the scheme", "maria", "operator")
	w.postForm("/dead-letters/retry", url.Values{"reason": {"ok"}}, bearer(secret)).is(t, "a program's form", "maria", "operator")

	session := w.session(secret)
	for what, value := range map[string]string{
		"a stranger's": stranger, "none": "", "cut off": secret[:55], "longer": secret + "a", "in capitals": strings.ToUpper(secret), "two": secret + " " + secret,
		"its hash": maria.Line()[len("maria operator 2026-11-03 "):], "a cookie": session.Value, "large": strings.Repeat("a", 10_000),
	} {
		a := w.get("/api/v1/kpis", bearer(value), cookie(session), from("10.1.0."+string(rune('0'+len(what)%10))+":1"))
		a.refused(t, what, http.StatusUnauthorized, "token_unknown") // the session beside it changes nothing
		if got := a.header.Get("WWW-Authenticate"); !strings.Contains(got, "invalid_token") {
			t.Errorf("%s: WWW-Authenticate %q", what, got)
		}
	}
	w.get("/", browser, bearer(stranger)).refused(t, "a page", http.StatusUnauthorized, "token_unknown")
	w.get("/", bearer(secret), bearer(secret)).refused(t, "two headers", http.StatusBadRequest, "invalid_authorization")
	w.get("/", bearer(secret), bearer(stranger)).refused(t, "two tokens", http.StatusBadRequest, "invalid_authorization")
	w.get("/", header("Authorization", "Basic "+secret)).refused(t, "another scheme", http.StatusBadRequest, "invalid_authorization")
	w.get("/", header("Authorization", "")).refused(t, "an empty header", http.StatusBadRequest, "invalid_authorization")
	w.get("/", header("Authorization", secret)).refused(t, "no scheme", http.StatusBadRequest, "invalid_authorization")

	w.now = maria.Expires.Add(-time.Nanosecond)
	w.get("/api/v1/kpis", bearer(secret)).is(t, "at the last moment of its day", "maria", "operator")
	w.now = maria.Expires
	a := w.get("/api/v1/kpis", bearer(secret))
	a.refused(t, "an expired token", http.StatusUnauthorized, "token_expired")
	if message, _ := a.body["message"].(string); !strings.Contains(message, "maria was valid until 2026-11-03") {
		t.Errorf("message %q", message)
	}
}

// Guesses by the header are slowed too; a right token never waits.
func TestBearerGuesses(t *testing.T) {
	secret, maria := token(t, "maria", access.Operator)
	stranger, _ := token(t, "x", access.Viewer)
	w := newWorld(t, maria)
	for range 6 {
		w.get("/api/v1/kpis", bearer(stranger)).refused(t, "a guess", http.StatusUnauthorized, "token_unknown")
	}
	a := w.get("/api/v1/kpis", bearer(stranger))
	a.refused(t, "the seventh", http.StatusTooManyRequests, "too_many_attempts")
	if got := a.header.Get("Retry-After"); got != "30" {
		t.Errorf("Retry-After %q, want 30", got)
	}
	w.get("/api/v1/kpis", bearer(secret)).is(t, "a right one", "maria", "operator")
	w.session(secret)
	want := slices.Concat(slices.Repeat([]string{"token_refused 10.0.0.9"}, 6), []string{"login_slowed 10.0.0.9", "logged_in maria"})
	if told := w.told(); !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// A change that the page of another site asks for is refused, whoever asks and wherever.
func TestOtherSites(t *testing.T) {
	secret, maria := token(t, "maria", access.Admin)
	withTokens := newWorld(t, maria)
	session := withTokens.session(secret)
	for what, foreign := range map[string][]option{
		"another site":        {header("Sec-Fetch-Site", "cross-site")},
		"a neighbouring site": {header("Sec-Fetch-Site", "same-site")},
		"an older browser":    {header("Origin", "https://evil.example")},
		"a sandboxed frame":   {header("Origin", "null")},
		"another port":        {header("Origin", "http://127.0.0.1:9999")},
	} {
		for _, w := range []*world{withTokens, newLocalWorld(t)} {
			options := append([]option{cookie(session)}, foreign...)
			w.postJSON("/api/v1/retry", options...).refused(t, what, http.StatusForbidden, "forbidden_origin")
			w.postForm("/dead-letters/retry", nil, options...).refused(t, what, http.StatusForbidden, "forbidden_origin")
			w.postForm("/logout", nil, options...).refused(t, what, http.StatusForbidden, "forbidden_origin")
			w.logIn(secret, options...).refused(t, what, http.StatusForbidden, "forbidden_origin")
			w.ask(http.MethodDelete, "/api/v1/x", "", options...).refused(t, what, http.StatusForbidden, "forbidden_origin")
		}
	}
	for what, own := range map[string]option{
		"the own page": header("Sec-Fetch-Site", "same-origin"), "typed": header("Sec-Fetch-Site", "none"), "an older browser": header("Origin", "http://127.0.0.1:8095"),
	} {
		withTokens.postJSON("/api/v1/retry", cookie(session), own).is(t, what, "maria", "admin")
	}
}

// What a form of another site could send without asking first is no change of the API; a page's change is a form.
func TestContentTypes(t *testing.T) {
	secret, maria := token(t, "maria", access.Admin)
	for name, w := range map[string]*world{"tokens": newWorld(t, maria), "none": newLocalWorld(t)} {
		for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx", "application/json, text/plain", "text/json", ";"} {
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, "TRACE", "BREW"} {
				a := w.ask(method, "/api/v1/retry", "{}", bearer(secret), header("Content-Type", kind))
				a.refused(t, name+" "+method+" "+kind, http.StatusUnsupportedMediaType, "unsupported_media_type")
			}
		}
		w.postJSON("/dead-letters/retry", bearer(secret)).refused(t, name+" JSON to a page", http.StatusUnsupportedMediaType, "unsupported_media_type")
		a := w.ask(http.MethodPost, "/api/v1/retry", "{}", bearer(secret), header("Content-Type", "Application/JSON; charset=utf-8"))
		if a.status != http.StatusOK {
			t.Errorf("%s: JSON in another spelling: %d %s", name, a.status, a.text)
		}
	}
}

func TestFormTokens(t *testing.T) {
	secret, maria := token(t, "maria", access.Admin)
	other, ana := token(t, "ana", access.Admin)
	w := newWorld(t, maria, ana)
	form := func(w *world, options ...option) string {
		value, _ := w.get("/", options...).body["form"].(string)
		if len(value) != 43 {
			t.Fatalf("form token %q", value)
		}
		return value
	}
	session, second, hers := w.session(secret), w.session(secret), w.session(other)
	own := form(w, cookie(session))
	w.postForm("/dead-letters/retry", url.Values{"form_token": {own}, "reason": {"x"}}, cookie(session)).is(t, "the session's own", "maria", "admin")
	w.replica().postForm("/dead-letters/retry", url.Values{"form_token": {own}}, cookie(session)).is(t, "at another replica", "maria", "admin")
	for what, value := range map[string]string{
		"none": "", "of another session": form(w, cookie(second)), "of another person": form(w, cookie(hers)), "cut off": own[:42], "the cookie": session.Value,
	} {
		w.postForm("/dead-letters/retry", url.Values{"form_token": {value}}, cookie(session)).refused(t, what, http.StatusForbidden, "form_expired")
	}
	w.postForm("/dead-letters/retry?form_token="+own, nil, cookie(session)).refused(t, "in the address", http.StatusForbidden, "form_expired")
	w.postForm("/dead-letters/retry", url.Values{"reason": {strings.Repeat("x", 64<<10)}}, cookie(session)).refused(t, "too large", http.StatusRequestEntityTooLarge, "body_too_large")
	w.ask(http.MethodPost, "/dead-letters/retry", "a=%zz", cookie(session), header("Content-Type", "application/x-www-form-urlencoded")).
		refused(t, "no form", http.StatusBadRequest, "invalid_form")
	for path, fields := range map[string]url.Values{
		"/dead-letters/retry":          {"form_token": {own, own}},
		"/dead-letters/retry?reason=a": {"form_token": {own}, "reason": {"b"}},
		"/login":                       {"token": {secret, secret}},
	} {
		w.postForm(path, fields, cookie(session)).refused(t, path+" with a field twice", http.StatusBadRequest, "invalid_form")
	}
	w.get("/dead-letters?state=open&state=all", cookie(session)).refused(t, "an address with a field twice", http.StatusBadRequest, "invalid_form")
	if w.get("/dead-letters?ids=&ids=x&ids=y", cookie(session)).status == http.StatusBadRequest {
		t.Error("check boxes are refused")
	}

	local := newLocalWorld(t)
	own = form(local)
	local.postForm("/dead-letters/retry", url.Values{"form_token": {own}}).is(t, "local", "local", "admin")
	local.postForm("/dead-letters/retry", nil).refused(t, "local without", http.StatusForbidden, "form_expired")
	newLocalWorld(t).postForm("/dead-letters/retry", url.Values{"form_token": {own}}).refused(t, "local after a restart", http.StatusForbidden, "form_expired")
}

// Without tokens everybody on this machine may everything, but only under its own name (DNS rebinding).
func TestWithoutTokens(t *testing.T) {
	w := newLocalWorld(t)
	for _, name := range []string{"127.0.0.1:8095", "127.0.0.1", "localhost:8095", "LOCALHOST", "[::1]:8095", "[::1]", "127.1.2.3:80"} {
		w.get("/", host(name)).is(t, name, "local", "admin")
		w.postJSON("/api/v1/force", host(name)).is(t, name, "local", "admin")
	}
	for _, name := range []string{"", "evil.example", "evil.example:8095", "127.0.0.1.evil.example", "localhost.evil.example:8095", "10.0.0.7:8095", "0.0.0.0:8095", "[::]:8095", "127.0.0.1@evil.example", "localhost:8095:1"} {
		w.get("/", host(name)).refused(t, "asked as "+name, http.StatusForbidden, "forbidden_host")
		w.get("/assets/app.css", host(name)).refused(t, "asked as "+name, http.StatusForbidden, "forbidden_host")
	}
	w.get("/", bearer("rwt_whatever")).is(t, "with a token that means nothing here", "local", "admin")
	if a := w.get("/login?next=/audit", browser); a.status != http.StatusSeeOther || a.header.Get("Location") != "/audit" {
		t.Errorf("/login: got %d to %q", a.status, a.header.Get("Location"))
	}
	if ends := w.get("/").body["ends"]; ends != "0001-01-01T00:00:00Z" {
		t.Errorf("there is a session that ends at %v", ends)
	}

	secret, maria := token(t, "maria", access.Viewer)
	newWorld(t, maria).get("/", host("retry.hospital.example"), bearer(secret)).is(t, "with tokens, under another name", "maria", "viewer")
}

func TestHeaders(t *testing.T) {
	secret, maria := token(t, "maria", access.Viewer)
	w := newWorld(t, maria)
	for what, a := range map[string]answer{
		"a page": w.get("/", bearer(secret)), "the log-in": w.get("/login", browser), "a redirect": w.get("/", browser), "a refusal": w.get("/"), "the API": w.get("/api/v1/x", bearer(secret)),
		"another name": newLocalWorld(t).get("/", host("evil.example")),
	} {
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
		} {
			if got := a.header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", what, name, got, want)
			}
		}
		policy := a.header.Get("Content-Security-Policy")
		if !strings.HasPrefix(policy, "default-src 'none'; ") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("%s: policy %q", what, policy)
		}
	}
	if policy := w.get("/", bearer(secret)).header.Get("Content-Security-Policy"); !strings.Contains(policy, "; script-src 'self'; style-src 'self'; ") {
		t.Errorf("a page's policy is %q", policy)
	}
	if policy := w.get("/api/v1/x", bearer(secret)).header.Get("Content-Security-Policy"); policy != "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'" {
		t.Errorf("the API's policy is %q", policy)
	}
}

// What a browser is refused is a page, what a program is refused is JSON.
func TestRefusalsAsPages(t *testing.T) {
	var page access.Refusal
	gate := access.New(access.Options{Refuse: func(rw http.ResponseWriter, r *http.Request, refusal access.Refusal) {
		page = refusal
		rw.WriteHeader(refusal.Status)
	}})
	w := &world{t: t, now: start, handler: gate.Middleware(http.NotFoundHandler())}
	a := w.get("/", browser, host("evil.example"))
	if a.status != http.StatusForbidden || page.Code != access.CodeForbiddenHost {
		t.Errorf("a browser: got %d %s (%s)", a.status, a.text, page.Code)
	}
	w.get("/api/v1/kpis", browser, host("evil.example")).refused(t, "the API", http.StatusForbidden, "forbidden_host")
	w.get("/", host("evil.example")).refused(t, "a program", http.StatusForbidden, "forbidden_host")
	w.postForm("/dead-letters/retry", nil).refused(t, "a script of a page", http.StatusForbidden, "form_expired")
	w.postForm("/dead-letters/retry", nil, browser)
	if page.Code != access.CodeFormExpired {
		t.Errorf("a form: the page says %s", page.Code)
	}
}

// A handler that was put up without the middleware lets nobody in.
func TestRequireAlone(t *testing.T) {
	_, maria := token(t, "maria", access.Admin)
	w := newWorld(t, maria)
	gate := access.New(access.Options{Tokens: func() *access.Tokens { return w.tokens }, Ended: w.endedSessions})
	w.handler = gate.Require(access.Read, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("let in") }))
	w.get("/api/v1/x").refused(t, "nobody", http.StatusUnauthorized, "login_required")
}
