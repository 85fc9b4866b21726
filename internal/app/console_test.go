package app_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/config"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/tlstest"
	"retry-worker/internal/testkit/wait"
)

// browser goes to a console over TLS, as a person's does.
type browser struct {
	http.Client
	root string
}

func newBrowser(t *testing.T, a *tlstest.Authority, addr string) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	testkit.Must(t, err)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool}, DisableKeepAlives: true}
	follow := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &browser{http.Client{Jar: jar, Timeout: patience, Transport: transport, CheckRedirect: follow}, "https://" + addr}
}

// seen is what a visit was answered with.
type seen struct {
	status  int
	header  http.Header
	cookies []*http.Cookie
	tls     *tls.ConnectionState
	page    string
}

// visit asks for a page, or posts a form to it.
func (b *browser) visit(t *testing.T, path string, form url.Values) seen {
	t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(wait.Context(t), method, b.root+path, strings.NewReader(form.Encode()))
	testkit.Must(t, err)
	request.Header.Set("Accept", "text/html")
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Origin", b.root)
	}
	response, err := b.Do(request)
	testkit.Must(t, err)
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	return seen{response.StatusCode, response.Header, response.Cookies(), response.TLS, string(page)}
}

// guarded are settings with a token and a certificate, and the token.
func guarded(t *testing.T, a *tlstest.Authority) (s config.Settings, secret string) {
	t.Helper()
	secret, made, err := access.NewToken("maria.silva", access.Operator, time.Time{})
	testkit.Must(t, err)
	dir := t.TempDir()
	s = settings(t, gateway.New(t, gateway.Options{}).Addr())
	s.AuthTokensFile, s.TLSCertFile, s.TLSKeyFile = filepath.Join(dir, "tokens"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	testkit.Must(t, access.Append(s.AuthTokensFile, &made))
	a.Issue(t, s.TLSCertFile, s.TLSKeyFile, "first")
	return s, secret
}

// TestConsoleOverTLS: a person logs in over TLS, gets a cookie that never leaves it, and stays logged in while the
// certificate is renewed. A broken renewal changes nothing, and is told.
func TestConsoleOverTLS(t *testing.T) {
	skipIfShort(t, "waits for the certificate to be looked at")
	authority := tlstest.NewAuthority(t)
	s, secret := guarded(t, authority)
	r := serve(t, s)
	b := newBrowser(t, authority, r.HTTPAddr())
	in := b.visit(t, "/login", url.Values{"token": {secret}, "next": {"/dead-letters"}})
	cookies := in.cookies
	if len(cookies) != 1 || in.status != http.StatusSeeOther {
		t.Fatalf("the log-in is answered by %d with %d cookies", in.status, len(cookies))
	}
	if c := cookies[0]; c.Name != "__Host-retry-worker-session" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" {
		t.Errorf("the session's cookie is %+v", c)
	}
	shows := func(name string) bool {
		list := b.visit(t, "/dead-letters", nil)
		if list.status != http.StatusOK || !strings.Contains(list.page, "maria.silva") || list.header.Get("Cache-Control") != "no-store" {
			t.Fatalf("the list is answered by %d, Cache-Control %q", list.status, list.header.Get("Cache-Control"))
		}
		return list.tls.Version >= tls.VersionTLS12 && list.tls.PeerCertificates[0].Subject.CommonName == name
	}
	if !shows("first") {
		t.Error("another certificate is shown than that of the file")
	}
	authority.Issue(t, s.TLSCertFile, s.TLSKeyFile, "second")
	wait.Until(t, "the renewed certificate is shown", func() bool { return shows("second") })

	testkit.Must(t, os.WriteFile(s.TLSKeyFile, []byte("canary"), 0o600))
	wait.Until(t, "a broken key is told", func() bool {
		_, body := r.get(t, "/readyz")
		return strings.Contains(body, "certificate rejected: ") && strings.Contains(body, "the one before stays in force")
	})
	if !shows("second") || !r.metric(t, "retry_worker_certificate_rejected 1") || len(logged.with(t, "event", "certificate_rejected")) != 1 {
		t.Error("the broken key took the certificate away, or neither metric nor log say that it is refused")
	}
	if text := logged.String(); strings.Contains(text, "canary") || strings.Contains(text, secret) || strings.Contains(text, cookies[0].Value) {
		t.Error("the key, the token or the session stands in the log")
	}
}

// TestForbiddenIsLogged: who may not do what he asked for stands in the log, and a flood of it does not fill the disk.
func TestForbiddenIsLogged(t *testing.T) {
	r := serve(t, settings(t, gateway.Nowhere(t)))
	ask := func() {
		request, err := http.NewRequestWithContext(wait.Context(t), http.MethodGet, "http://"+r.HTTPAddr()+"/", nil)
		testkit.Must(t, err)
		request.Host = "evil.example"
		response, err := http.DefaultClient.Do(request)
		testkit.Must(t, err)
		response.Body.Close()
	}
	const asked = 300
	for range asked {
		ask()
	}
	lines := logged.with(t, "event", "request_forbidden")
	if len(lines) < 10 || len(lines) > asked/2 {
		t.Fatalf("%d lines say that %d requests were refused", len(lines), asked)
	}
	if l := lines[0]; l["code"] != "forbidden_host" || l["from"] != "127.0.0.1" || l["level"] != "warn" {
		t.Errorf("the line is %v", l)
	}
}
