package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/tlstest"
)

// The check says who can log in and how long the certificate holds, and what is wrong with the files; where there are none
// it says nothing of them.
func TestCheckConsole(t *testing.T) {
	authority := tlstest.NewAuthority(t)
	dir := t.TempDir()
	tokens, cert, key := filepath.Join(dir, "tokens"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	testkit.Environment(t, map[string]string{
		"ZEEBE_ADDRESS": testkit.Nowhere(t), "RETRY_WORKER_AUTH_TOKENS_FILE": tokens, "RETRY_WORKER_TLS_CERT_FILE": cert, "RETRY_WORKER_TLS_KEY_FILE": key,
	})
	token := func(name, expires string) string {
		return name + " viewer " + expires + " " + strings.Repeat("0123456789abcdef", 3) + name[:16] + "\n"
	}
	const fine, late = "0000000000000001", "0000000000000002"
	for name, tt := range map[string]struct {
		tokens string
		until  time.Time
		want   []string
	}{
		"sound":   {token(fine, "-") + token(late, "2020-01-31"), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), []string{"ok    tokens                   1 valid, 1 past their last day\n", "ok    certificate              of localhost, console, 127.0.0.1, until 2100-01-01T00:00:00Z\n"}},
		"ended":   {token(late, "2020-01-31"), time.Now().Add(-time.Hour), []string{"FAIL  tokens                   every token in " + tokens + " is past its last day", "FAIL  certificate              the certificate " + cert + " ended at "}},
		"unsound": {"maria boss\n", time.Time{}, []string{"FAIL  tokens                   " + tokens + ":1: the number of fields is 2, expected four", "FAIL  certificate              the certificate " + cert + " and the key " + key + ": "}},
	} {
		testkit.Must(t, os.WriteFile(tokens, []byte(tt.tokens), 0o600))
		authority.IssueUntil(t, cert, key, "console", tt.until)
		if tt.until.IsZero() {
			testkit.Must(t, os.WriteFile(key, []byte("canary"), 0o600))
		}
		r := retryWorker("check")
		for _, want := range tt.want {
			if !strings.Contains(r.stdout, want) || r.code != exitFailed || strings.Contains(r.stdout, "canary") {
				t.Errorf("%s: exit %d,\n%s\nwant %q", name, r.code, r.stdout, want)
			}
		}
	}
	testkit.Environment(t, map[string]string{"ZEEBE_ADDRESS": testkit.Nowhere(t)})
	if r := retryWorker("check"); strings.Contains(r.stdout, "tokens") || strings.Contains(r.stdout, "certificate") {
		t.Errorf("without such files it says\n%s", r.stdout)
	}
}
