package attacks_test

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// A copy of a cookie is of no use after a log-out, or a second log-in of its browser, and a restart changes nothing of that.
func TestLogOutOutlivesARestart(t *testing.T) {
	w := start(t)
	jar, err := cookiejar.New(nil)
	testkit.Must(t, err)
	browser, thief := w.client(other), w.client(attacker)
	browser.Jar = jar
	at := &url.URL{Scheme: "http", Host: "127.0.0.1", Path: "/"}
	var copies []*http.Cookie
	for range 2 { // the second begins where the first is
		if status := w.logIn(browser, w.secret); status != http.StatusSeeOther {
			t.Fatalf("the log-in is answered %d", status)
		}
		copies = append(copies, jar.Cookies(at)[0])
	}
	steals := func(what string, copy *http.Cookie, in bool) {
		t.Helper()
		r := w.request(http.MethodGet, "/api/v1/kpis", "", "")
		r.AddCookie(copy)
		if status, _ := w.send(thief, r); (status == http.StatusOK) != in {
			t.Errorf("a copy of %s is answered %d, expected that it lets in: %t", what, status, in)
		}
	}
	steals("the first session", copies[0], false)
	steals("the second session", copies[1], true)
	_, page := w.send(browser, w.request(http.MethodGet, "/policies", "", ""))
	token := regexp.MustCompile(`name="form_token" value="([^"]+)"`).FindStringSubmatch(page)
	if token == nil {
		t.Fatalf("no form token in %.300s", page)
	}
	if status, text := w.send(browser, w.request(http.MethodPost, "/logout", form, url.Values{"form_token": token[1:]}.Encode())); status != http.StatusSeeOther {
		t.Fatalf("the log-out is answered %d %.200s", status, text)
	}
	steals("the session that was ended", copies[1], false)
	w.Kill()
	w.begin(harness.Binary(t))
	wait.Until(t, "the journal is open", func() bool {
		status, _ := w.ask(browser, http.MethodGet, "/api/v1/kpis", "", "")
		return status == http.StatusOK
	})
	steals("the first session, after a restart", copies[0], false)
	steals("the session that was ended, after a restart", copies[1], false)
}
