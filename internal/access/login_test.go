package access_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
)

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

// No path leads from the log-in to another site; testdata/stories has the addresses that it is asked to lead to.
func TestNextStaysHere(t *testing.T) {
	_, maria := token(t, "maria", access.Viewer)
	w := newWorld(t, maria)
	for _, path := range []string{"//evil.example/x", "/\\evil.example", "/.//evil.example"} {
		a := w.ask(http.MethodGet, "http://127.0.0.1/", "", browser, func(r *http.Request) { r.URL = &url.URL{Path: path} })
		if got := a.header.Get("Location"); a.status != http.StatusSeeOther || !strings.HasPrefix(got, "/login?next=%2F") || strings.HasPrefix(got, "/login?next=%2F%2F") || strings.Contains(got, "%5Cevil") && !strings.Contains(got, "%255Cevil") {
			t.Errorf("%s: got %d to %q", path, a.status, got)
		}
	}
}

// FuzzNext: wherever the log-in leads, a browser stays on this server.
func FuzzNext(f *testing.F) {
	secret, maria := access.NewToken("maria", access.Viewer, time.Time{})
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
	secret, maria := access.NewToken("maria", access.Operator, time.Time{})
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

// A handler that was put up without the middleware lets nobody in.
func TestRequireAlone(t *testing.T) {
	_, maria := token(t, "maria", access.Admin)
	w := newWorld(t, maria)
	gate := access.New(access.Options{Tokens: func() *access.Tokens { return w.tokens }, Ended: w.endedSessions})
	w.handler = require(gate, access.Read, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("let in") }))
	w.get("/api/v1/x").refused(t, "nobody", http.StatusUnauthorized, "login_required")
}
