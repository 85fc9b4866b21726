package access_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
)

// Programs show the provider's tokens, of the last 15 minutes.
func TestProviderTokensOfPrograms(t *testing.T) {
	h := newHospital(t, nil)
	w, _ := openedTo(t, h)
	for what, c := range map[string]struct {
		token string
		want  string
	}{
		"good":              {h.signed(w.now, nil), "maria operator"},
		"by its id":         {h.signed(w.now, map[string]any{"preferred_username": "joão", "sub": "crm-bot", "roles": "viewer"}), "crm-bot viewer"},
		"several audiences": {h.signed(w.now, map[string]any{"aud": []string{"crm", "retry-worker"}}), "maria operator"},
		"14 minutes old":    {h.signed(w.now.Add(-14*time.Minute), nil), "maria operator"},
		"16 minutes old":    {h.signed(w.now.Add(-16*time.Minute), nil), "token_unknown"},
		"of the future":     {h.signed(w.now.Add(time.Hour), nil), "token_unknown"},
		"expired":           {h.signed(w.now.Add(-2*time.Hour), map[string]any{"iat": w.now.Unix()}), "token_unknown"},
		"another issuer":    {h.signed(w.now, map[string]any{"iss": "https://evil.example"}), "token_unknown"},
		"another audience":  {h.signed(w.now, map[string]any{"aud": "account"}), "token_unknown"},
		"no audience":       {h.signed(w.now, map[string]any{"aud": nil}), "token_unknown"},
		"of a log-in":       {h.signed(w.now, map[string]any{"nonce": "x"}), "token_unknown"},
		"no role":           {h.signed(w.now, map[string]any{"roles": nil}), "token_unknown"},
		"no name":           {h.signed(w.now, map[string]any{"preferred_username": "local", "sub": "local"}), "token_unknown"},
		"no signature":      {unsigned(t, h.good(w.now, nil)), "token_unknown"},
		"changed":           {h.signed(w.now, nil) + "A", "token_unknown"},
		"dots":              {"..", "token_unknown"},
	} {
		w.now = w.now.Add(time.Nanosecond)
		a := w.get("/api/v1/kpis", bearer(c.token), from(fmt.Sprintf("10.9.%d.1:1", len(what))))
		if got := strings.TrimSpace(fmt.Sprint(a.body["name"], " ", a.body["role"])); a.body["error"] != c.want && got != c.want {
			t.Errorf("%s: got %d %s, want %s", what, a.status, a.text, c.want)
		}
	}
	if told := w.logs.FilterMessageSnippet("log-in was refused").Len(); told != 12 {
		t.Errorf("%d refusals are told, want 12: %v", told, w.logs.All())
	}
	w.now = w.now.Truncate(time.Second)
	for _, issued := range []time.Duration{-15 * time.Minute, time.Minute} {
		w.get("/api/v1/kpis", bearer(h.signed(w.now.Add(issued), nil))).is(t, issued.String(), "maria", "operator")
	}
	w.open(nil)
	if w.get("/login", browser); !w.page.Provider || w.page.Tokens {
		t.Errorf("the log-in page where there are no tokens but the provider's: %+v", w.page)
	}
	w.get("/api/v1/kpis").refused(t, "nobody, where there are no tokens but the provider's", http.StatusUnauthorized, "login_required")
	h.away = true
	other, _ := openedTo(t, h)
	other.get("/api/v1/kpis", bearer(h.signed(w.now, nil))).refused(t, "away", http.StatusServiceUnavailable, "provider_unavailable")
}

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
