package main

import (
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// A worker with a tokens file lets in who has a token, and nobody else; a log-out outlives a restart.
func TestServeBehindTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	made := retryWorker("token", "new", "--name", "maria.silva", "--role", "viewer", "--file", file, "-o", "json").object(t)
	secret := made["token"].(string)
	vars := map[string]string{"ZEEBE_ADDRESS": testkit.Nowhere(t), "RETRY_WORKER_AUTH_TOKENS_FILE": file, "RETRY_WORKER_DATABASE_URL": "sqlite:" + t.TempDir() + "/journal.db"}
	p := serve(t, vars, "serve")
	t.Setenv("RETRY_WORKER_HTTP_ADDR", p.api)
	retryWorker("dead-letters", "list").fails(t, exitFailed,
		"login_required: nobody is logged in; send `Authorization: Bearer TOKEN`, or log in at /login (the token comes from RETRY_WORKER_TOKEN or --token-file)")
	withToken := []string{"dead-letters", "list", "--token-file", testkit.File(t, "token", []byte(secret+"\n"))}
	wait.Until(t, "the journal is open", func() bool { return retryWorker(withToken...).code == exitDone })
	if r := retryWorker(withToken...); r.stdout != "Nothing was found.\n" || r.stderr != "" {
		t.Errorf("with a token: %q %q", r.stdout, r.stderr)
	}

	b := newBrowser(t, "http://"+p.api)
	_, header, _ := b.ask(http.MethodPost, "/login", url.Values{"token": {secret}}.Encode())
	_, _, page := b.ask(http.MethodGet, "/", "")
	_, rest, _ := strings.Cut(page, `name="form_token" value="`)
	formToken, _, there := strings.Cut(rest, `"`)
	if status, header, _ := b.ask(http.MethodPost, "/logout", "form_token="+formToken); !there || status != http.StatusSeeOther || header.Get("Location") != "/login" {
		t.Errorf("the log-out of who is logged in: %d", status)
	}
	testkit.Must(t, p.Signal(syscall.SIGTERM))
	p.ends(t, patience)
	if strings.Contains(p.stdout.Text(), secret) || p.stderr.Text() != "" {
		t.Error("the token stands in the log, or something on standard error")
	}
	p = serve(t, vars, "serve")
	copied, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	b = newBrowser(t, "http://"+p.api)
	wait.Until(t, "that a copy of the cookie is of no use", func() bool {
		status, header, _ := b.ask(http.MethodGet, "/", "", "Cookie", copied)
		return status == http.StatusSeeOther && strings.HasPrefix(header.Get("Location"), "/login")
	})
	testkit.Must(t, p.Signal(syscall.SIGTERM))
	p.ends(t, patience)
}

// browser of a person, which follows nothing by itself.
type browser struct {
	http.Client
	t    *testing.T
	root string
}

func newBrowser(t *testing.T, root string) *browser {
	jar, _ := cookiejar.New(nil) // never fails
	b := &browser{http.Client{Jar: jar, Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}, t, root}
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return b
}

// ask asks for an address; a body is a form unless headers say otherwise.
func (b *browser) ask(method, path, body string, headers ...string) (status int, header http.Header, text string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.root+path, strings.NewReader(body))
	testkit.Must(b.t, err)
	headers = append([]string{"Accept", "text/html", "Accept-Language", "en", "Content-Type", "application/x-www-form-urlencoded"}, headers...)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return testkit.Send(b.t, &b.Client, r)
}
