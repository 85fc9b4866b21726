package app_test

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/config"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/tlstest"
	"retry-worker/internal/testkit/wait"
)

// guarded are settings with a token and a certificate, and the token.
func guarded(t *testing.T, a *tlstest.Authority) (s config.Settings, secret string) {
	t.Helper()
	secret, made := access.NewToken("maria.silva", access.Operator, time.Time{})
	dir := t.TempDir()
	s = settings(t, gateway.New(t, gateway.Options{}).Addr())
	s.AuthTokensFile, s.TLSCertFile, s.TLSKeyFile = filepath.Join(dir, "tokens"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	testkit.Must(t, access.Append(s.AuthTokensFile, &made))
	a.Issue(t, s.TLSCertFile, s.TLSKeyFile, "first")
	return s, secret
}

// TestForbiddenIsLogged: who may not do what he asked for stands in the log, and a flood of it does not fill the disk.
func TestForbiddenIsLogged(t *testing.T) {
	r := serve(t, settings(t, testkit.Nowhere(t)))
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
