package access_test

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"retry-worker/internal/access"
)

// What somebody may not do is told: who asked, from where, and which rule said no.
func TestForbiddenIsTold(t *testing.T) {
	secret, maria := token(t, "maria", access.Viewer)
	operator, ana := token(t, "ana", access.Operator)
	w := newWorld(t, maria, ana)
	w.postJSON("/api/v1/retry", bearer(secret))
	w.postJSON("/api/v1/retry", bearer(secret), header("Origin", "https://evil.example"))
	session := w.session(operator)
	w.postForm("/dead-letters/retry", url.Values{"form_token": {"guessed"}}, cookie(session))
	w.get("/api/v1/kpis") // nobody: asked to log in, which is not forbidden
	want := []string{"request_forbidden 10.0.0.9 maria forbidden_role", "request_forbidden 10.0.0.9 forbidden_origin", "logged_in ana",
		"request_forbidden 10.0.0.9 ana form_expired"}
	if told := w.told(); !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
	local := newLocalWorld(t)
	local.get("/", host("evil.example"))
	if told := local.told(); !slices.Equal(told, []string{"request_forbidden 10.0.0.9 forbidden_host"}) {
		t.Errorf("without tokens: told %q", told)
	}
}

// Over TLS, a proxy's too, a browser is told to come by TLS only; never under localhost, where others serve beside us.
func TestStrictTransportSecurity(t *testing.T) {
	_, maria := token(t, "maria", access.Viewer)
	w := newWorld(t, maria)
	named := host("retry.hospital.example")
	const want = "max-age=31536000; includeSubDomains"
	for what, tt := range map[string]struct {
		options []option
		want    string
	}{
		"TLS":                  {[]option{named, overTLS}, want},
		"a proxy with TLS":     {[]option{named, header("X-Forwarded-Proto", "https")}, want},
		"plain HTTP":           {[]option{named}, ""},
		"TLS under localhost":  {[]option{host("localhost:8095"), overTLS}, ""},
		"TLS under an address": {[]option{host("127.0.0.1:8095"), overTLS}, ""},
	} {
		for _, path := range []string{"/", "/login", "/api/v1/kpis", "/assets/app.css"} {
			if got := w.get(path, tt.options...).header.Get("Strict-Transport-Security"); got != tt.want {
				t.Errorf("%s, %s: %q, want %q", what, path, got, tt.want)
			}
		}
	}
	if got := w.ask(http.MethodPost, "/login", "", named, overTLS).header.Get("Strict-Transport-Security"); got != want {
		t.Errorf("a refusal: %q", got)
	}
}
