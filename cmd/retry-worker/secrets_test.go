package main

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/tlstest"
	"retry-worker/internal/testkit/wait"
)

// secrets are the canaries of every setting that holds one, by the setting's name; each must never be seen.
type secrets map[string]string

// spill fails the test where a canary stands in what is seen at some place.
func (s secrets) spill(t *testing.T, place, seen string) {
	t.Helper()
	for name, canary := range s {
		for what, form := range map[string]string{"": canary, ", in base64,": base64.StdEncoding.EncodeToString([]byte(canary)), ", escaped,": url.QueryEscape(canary)} {
			if i := strings.Index(seen, form); i >= 0 {
				t.Errorf("%s: the secret of %s%s stands in …%s…", place, name, what, seen[max(0, i-120):min(len(seen), i+len(form)+20)])
			}
		}
	}
}

// vault is a worker's environment in which every secret there can be is set, and everything that a secret is for is away
// or refuses it: that is when programs tell what they know.
type vault struct {
	secrets   secrets
	env       map[string]string
	authority *tlstest.Authority
	idp       *gateway.IDP
}

func newVault(t *testing.T, g *gateway.Gateway) *vault {
	t.Helper()
	v := &vault{authority: tlstest.NewAuthority(t), secrets: secrets{
		"RETRY_WORKER_EVENTS_URL": "canary-of+the.events", "ZEEBE_CLIENT_SECRET": "canary-of+the.client", "RETRY_WORKER_SMTP_PASSWORD_FILE": "canary-of+the.mail",
		"OTEL_EXPORTER_OTLP_HEADERS": "canary-of+the.traces", "RETRY_WORKER_DATABASE_URL": "canary-of+the.database", "a wrong token": "rwt_canaryofawrongtoken",
		"a webhook's secretFile": "c2VncmVkbyBkZSB1bSBob3NwaXRhbCBpbWFnaW5hcmlv",
	}}
	v.idp = gateway.NewIDP(t, "worker", v.secrets["ZEEBE_CLIENT_SECRET"], "")
	g.RequireToken(v.idp.Accepts)
	dir := t.TempDir()
	tokens, cert, key := filepath.Join(dir, "tokens"), filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	v.authority.Issue(t, cert, key, "console")
	v.secrets["RETRY_WORKER_TLS_KEY_FILE"] = strings.Split(testkit.Read(t, key), "\n")[1]
	v.secrets["RETRY_WORKER_TOKEN"] = retryWorker("token", "new", "--name", "ada", "--role", "admin", "--file", tokens, "-o", "json").object(t)["token"].(string)
	webhook := testkit.File(t, "webhook", []byte("whsec_"+v.secrets["a webhook's secretFile"]+"\n"))
	v.env = map[string]string{
		"ZEEBE_ADDRESS": g.Addr(), "ZEEBE_CLIENT_ID": "worker", "ZEEBE_AUTHORIZATION_SERVER_URL": v.idp.URL(),
		"ZEEBE_CLIENT_SECRET_FILE":        testkit.File(t, "client", []byte(v.secrets["ZEEBE_CLIENT_SECRET"]+"\n")),
		"RETRY_WORKER_EVENTS_URL":         "nats://worker:" + v.secrets["RETRY_WORKER_EVENTS_URL"] + "@" + testkit.Nowhere(t),
		"RETRY_WORKER_SMTP_URL":           "smtp://worker@" + testkit.Nowhere(t),
		"RETRY_WORKER_SMTP_PASSWORD_FILE": testkit.File(t, "mail", []byte(v.secrets["RETRY_WORKER_SMTP_PASSWORD_FILE"]+"\n")),
		"RETRY_WORKER_MAIL_FROM":          "retry-worker@hospital.example", "RETRY_WORKER_NOTIFY_INTERVAL": "1s", "RETRY_WORKER_WEBHOOK_ALLOW": "127.0.0.1",
		"RETRY_WORKER_POLICIES_FILE":    toldTeam(t, "email: [ti@hospital.example]\nwebhook: {url: 'http://"+testkit.Nowhere(t)+"/hook', secretFile: "+webhook+"}"),
		"RETRY_WORKER_AUTH_TOKENS_FILE": tokens, "RETRY_WORKER_TLS_CERT_FILE": cert, "RETRY_WORKER_TLS_KEY_FILE": key,
		"RETRY_WORKER_TOKEN": v.secrets["RETRY_WORKER_TOKEN"], "RETRY_WORKER_PPROF": "true", "RETRY_WORKER_LOG_LEVEL": "debug",
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://" + testkit.Nowhere(t), "OTEL_EXPORTER_OTLP_TIMEOUT": "300", "OTEL_BSP_SCHEDULE_DELAY": "50",
		"OTEL_EXPORTER_OTLP_HEADERS": "authorization=" + v.secrets["OTEL_EXPORTER_OTLP_HEADERS"],
	}
	return v
}

