package access_test

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
)

func TestLogIn(t *testing.T) {
	secret, maria := token(t, "maria", access.Operator)
	w := newWorld(t, maria)
	a := w.logIn(" " + secret + "\r\n") // as it is pasted
	if a.status != http.StatusSeeOther || a.header.Get("Location") != "/dead-letters?state=open" {
		t.Fatalf("got %d to %q", a.status, a.header.Get("Location"))
	}
	c := a.cookie(t)
	if c.Name != "retry-worker-session" || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Secure || c.Path != "/" || c.Domain != "" || c.MaxAge != 12*3600 {
		t.Errorf("cookie %+v", c)
	}
	if strings.Contains(a.header.Get("Set-Cookie"), secret) {
		t.Error("the cookie has the token itself")
	}
	w.get("/", cookie(c)).is(t, "the session", "maria", "operator")
	if got, want := w.get("/", cookie(c)).body["ends"], start.Add(12*time.Hour); !sameTime(got, want) {
		t.Errorf("it ends at %v, want %v", got, want)
	}
	if a := w.get("/login?next=%2Faudit", browser, cookie(c)); a.status != http.StatusSeeOther || a.header.Get("Location") != "/audit" {
		t.Errorf("/login of who is logged in: %d to %q", a.status, a.header.Get("Location"))
	}
	if told := w.told(); !slices.Equal(told, []string{"logged_in maria"}) {
		t.Errorf("told %q", told)
	}
	a = w.ask(http.MethodPut, "/login", "")
	a.refused(t, "another method", http.StatusMethodNotAllowed, "method_not_allowed")
	if a.header.Get("Allow") != "GET, HEAD, POST" {
		t.Errorf("Allow %q", a.header.Get("Allow"))
	}
	w.postJSON("/login").refused(t, "JSON", http.StatusUnsupportedMediaType, "unsupported_media_type")
}

func sameTime(text any, want time.Time) bool {
	got, err := time.Parse(time.RFC3339, fmt.Sprint(text))
	return err == nil && got.Equal(want)
}

func TestLogInWithAWrongToken(t *testing.T) {
	secret, maria := tokenUntil(t, "maria", access.Operator, "2026-11-03")
	stranger, _ := token(t, "maria", access.Admin)
	w := newWorld(t, maria)
	for _, wrong := range []string{"", stranger, secret[:55], secret + "a", "maria", strings.TrimPrefix(secret, "rwt_")} {
		a := w.logIn(wrong, from("10.2.0."+strconv.Itoa(len(wrong))+":1"))
		if want := "log-in page: token_unknown; next=/dead-letters?state=open"; a.status != http.StatusUnauthorized || a.text != want || a.header.Get("Set-Cookie") != "" {
			t.Errorf("%q: got %d %s", wrong, a.status, a.text)
		}
	}
	w.now = maria.Expires
	if a := w.logIn(secret); a.status != http.StatusUnauthorized || !strings.HasPrefix(a.text, "log-in page: token_expired; ") || a.header.Get("Set-Cookie") != "" {
		t.Errorf("expired: got %d %s", a.status, a.text)
	}
}

// Wrong tokens make the next wrong one wait; a right one never waits, from the same address neither.
func TestLogInIsSlowed(t *testing.T) {
	secret, maria := token(t, "maria", access.Operator)
	w := newWorld(t, maria)
	for range 6 {
		w.logIn("guess")
	}
	slowed := func(retryAfter string) {
		t.Helper()
		a := w.logIn("guess", header("X-Forwarded-For", "10.7.7.7")) // which anybody can send
		if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != retryAfter || a.header.Get("Set-Cookie") != "" ||
			a.text != "log-in page: too_many_attempts; next=/dead-letters?state=open" {
			t.Errorf("got %d, Retry-After %q, want %s; %s", a.status, a.header.Get("Retry-After"), retryAfter, a.text)
		}
		w.session(secret)
	}
	slowed("30")
	if a := w.logIn("guess", from("10.0.0.10:1")); a.status != http.StatusUnauthorized {
		t.Errorf("a guess from another address: got %d", a.status)
	}
	w.now = w.now.Add(30 * time.Second)
	if a := w.logIn("guess"); a.status != http.StatusUnauthorized {
		t.Errorf("a guess after that wait: got %d", a.status)
	}
	w.now = w.now.Add(100 * time.Millisecond)
	slowed("30") // 29.9 s, rounded up
}

