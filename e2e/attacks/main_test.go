// Package attacks attacks the built program from outside.
package attacks_test

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/access"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/tlstest"
)

func TestMain(m *testing.M) { harness.Main(m) }

// worker is a worker with a tokens file and a certificate, for one test.
type worker struct {
	*harness.Worker
	engine    *gateway.Gateway
	authority *tlstest.Authority
}

func start(t *testing.T) *worker {
	t.Helper()
	w := &worker{engine: gateway.New(t, gateway.Options{}), authority: tlstest.NewAuthority(t)}
	dir := t.TempDir()
	tokens, cert, key := filepath.Join(dir, "tokens"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	harness.Issue(t, tokens, map[string]access.Role{"ada": access.Admin})
	w.authority.Issue(t, cert, key, "console")
	w.Worker = harness.StartWorker(t, harness.Binary(t), harness.Settings(w.engine.Addr(), dir,
		"RETRY_WORKER_AUTH_TOKENS_FILE="+tokens, "RETRY_WORKER_TLS_CERT_FILE="+cert, "RETRY_WORKER_TLS_KEY_FILE="+key))
	t.Cleanup(w.Kill) // a stop would wait for nothing
	return w
}

// dialer returns a dialer that connects from an address of this machine.
func dialer(from string) *net.Dialer {
	return &net.Dialer{Timeout: 20 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
}
