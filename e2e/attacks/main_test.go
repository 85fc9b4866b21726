// Package attacks attacks the built program from outside.
package attacks_test

import (
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/tlstest"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	form = "application/x-www-form-urlencoded"
	// patience bounds an answer. The goal is a second, which a busy machine may miss; the time taken is reported.
	patience = 20 * time.Second
	// attacker and other are addresses of this machine.
	attacker, other = "127.0.0.9", "127.0.1.1"
)

// worker is a worker with a tokens file, for one test.
type worker struct {
	*harness.Worker
	t         *testing.T
	engine    *gateway.Gateway
	authority *tlstest.Authority // nil without TLS
	secret    string             // an admin's
}

func start(t *testing.T, settings ...string) *worker {
	t.Helper()
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	w := &worker{t: t, engine: gateway.New(t, gateway.Options{}), secret: harness.Issue(t, tokens, map[string]access.Role{"ada": access.Admin})["ada"]}
	settings = append(settings, "RETRY_WORKER_AUTH_TOKENS_FILE="+tokens)
	w.Worker = harness.StartWorker(t, harness.Binary(t), harness.Settings(w.engine.Addr(), dir, settings...))
	t.Cleanup(w.Kill) // a stop would wait for nothing
	return w
}

func startTLS(t *testing.T) *worker {
	t.Helper()
	authority, dir := tlstest.NewAuthority(t), t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	authority.Issue(t, cert, key, "console")
	w := start(t, "RETRY_WORKER_TLS_CERT_FILE="+cert, "RETRY_WORKER_TLS_KEY_FILE="+key)
	w.authority = authority
	return w
}

// dialer returns a dialer that connects from an address of this machine.
func dialer(from string) *net.Dialer {
	return &net.Dialer{Timeout: patience, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
}

// client returns a client that connects from an address and follows no redirect.
func (w *worker) client(from string) *http.Client {
	transport := &http.Transport{DialContext: dialer(from).DialContext}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Timeout: patience, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// logIn logs in with a token, and returns the status.
func (w *worker) logIn(c *http.Client, token string) int {
	w.t.Helper()
	r, err := c.PostForm("http://"+w.API+"/login", url.Values{"token": {token}})
	testkit.Must(w.t, err)
	r.Body.Close()
	return r.StatusCode
}