func TestLogOut(t *testing.T) {
	secret, maria := token(t, "maria", access.Operator)
	w := newWorld(t, maria)
	c := w.session(secret)
	form, _ := w.get("/", cookie(c)).body["form"].(string)
	w.postForm("/logout", nil, cookie(c)).refused(t, "without its form token", http.StatusForbidden, "form_expired")
	w.get("/logout", cookie(c)).refused(t, "by a link", http.StatusMethodNotAllowed, "method_not_allowed")
	for what, options := range map[string][]option{"a session": {cookie(c)}, "one that has ended": {cookie(&http.Cookie{Name: c.Name, Value: "x"})}, "none": nil} {
		a := w.postForm("/logout", url.Values{"form_token": {form}}, options...)
		if a.status != http.StatusSeeOther || a.header.Get("Location") != "/login" || a.cookie(t).MaxAge != -1 || a.cookie(t).Value != "" || a.cookie(t).Name != c.Name {
			t.Errorf("%s: got %d to %q, cookie %v", what, a.status, a.header.Get("Location"), a.cookie(t))
		}
	}
}

// A copy of the cookie is of no use after a log-out, at another replica and after a restart too; the other sessions of the
// token go on.
func TestLogOutEndsTheSession(t *testing.T) {
	secret, maria := token(t, "maria", access.Operator)
	w := newWorld(t, maria)
	c, other := w.session(secret), w.session(secret)
	form, _ := w.get("/", cookie(c)).body["form"].(string)
	w.postForm("/logout", url.Values{"form_token": {form}}, cookie(c))
	w.get("/", cookie(c), browser).sentToLogIn(t, "a copy of the cookie")
	w.postForm("/dead-letters/retry", url.Values{"form_token": {form}}, cookie(c)).refused(t, "a form with it", http.StatusUnauthorized, "login_required")
	w.get("/", cookie(other)).is(t, "another session", "maria", "operator")
	w.replica().get("/", cookie(c), browser).sentToLogIn(t, "another replica")
	payload, _, _ := strings.Cut(c.Value, ".")
	if want := map[[sha256.Size]byte]time.Time{sha256.Sum256([]byte(payload)): start.Add(12*time.Hour + time.Minute)}; !maps.EqualFunc(w.ended.until, want, time.Time.Equal) {
		t.Errorf("kept %v, want %v: no more than a hash, until no replica's clock would take it", w.ended.until, want)
	}
}

// Who logs in again leaves no session behind.
func TestLogInEndsTheSessionBefore(t *testing.T) {
	secret, maria := token(t, "maria", access.Operator)
	w := newWorld(t, maria)
	first, other := w.session(secret), w.session(secret)
	second := w.session(secret, cookie(first))
	w.get("/", cookie(first), browser).sentToLogIn(t, "the one before")
	w.get("/", cookie(second)).is(t, "the new one", "maria", "operator")
	w.get("/", cookie(other)).is(t, "another browser's", "maria", "operator")
}

