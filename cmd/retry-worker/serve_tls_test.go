package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/tlstest"
	"retry-worker/internal/testkit/wait"
)

// The commands that speak to the API reach a worker that speaks TLS: by the settings they share with it, with the
// authority named; who is not to be trusted, and what is no authority, is said.
func TestDeadLettersOverTLS(t *testing.T) {
	authority := tlstest.NewAuthority(t)
	dir := t.TempDir()
	tokens, cert, key := filepath.Join(dir, "tokens"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	authority.Issue(t, cert, key, "console")
	secret := retryWorker("token", "new", "--name", "maria", "--role", "viewer", "--file", tokens, "-o", "json").object(t)["token"].(string)
	p := serve(t, map[string]string{
		"ZEEBE_ADDRESS": testkit.Nowhere(t), "RETRY_WORKER_AUTH_TOKENS_FILE": tokens, "RETRY_WORKER_TLS_CERT_FILE": cert, "RETRY_WORKER_TLS_KEY_FILE": key,
	}, "serve")
	addr := p.api
	t.Setenv("RETRY_WORKER_HTTP_ADDR", addr) // the other settings are the worker's own
	t.Setenv(tokenVariable, secret)
	list := func(args ...string) result { return retryWorker(append([]string{"dead-letters", "list"}, args...)...) }
	wait.Until(t, "the journal is open", func() bool { return list("--ca-file", authority.File).code == exitDone })
	if r := list("--ca-file", authority.File); r.stdout != "Nothing was found.\n" || r.stderr != "" {
		t.Errorf("by the settings: %q %q", r.stdout, r.stderr)
	}
	_, port, err := net.SplitHostPort(addr)
	testkit.Must(t, err)
	list("--ca-file", authority.File, "--server", "https://localhost:"+port).done(t) // another name of the certificate
	foreign := "the certificate of https://" + addr + " is not to be trusted: "
	if r := list(); r.code != exitFailed || !strings.Contains(r.stderr, foreign) || !strings.Contains(r.stderr, "name its authority by --ca-file") || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("without the authority: exit %d, %q", r.code, r.stderr)
	}
	if r := list("--ca-file", tlstest.NewAuthority(t).File); r.code != exitFailed || !strings.Contains(r.stderr, foreign) {
		t.Errorf("with another authority: exit %d, %q", r.code, r.stderr)
	}
	if r := list("--server", "http://"+addr); r.code != exitFailed || strings.Contains(r.stderr, secret) {
		t.Errorf("by plain HTTP: exit %d, %q", r.code, r.stderr)
	}
	const expected = "expected a PEM file with the certificates of the authorities to trust"
	list("--ca-file", tokens).fails(t, exitUsage, `--ca-file is "`+tokens+`", which holds no certificate, `+expected)
	gone := filepath.Join(dir, "gone")
	list("--ca-file", gone).fails(t, exitUsage, `--ca-file is "`+gone+`", which cannot be read (no such file or directory), `+expected)
}
