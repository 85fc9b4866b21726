package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// A worker with a tokens file lets in who has a token, and nobody else; browsers log in in e2e/console and e2e/image.
func TestServeBehindTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	made := retryWorker("token", "new", "--name", "maria.silva", "--role", "viewer", "--file", file, "-o", "json").object(t)
	secret := made["token"].(string)
	p := serve(t, map[string]string{"ZEEBE_ADDRESS": testkit.Nowhere(t), "RETRY_WORKER_AUTH_TOKENS_FILE": file}, "serve")
	t.Setenv("RETRY_WORKER_HTTP_ADDR", p.api)
	retryWorker("dead-letters", "list").fails(t, exitFailed,
		"login_required: nobody is logged in; send `Authorization: Bearer TOKEN`, or log in at /login (the token comes from RETRY_WORKER_TOKEN or --token-file)")
	withToken := []string{"dead-letters", "list", "--token-file", testkit.File(t, "token", []byte(secret+"\n"))}
	wait.Until(t, "the journal is open", func() bool { return retryWorker(withToken...).code == exitDone })
	if r := retryWorker(withToken...); r.stdout != "Nothing was found.\n" || r.stderr != "" {
		t.Errorf("with a token: %q %q", r.stdout, r.stderr)
	}
	testkit.Must(t, p.Signal(syscall.SIGTERM))
	p.ends(t, patience)
	if strings.Contains(p.stdout.Text(), secret) || p.stderr.Text() != "" {
		t.Error("the token stands in the log, or something on standard error")
	}
}