// TestSecretsAreNeverSeen: with every secret set, and everything they are for away or refusing, none stands in log, metrics,
// probes, profiles, pages, API answers, what the commands print, or error lines.
func TestSecretsAreNeverSeen(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	v := newVault(t, g)
	for n, e := range []string{"LoginInvalido", "TIMEOUT", "DUPLICATE_CLAIM"} {
		g.AddJob(analyze(fmt.Sprintf(`{"claimId":"CLM-1-%d","submissionError":%q}`, n, e)))
	}
	p := serve(t, v.env, "serve")
	testkit.Must(t, g.WaitFor(wait.Context(t), func(c gateway.Counts) bool { return c.Settled == 3 }))
	b := newBrowser(t, "https://"+p.api)
	b.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: v.authority.Pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}
	seen := func(place, method, path, body string, headers ...string) {
		status, header, text := b.ask(method, path, body, headers...)
		header.Del("Set-Cookie") // which the person who signed in is to get
		v.secrets.spill(t, place, fmt.Sprint(status, header, text))
	}
	seen("a wrong log-in", http.MethodPost, "/login", url.Values{"token": {v.secrets["a wrong token"]}}.Encode())
	seen("a log-in", http.MethodPost, "/login", url.Values{"token": {v.secrets["RETRY_WORKER_TOKEN"]}}.Encode())
	root, _ := url.Parse(b.root)
	for _, c := range b.Jar.Cookies(root) {
		v.secrets["the session's cookie"] = c.Value
	}
	if v.secrets["the session's cookie"] == "" {
		t.Fatal("nobody is logged in")
	}
	for _, path := range []string{"/", "/dead-letters", "/dead-letters/groups", "/bulk-runs", "/policies", "/audit", "/subjects/tiss-submission/CLM-1-0", "/nowhere",
		"/api/v1/openapi.json", "/api/v1/destinations", "/api/v1/dead-letters?state=all", "/api/v1/subjects/tiss-submission/CLM-1-0", "/api/v1/subjects/tiss-submission/CLM-1-0/audit", "/api/v1/nowhere"} {
		seen(path, http.MethodGet, path, "")
	}
	seen("a wrong bearer", http.MethodGet, "/api/v1/destinations", "", "Authorization", "Bearer "+v.secrets["a wrong token"])
	seen("a wrong body", http.MethodPost, "/api/v1/decisions", `{"policy":`, "Content-Type", "application/json")
	for _, event := range []string{"traces_dropped", "token_refused", "logged_in"} {
		wait.Until(t, event+" is in the log", func() bool { return strings.Contains(p.stdout.Text(), `"event":"`+event+`"`) })
	}
	wait.Until(t, "the team could not be told by either way", func() bool {
		_, text := p.get(t, "/metrics")
		return strings.Count(text, `result="failed",team="ti"} `)-strings.Count(text, `result="failed",team="ti"} 0`) == 2
	})
	for _, path := range []string{"/metrics", "/livez", "/readyz", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1"} {
		status, text := p.get(t, path)
		if status != http.StatusOK {
			t.Errorf("%s is answered by %d", path, status)
		}
		v.secrets.spill(t, path, text)
	}
	t.Setenv("RETRY_WORKER_HTTP_ADDR", p.api)
	v.commands(t)
	testkit.Must(t, p.Signal(syscall.SIGTERM))
	if code := p.ends(t, 10*time.Second); code != exitDone {
		t.Errorf("exit %d: %s", code, p.stderr.Text())
	}
	v.secrets.spill(t, "the log", p.stdout.Text())
	v.secrets.spill(t, "standard error", p.stderr.Text())
}

// commands prints what they do, in the worker's own environment, while the identity provider answers with what it was sent.
func (v *vault) commands(t *testing.T) {
	t.Helper()
	v.idp.SetFault(http.StatusUnauthorized, `{"error":"invalid_client","error_description":"`+v.secrets["ZEEBE_CLIENT_SECRET"]+`"}`)
	for _, command := range []string{"check", "check -o json", "serve --help", "serve", "dead-letters list", "dead-letters list --server https://127.0.0.1:1", "ready", "kpi",
		"history CLM-1-0", "audit verify", "policies show", "policies check nowhere", "deploy", "version", "nonsense"} {
		r := retryWorker(strings.Fields(command)...)
		if command == "check" && !strings.Contains(r.stdout, "FAIL  token") {
			t.Errorf("%s says nothing of what failed:\n%s%s", command, r.stdout, r.stderr)
		}
		v.secrets.spill(t, command, r.stdout+r.stderr)
	}
}

// TestDatabasePasswordIsNeverSeen while the server is away and the worker says so everywhere.
func TestDatabasePasswordIsNeverSeen(t *testing.T) {
	s := secrets{"RETRY_WORKER_DATABASE_URL": "canary-of+the.database"}
	address := "postgres://journal:" + url.QueryEscape(s["RETRY_WORKER_DATABASE_URL"]) + "@" + testkit.Nowhere(t) + "/journal"
	testkit.Environment(t, nil)
	p := serve(t, map[string]string{"ZEEBE_ADDRESS": testkit.Nowhere(t), "RETRY_WORKER_LOG_LEVEL": "debug", "RETRY_WORKER_DATABASE_URL": "",
		"RETRY_WORKER_DATABASE_URL_FILE": testkit.File(t, "database", []byte(address+"\n"))}, "serve")
	status, body := p.get(t, "/readyz")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, "the journal is not open: ") {
		t.Errorf("/readyz: %d %s", status, body)
	}
	s.spill(t, "/readyz", body)
	for _, command := range []string{"check", "history CLM-1-0", "kpi", "audit verify", "dead-letters list --server " + p.api} {
		r := retryWorker(strings.Fields(command)...)
		if r.code != exitFailed {
			t.Errorf("%s: exit %d, expected to fail without a server", command, r.code)
		}
		s.spill(t, command, r.stdout+r.stderr)
	}
	testkit.Must(t, p.Signal(syscall.SIGTERM))
	p.ends(t, 20*time.Second)
	s.spill(t, "the log", p.stdout.Text()+p.stderr.Text())
}

// toldTeam is a catalogue in which ti is told by those lines.
func toldTeam(t *testing.T, lines string) string {
	t.Helper()
	return testkit.File(t, "policies.yaml", []byte("extends: built-in\nteams:\n  ti:\n    "+strings.ReplaceAll(lines, "\n", "\n    ")+"\n"))
}