// Where it is not known whether a session has ended, it lets nobody in; where an end cannot be kept, that is said, and a
// session before it is not left behind.
func TestSessionsWithoutAStore(t *testing.T) {
	secret, maria := token(t, "maria", access.Operator)
	w := newWorld(t, maria)
	c := w.session(secret)
	form, _ := w.get("/", cookie(c)).body["form"].(string)
	w.ended.readOnly = errors.New("no room")
	a := w.postForm("/logout", url.Values{"form_token": {form}}, cookie(c))
	a.refused(t, "log-out", http.StatusServiceUnavailable, "sessions_unavailable")
	if a.cookie(t).MaxAge != -1 {
		t.Error("this browser is not logged out")
	}
	w.logIn(secret, cookie(c)).refused(t, "log-in beside a session", http.StatusServiceUnavailable, "sessions_unavailable")
	w.session(secret)
	w.ended.down = errors.New("no answer")
	w.get("/", cookie(c)).refused(t, "a session", http.StatusServiceUnavailable, "sessions_unavailable")
	w.get("/", bearer(secret)).is(t, "a token", "maria", "operator")
	w.get("/", cookie(&http.Cookie{Name: c.Name, Value: "forged"}), browser).sentToLogIn(t, "a forged cookie, which costs no question")
	told := slices.DeleteFunc(w.told(), func(s string) bool { return s == "logged_in maria" })
	if want := []string{"sessions_unavailable no room", "sessions_unavailable no room", "sessions_unavailable no answer"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// Over TLS, to the worker or to a proxy that says so, the cookie is for this host and for TLS only, and no other counts.
func TestSecureCookie(t *testing.T) {
	secret, maria := token(t, "maria", access.Operator)
	w := newWorld(t, maria)
	plain := w.session(secret)
	for what, secure := range map[string]option{"TLS": overTLS, "a proxy": header("X-Forwarded-Proto", "https"), "two proxies": header("X-Forwarded-Proto", "HTTPS , http")} {
		c := w.session(secret, secure)
		if c.Name != "__Host-retry-worker-session" || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" || c.SameSite != http.SameSiteLaxMode {
			t.Errorf("%s: cookie %+v", what, c)
		}
		w.get("/", cookie(c), secure).is(t, what, "maria", "operator")
		w.get("/", cookie(plain), secure, browser).sentToLogIn(t, what+", with a cookie that plain HTTP can have set")
		w.get("/", cookie(c), browser).sentToLogIn(t, "without "+what)
	}
	if c := w.session(secret, header("X-Forwarded-Proto", "http, https")); c.Secure {
		t.Error("a browser that spoke plain HTTP to the first proxy gets a cookie it will not send")
	}
}

// A session holds at every replica and after a restart, for 12 hours from the log-in, used or not.
func TestSessionLife(t *testing.T) {
	secret, maria := token(t, "maria", access.Operator)
	w := newWorld(t, maria)
	c := w.session(secret)
	w.replica().get("/", cookie(c)).is(t, "another replica", "maria", "operator")
	w.now = start.Add(12*time.Hour - time.Nanosecond)
	w.get("/", cookie(c)).is(t, "at its last moment", "maria", "operator")
	w.now = start.Add(12 * time.Hour)
	w.get("/", cookie(c), browser).sentToLogIn(t, "after 12 hours")
	w.get("/api/v1/kpis", cookie(c)).refused(t, "after 12 hours", http.StatusUnauthorized, "login_required")

	early := w.replica() // whose clock is behind
	early.now = start.Add(-time.Minute)
	early.get("/", cookie(c)).is(t, "a replica a minute behind", "maria", "operator")
	early.now = start.Add(-time.Hour)
	early.get("/", cookie(c), browser).sentToLogIn(t, "a session of the future")
}

// What happens to a token in the file happens to its sessions at once.
func TestSessionFollowsItsToken(t *testing.T) {
	secret, maria := tokenUntil(t, "maria", access.Admin, "2026-11-02")
	_, ana := token(t, "ana", access.Admin)
	w := newWorld(t, maria, ana)
	w.now = start.Add(6 * time.Hour)
	c := w.session(secret)
	if want := int(maria.Expires.Sub(w.now) / time.Second); c.MaxAge != want {
		t.Errorf("the cookie lives %d s, want %d, as long as its token", c.MaxAge, want)
	}
	w.postJSON("/api/v1/force", cookie(c)).is(t, "an admin", "maria", "admin")
	for _, role := range []access.Role{access.Operator, access.Viewer} {
		lowered := maria
		lowered.Role = role
		w.publish(lowered, ana)
		w.postJSON("/api/v1/force", cookie(c)).refused(t, "lowered, in a session", http.StatusForbidden, "forbidden_role")
		w.postJSON("/api/v1/force", bearer(secret)).refused(t, "lowered, by its token", http.StatusForbidden, "forbidden_role")
		w.get("/", cookie(c)).is(t, "lowered", "maria", role.String())
	}
	_, replaced := token(t, "maria", access.Admin)
	for what, tokens := range map[string][]access.Token{"taken out": {ana}, "replaced": {replaced, ana}} {
		w.publish(tokens...)
		w.get("/", cookie(c), browser).sentToLogIn(t, what)
		w.get("/", bearer(secret)).refused(t, what, http.StatusUnauthorized, "token_unknown")
	}
	w.publish(ana, maria)
	w.get("/", cookie(c)).is(t, "put back", "maria", "admin")
	w.now = maria.Expires
	w.get("/", cookie(c), browser).sentToLogIn(t, "expired")
}

// A long answer can ask whether it may go on.
func TestStill(t *testing.T) {
	secret, maria := token(t, "maria", access.Operator)
	_, ana := token(t, "ana", access.Admin)
	w := newWorld(t, maria, ana)
	for what, credential := range map[string]option{"session": cookie(w.session(secret)), "bearer": bearer(secret)} {
		w.publish(maria, ana)
		inner := w.handler
		gate := access.New(access.Options{Tokens: func() *access.Tokens { return w.tokens }, Ended: w.endedSessions, Now: func() time.Time { return w.now }})
		w.handler = gate.Middleware(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if !access.Still(r.Context(), access.Read) || access.Still(r.Context(), access.Restart) {
				t.Errorf("%s: at first it may not read, or may force", what)
			}
			w.publish(ana)
			if access.Still(r.Context(), access.Read) {
				t.Errorf("%s: it may still read", what)
			}
		}))
		if a := w.get("/api/v1/events", credential); a.status != http.StatusOK {
			t.Errorf("%s: got %d %s", what, a.status, a.text)
		}
		w.handler = inner
	}
}

