package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

// apiAddr is where the process says that its API listens.
func (p *process) apiAddr(t *testing.T) string {
	t.Helper()
	for text := range strings.Lines(p.output()) {
		var line struct{ Message, API string }
		if json.Unmarshal([]byte(text), &line) == nil && line.Message == "serving" {
			return line.API
		}
	}
	t.Fatal("it does not say that it serves")
	return ""
}

// A worker with a tokens file lets in who has a token, by the command line, and sends browsers to the log-in.
func TestServeBehindTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	made := retryWorker("token", "new", "--name", "maria.silva", "--role", "viewer", "--file", file, "-o", "json").object(t)
	secret := made["token"].(string)
	p := serve(t, map[string]string{"ZEEBE_ADDRESS": gateway.Nowhere(t), "RETRY_WORKER_AUTH_TOKENS_FILE": file}, "serve")
	addr := p.apiAddr(t)
	t.Setenv("RETRY_WORKER_HTTP_ADDR", addr)
	retryWorker("dead-letters", "list").fails(t, exitFailed,
		"login_required: nobody is logged in; send `Authorization: Bearer TOKEN`, or log in at /login (the token comes from RETRY_WORKER_TOKEN or --token-file)")
	withToken := []string{"dead-letters", "list", "--token-file", write(t, "token", []byte(secret+"\n"))}
	wait.Until(t, "the journal is open", func() bool { return retryWorker(withToken...).code == exitDone })
	if r := retryWorker(withToken...); r.stdout != "No dead letter is open.\n" || r.stderr != "" {
		t.Errorf("with a token: %q %q", r.stdout, r.stderr)
	}
	browse(t, "http://"+addr, secret)
	p.signal(t, syscall.SIGTERM)
	p.ends(t, patience)
	if strings.Contains(p.output(), secret) || p.stderr.Len() > 0 {
		t.Error("the token stands in the log, or something on standard error")
	}
}

// browse logs in with a browser's means, reads a page and logs out.
func browse(t *testing.T, root, secret string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	testkit.Must(t, err)
	browser := http.Client{Jar: jar}
	visit := func(method, path string, form url.Values) (landed, text string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, root+path, strings.NewReader(form.Encode()))
		testkit.Must(t, err)
		request.Header.Set("Accept", "text/html")
		if form != nil {
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		response, err := browser.Do(request)
		testkit.Must(t, err)
		defer response.Body.Close()
		page, err := io.ReadAll(response.Body)
		testkit.Must(t, err)
		return response.Request.URL.Path, string(page)
	}
	if landed, page := visit(http.MethodGet, "/dead-letters", nil); landed != "/login" || !strings.Contains(page, `name="token"`) {
		t.Errorf("nobody lands at %s:\n%s", landed, page)
	}
	landed, page := visit(http.MethodPost, "/login", url.Values{"token": {secret}, "next": {"/dead-letters"}})
	_, rest, _ := strings.Cut(page, `name="form_token" value="`)
	formToken, _, _ := strings.Cut(rest, `"`)
	if landed != "/dead-letters" || !strings.Contains(page, "maria.silva") || formToken == "" {
		t.Fatalf("after the log-in one lands at %s:\n%s", landed, page)
	}
	if landed, _ := visit(http.MethodPost, "/logout", url.Values{"form_token": {formToken}}); landed != "/login" {
		t.Errorf("after the log-out one lands at %s", landed)
	}
	if landed, _ := visit(http.MethodGet, "/", nil); landed != "/login" {
		t.Errorf("logged out one still reads %s", landed)
	}
}

// Without tokens the console is for this machine, and a tokens file that is wrong is no tokens file.
func TestServeRefusesToBeOpen(t *testing.T) {
	p := map[string]string{"RETRY_WORKER_OPS_ADDR": "127.0.0.1:0", "RETRY_WORKER_HTTP_ADDR": "0.0.0.0:0"}
	environment(t, p)
	retryWorker("serve").fails(t, exitUsage,
		`RETRY_WORKER_HTTP_ADDR is "0.0.0.0:0", expected a loopback address such as 127.0.0.1:8095 as long as neither RETRY_WORKER_AUTH_TOKENS_FILE nor RETRY_WORKER_OIDC_ISSUER is set: `+
			"other machines reach this one, patients' claims are served there, and nobody has to log in; "+
			"`retry-worker token new --name NAME --role admin --file FILE` makes the first")
	for name, content := range map[string]string{"empty": "", "wrong": "maria boss - x\n"} {
		file := write(t, name, []byte(content))
		t.Setenv("RETRY_WORKER_AUTH_TOKENS_FILE", file)
		t.Setenv("RETRY_WORKER_HTTP_ADDR", "127.0.0.1:0")
		r := retryWorker("serve")
		if r.code != exitUsage || r.stdout != "" || !strings.HasPrefix(r.stderr, "retry-worker: RETRY_WORKER_AUTH_TOKENS_FILE: "+file+":1: ") {
			t.Errorf("%s: exit %d, %q %q", name, r.code, r.stdout, r.stderr)
		}
	}
}
