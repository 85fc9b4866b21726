// Package attacks attacks the built program from outside.
package attacks_test

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/access"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
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
	t        *testing.T
	engine   *gateway.Gateway
	settings []string
	secret   string // an admin's
}

func start(t *testing.T, more ...string) *worker {
	t.Helper()
	binary, dir := harness.Binary(t), t.TempDir()
	secret := harness.Issue(t, filepath.Join(dir, "tokens"), map[string]access.Role{"ada": access.Admin})["ada"]
	w := &worker{t: t, engine: gateway.New(t, gateway.Options{}), secret: secret}
	w.settings = append(harness.Settings(w.engine.Addr(), dir, "RETRY_WORKER_AUTH_TOKENS_FILE="+filepath.Join(dir, "tokens")), more...)
	w.begin(binary)
	return w
}

// begin starts the worker's process on the journal of the one before.
func (w *worker) begin(binary string) {
	w.t.Helper()
	w.Worker = harness.StartWorker(w.t, binary, w.settings)
	w.t.Cleanup(w.Kill) // a stop would wait for nothing
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

// connect connects from one address to another, and sends a text.
func (w *worker) connect(from, to, send string) net.Conn {
	w.t.Helper()
	c, err := dialer(from).DialContext(context.Background(), "tcp", to)
	testkit.Must(w.t, err)
	w.t.Cleanup(func() { c.Close() })
	testkit.Must(w.t, c.SetDeadline(time.Now().Add(patience)))
	_, _ = c.Write([]byte(send)) // a refusal shows on reading
	return c
}

// request returns a request to the console, or to a whole URL.
func (w *worker) request(method, to, kind, body string) *http.Request {
	w.t.Helper()
	if strings.HasPrefix(to, "/") {
		to = "http://" + w.API + to
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, to, strings.NewReader(body))
	testkit.Must(w.t, err)
	r.Header.Set("Content-Type", kind)
	return r
}

// send returns the answer's status and body.
func (w *worker) send(c *http.Client, r *http.Request) (status int, body string) {
	w.t.Helper()
	status, _, body = testkit.Send(w.t, c, r)
	return status, body
}

// logIn logs in with a token, and returns the status.
func (w *worker) logIn(c *http.Client, token string) int {
	w.t.Helper()
	status, _ := w.send(c, w.request(http.MethodPost, "/login", form, url.Values{"token": {token}}.Encode()))
	return status
}
