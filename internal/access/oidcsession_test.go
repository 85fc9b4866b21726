package access_test

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"retry-worker/internal/access"
)

// No cookie but a session of this provider's client lets anybody in.
func TestProviderSessionsAreSealed(t *testing.T) {
	h := newHospital(t, map[string]any{"preferred_username": "maria", "roles": "admin"})
	w, p := openedTo(t, h)
	_, form := p.get(console + "/login/oidc")
	pending := p.Jar.Cookies(at)
	if requestID.FindString(form) == "" || len(pending) != 1 || pending[0].Name != "__Host-retry-worker-login" {
		t.Fatalf("cookies %v", pending)
	}
	p.logIn(nil)
	session := p.Jar.Cookies(at)[0]
	other, _ := openedTo(t, h)
	other.provider.ClientSecret = "another"
	other.open(func() *access.Tokens { return other.tokens })
	for what, value := range map[string]string{
		"a log-in that is begun": pending[0].Value, "cut off": session.Value[1:], "changed": flipped(session.Value), "empty": "", "short": "AAAA",
	} {
		w.get("/", browser, overTLS, cookie(&http.Cookie{Name: session.Name, Value: value})).sentToLogIn(t, what)
	}
	w.get("/", overTLS, cookie(session)).is(t, "the session", "maria", "admin")
	other.get("/", browser, overTLS, cookie(session)).sentToLogIn(t, "another client's")
	w.now = w.now.Add(12 * time.Hour)
	w.get("/", browser, overTLS, cookie(session)).sentToLogIn(t, "after 12 hours")
	if bytes.Contains([]byte(session.Value), []byte("maria")) || len(session.Value) > 3900 {
		t.Error("the cookie can be read, or is too long")
	}
}

func flipped(text string) string {
	b := []byte(text)
	b[len(b)/2] ^= 1
	return string(b)
}
