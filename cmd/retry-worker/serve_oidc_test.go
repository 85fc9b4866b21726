package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// openID is an OpenID provider that describes itself while it is there.
func openID(t *testing.T, there *atomic.Bool) (root string) {
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		if !there.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(strings.ReplaceAll(`{"issuer":"URL","authorization_endpoint":"URL/a","token_endpoint":"URL/t","jwks_uri":"URL/k",
			"id_token_signing_alg_values_supported":["RS256"]}`, "URL", root)))
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	root = s.URL
	return root
}

// A worker whose provider is away at its start serves, and sends people there once it is back; internal/access has the rest.
func TestServeBehindAProvider(t *testing.T) {
	var there atomic.Bool
	issuer := openID(t, &there)
	p := serve(t, map[string]string{
		"ZEEBE_ADDRESS": testkit.Nowhere(t), "RETRY_WORKER_OIDC_ISSUER": issuer, "RETRY_WORKER_OIDC_CLIENT_ID": "retry-worker",
		"RETRY_WORKER_OIDC_CLIENT_SECRET_FILE": testkit.File(t, "client", []byte("a client's secret\n")),
	}, "serve")
	b := newBrowser(t, "http://"+p.api)
	if status, _, page := b.ask(http.MethodGet, "/login/oidc", ""); status != http.StatusServiceUnavailable || !strings.Contains(page, "account service does not answer") {
		t.Errorf("while the provider is away: %d %s", status, page)
	}
	there.Store(true)
	var to *url.URL
	wait.Until(t, "the way to the provider", func() bool {
		_, header, _ := b.ask(http.MethodGet, "/login/oidc", "")
		to, _ = url.Parse(header.Get("Location"))
		return to.Path == "/a"
	})
	if q := to.Query(); "http://"+to.Host != issuer || q.Get("client_id") != "retry-worker" || q.Get("redirect_uri") != b.root+"/login/callback" {
		t.Errorf("people are sent to %s", to)
	}
	testkit.Must(t, p.Signal(syscall.SIGTERM))
	p.ends(t, patience)
}
