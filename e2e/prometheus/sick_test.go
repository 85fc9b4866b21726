package prometheus_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// sickJob is the name that Prometheus scrapes the sick worker under.
const sickJob = "sick"

// sick is a second worker, whose engine nobody has started, and whose policies, tokens and certificate go bad after its
// start: the alerts on that are seen on a real one too.
type sick struct {
	process *harness.Process
	opsAddr string
	files   []string
}

func startSick(t *testing.T, binary, dir string) *sick {
	t.Helper()
	testkit.Must(t, os.Mkdir(dir, 0o700))
	s := &sick{}
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		testkit.Must(t, os.WriteFile(path, content, 0o600))
		s.files = append(s.files, path)
		return path
	}
	policies := []byte(testkit.Read(t, root+"/internal/catalogue/default.yaml"))
	certificate, key := pair(t)
	tokens := filepath.Join(dir, "tokens")
	made, err := harness.Start(harness.Command{Path: binary, Args: []string{"token", "new", "--name", "a.viewer", "--role", "viewer", "--file", tokens}, Dir: dir})
	testkit.Must(t, err)
	testkit.Must(t, made.Err())
	s.files = append(s.files, tokens)
	s.process, err = harness.Start(harness.Command{Path: binary, Args: []string{"serve"}, Dir: dir, Env: []string{
		"ZEEBE_ADDRESS=127.0.0.1:1", "ZEEBE_INSECURE_CONNECTION=true", "PATH=" + os.Getenv("PATH"),
		"RETRY_WORKER_HTTP_ADDR=127.0.0.1:0", "RETRY_WORKER_OPS_ADDR=127.0.0.1:0", "RETRY_WORKER_DATABASE_URL=sqlite:" + filepath.Join(dir, "journal.db"),
		"RETRY_WORKER_POLICIES_FILE=" + file("policies.yaml", policies), "RETRY_WORKER_AUTH_TOKENS_FILE=" + tokens,
		"RETRY_WORKER_TLS_CERT_FILE=" + file("tls.crt", certificate), "RETRY_WORKER_TLS_KEY_FILE=" + file("tls.key", key),
	}})
	testkit.Must(t, err)
	harness.AtEnd(func() error { return s.process.Stop(context.Background(), harness.StopTime) })
	wait.Until(t, "the sick worker serving", func() bool {
		_, s.opsAddr = addresses(s.process)
		return s.opsAddr != ""
	}, s.process.LastLine)
	for _, path := range s.files {
		testkit.Must(t, os.WriteFile(path, []byte("neither this nor that"), 0o600))
	}
	return s
}

// pair is a certificate and its key, as PEM files hold them.
func pair(t *testing.T) (certificate, key []byte) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	known := server.TLS.Certificates[0]
	secret, err := x509.MarshalPKCS8PrivateKey(known.PrivateKey)
	testkit.Must(t, err)
	var c, k bytes.Buffer
	testkit.Must(t, pem.Encode(&c, &pem.Block{Type: "CERTIFICATE", Bytes: known.Certificate[0]}))
	testkit.Must(t, pem.Encode(&k, &pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	return c.Bytes(), k.Bytes()
}

// addresses that a worker says it serves at; empty before.
func addresses(p *harness.Process) (api, ops string) {
	for _, line := range p.Lines() {
		var l struct{ Message, Ops, API string }
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &l) == nil && l.Message == "serving" {
			api, ops = l.API, l.Ops
		}
	}
	return api, ops
}
