package main

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// accounts is an OpenID provider of one person, who is an operator of the team ti.
type accounts struct{ *storage.Storage }

func (accounts) GetUserByID(string) *storage.User {
	return &storage.User{ID: "1", Username: "maria.silva", Password: "senha"}
}
func (a accounts) GetUserByUsername(string) *storage.User { return a.GetUserByID("") }
func (accounts) ExampleClientID() string                  { return "service" }

func (a accounts) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, token op.IDTokenRequest, scopes []string) error {
	for name, value := range map[string]any{"preferred_username": "maria.silva", "roles": "operator", "teams": "ti"} {
		info.AppendClaims(name, value)
	}
	return a.Storage.SetUserinfoFromRequest(ctx, info, token, scopes)
}

// A worker whose provider is away at its start serves, and lets people in once it is there. The log-in outlives a restart,
// and so does the log-out.
func TestServeBehindAProvider(t *testing.T) {
	var handler http.Handler
	var there atomic.Bool
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !there.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer provider.Close()
	vars := map[string]string{
		"ZEEBE_ADDRESS": testkit.Nowhere(t), "RETRY_WORKER_OIDC_ISSUER": provider.URL, "RETRY_WORKER_OIDC_CLIENT_ID": "retry-worker",
		"RETRY_WORKER_OIDC_CLIENT_SECRET_FILE": testkit.File(t, "client", []byte("a client's secret\n")), "RETRY_WORKER_OIDC_TEAM_CLAIM": "teams",
		"RETRY_WORKER_DATABASE_URL": "sqlite:" + t.TempDir() + "/journal.db",
	}
	p := serve(t, vars, "serve")
	root := "http://" + p.api
	vars["RETRY_WORKER_HTTP_ADDR"] = p.api
	store := storage.NewStorageWithClients(accounts{}, map[string]*storage.Client{"retry-worker": storage.WebClient("retry-worker", "a client's secret", root+"/login/callback")})
	handler = exampleop.SetupServer(provider.URL, accounts{store}, slog.New(slog.DiscardHandler), false)

	jar, _ := cookiejar.New(nil) // never fails
	b := &person{&http.Client{Jar: jar}, t}
	if status, page := b.ask(http.MethodGet, root+"/login/oidc", nil); status != http.StatusServiceUnavailable || !strings.Contains(page, "account service does not answer") {
		t.Errorf("while the provider is away: %d %s", status, page)
	}
	there.Store(true)
	form := ""
	wait.Until(t, "the provider's form", func() bool {
		_, form = b.ask(http.MethodGet, root+"/login/oidc?next=%2Fdead-letters", nil)
		return strings.Contains(form, `name="id"`)
	})
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(form)[1]
	status, page := b.ask(http.MethodPost, provider.URL+"/login/username", url.Values{"id": {id}, "username": {"maria.silva"}, "password": {"senha"}})
	if status != http.StatusOK || !strings.Contains(page, "maria.silva") {
		t.Fatalf("back from the provider: %d %s", status, page)
	}
	restart := func() {
		t.Helper()
		testkit.Must(t, p.Signal(syscall.SIGTERM))
		p.ends(t, patience)
		p = serve(t, vars, "serve")
	}
	restart()
	wait.Until(t, "the journal is open", func() bool {
		status, page = b.ask(http.MethodGet, root+"/dead-letters", nil)
		return status == http.StatusOK
	})
	_, rest, _ := strings.Cut(page, `name="form_token" value="`)
	formToken, _, _ := strings.Cut(rest, `"`)
	if !strings.Contains(page, "maria.silva") || formToken == "" {
		t.Fatalf("after a restart: %s", page)
	}
	at, _ := url.Parse(root) // ours
	copied := jar.Cookies(at)
	b.ask(http.MethodPost, root+"/logout", url.Values{"form_token": {formToken}})
	restart()
	jar.SetCookies(at, copied)
	wait.Until(t, "the journal is open", func() bool {
		status, page = b.ask(http.MethodGet, root+"/dead-letters", nil)
		return !strings.Contains(page, "maria.silva")
	})
	if strings.Contains(page, "form_token") || !strings.Contains(page, "Log in with the hospital account") {
		t.Errorf("a copy of the cookie after a log-out and a restart: %d %s", status, page)
	}
	testkit.Must(t, p.Signal(syscall.SIGTERM))
	p.ends(t, patience)
}

// person is somebody with a browser.
type person struct {
	*http.Client
	t *testing.T
}

func (p *person) ask(method, address string, form url.Values) (status int, text string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, address, strings.NewReader(form.Encode()))
	testkit.Must(p.t, err)
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Accept-Language", "en")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	status, _, text = testkit.Send(p.t, p.Client, r)
	return status, text
}