func TestForgedCookies(t *testing.T) {
	secret, maria := token(t, "maria", access.Viewer)
	other, ana := token(t, "ana", access.Admin)
	w := newWorld(t, maria, ana)
	mine, hers := w.session(secret).Value, w.session(other).Value
	payload, signature, _ := strings.Cut(mine, ".")
	herPayload, herSignature, _ := strings.Cut(hers, ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	testkit.Must(t, err)
	asAna := base64.RawURLEncoding.EncodeToString(append(slices.Clone(raw[:24]), "ana"...))
	later := slices.Clone(raw)
	later[23]++
	form, _ := w.get("/", cookie(&http.Cookie{Name: "retry-worker-session", Value: mine})).body["form"].(string)
	for what, value := range map[string]string{
		"another's signature": payload + "." + herSignature, "another's payload": herPayload + "." + signature, "another name": asAna + "." + signature,
		"a later log-in": base64.RawURLEncoding.EncodeToString(later) + "." + signature, "no signature": payload, "an empty one": payload + ".", "cut off": mine[:len(mine)-1],
		"its front cut off": mine[1:], "longer": mine + "A", "padded": mine + "=", "twice": mine + "." + signature, "a line break": payload + "%0A." + signature, "empty": "", "a dot": ".",
		"the token itself": secret, "a form token as signature": payload + "." + form, "large": strings.Repeat("A", 3000) + "." + signature, "no base64": "!!!." + signature,
	} {
		w.get("/", browser, cookie(&http.Cookie{Name: "retry-worker-session", Value: value})).sentToLogIn(t, what)
	}
	both := []option{browser, cookie(&http.Cookie{Name: "retry-worker-session", Value: mine}), cookie(&http.Cookie{Name: "retry-worker-session", Value: hers})}
	w.get("/", both...).sentToLogIn(t, "two cookies")
	w.get("/", browser, cookie(&http.Cookie{Name: "__Host-retry-worker-session", Value: mine})).sentToLogIn(t, "the name that TLS has, without it")
}

// No link to the log-in leads to another site, and none in a circle.
func TestNextStaysHere(t *testing.T) {
	secret, maria := token(t, "maria", access.Viewer)
	w := newWorld(t, maria)
	c := cookie(w.session(secret))
	for next, want := range map[string]string{
		"/": "/", "/dead-letters": "/dead-letters", "/dead-letters?state=open&q=a%26b": "/dead-letters?state=open&q=a%26b", "/subjects/p/CLM%2F1": "/subjects/p/CLM%2F1",
		"/?u=https://evil.example/": "/?u=https://evil.example/", "/a#b": "/a", "/ação": "/a%C3%A7%C3%A3o", "/a b": "/a%20b",
		"": "/", "dead-letters": "/", "?a": "/", "//evil.example": "/", "///evil.example": "/", "/\\evil.example": "/", "\\\\evil.example": "/", "/\t/evil.example": "/", "/\n/evil.example": "/",
		"https://evil.example": "/", "https:evil.example": "/", "javascript:alert(1)": "/", " //evil.example": "/", "/%0d%0aSet-Cookie:x": "/%0d%0aSet-Cookie:x", "/\r\nSet-Cookie: x": "/",
		"/%2fevil.example/\xba": "/", "/%2f": "/", "http:///x": "/", "//user@evil.example/": "/", "/\x00": "/", "/login": "/", "/login?next=/x": "/", "/logout": "/", "/%6cogin": "/", "/" + strings.Repeat("a", 2000): "/",
		"/" + strings.Repeat("a", 1999): "/" + strings.Repeat("a", 1999),
	} {
		by := map[string]answer{
			"GET":  w.get("/login?next="+url.QueryEscape(next), browser, c),
			"POST": w.postForm("/login", url.Values{"token": {secret}, "next": {next}}),
		}
		for method, a := range by {
			if got := a.header.Get("Location"); a.status != http.StatusSeeOther || got != want {
				t.Errorf("%s %q: got %d to %q, want %q", method, next, a.status, got, want)
			}
		}
	}
	for _, path := range []string{"//evil.example/x", "/\\evil.example", "/.//evil.example"} {
		a := w.ask(http.MethodGet, "http://127.0.0.1/", "", browser, func(r *http.Request) { r.URL = &url.URL{Path: path} })
		if got := a.header.Get("Location"); a.status != http.StatusSeeOther || !strings.HasPrefix(got, "/login?next=%2F") || strings.HasPrefix(got, "/login?next=%2F%2F") || strings.Contains(got, "%5Cevil") && !strings.Contains(got, "%255Cevil") {
			t.Errorf("%s: got %d to %q", path, a.status, got)
		}
	}
}

// FuzzNext: wherever the log-in leads, a browser stays on this server.
func FuzzNext(f *testing.F) {
	secret, maria, err := access.NewToken("maria", access.Viewer, time.Time{})
	testkit.Must(f, err)
	for _, seed := range []string{"/", "/a?b=c", "//evil.example", "/\\evil", "/\t/evil", "https://evil", "/%2f/evil", "/..//evil", "/a/..//evil"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, next string) {
		w := newWorld(t, maria)
		a := w.postForm("/login", url.Values{"token": {secret}, "next": {next}})
		to := a.header.Get("Location")
		base := &url.URL{Scheme: "http", Host: "127.0.0.1:8095", Path: "/login"}
		target, err := base.Parse(to)
		if a.status != http.StatusSeeOther || err != nil || target.Host != base.Host || target.Scheme != "http" ||
			!strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\t\r\n") && !strings.Contains(to, "?") {
			t.Errorf("%q leads to %d %q (%v)", next, a.status, to, err)
		}
	})
}

// FuzzForm: a form is taken if it can be read and has each field once, and refused in words otherwise.
func FuzzForm(f *testing.F) {
	secret, maria, err := access.NewToken("maria", access.Operator, time.Time{})
	testkit.Must(f, err)
	for _, seed := range []string{"", "reason=a", "reason=a&reason=b", "reason=a&%72eason=b", "a=%zz", "a;b=c", "&&=&=", "reason[]=a&reason[]=b", "a=1&A=2", "reason=\x00\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		w := newWorld(t, maria)
		a := w.ask(http.MethodPost, "/dead-letters/retry", body, bearer(secret), header("Content-Type", "application/x-www-form-urlencoded"))
		fields, err := url.ParseQuery(body)
		once := err == nil
		for _, values := range fields {
			once = once && len(values) == 1
		}
		switch {
		case len(body) > 64<<10:
			a.refused(t, "too large", http.StatusRequestEntityTooLarge, "body_too_large")
		case !once:
			a.refused(t, body, http.StatusBadRequest, "invalid_form")
		case a.status != http.StatusOK:
			t.Errorf("%q: got %d %s", body, a.status, a.text)
		}
	})
}
