package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
)

// A database, an OpenID provider and a NATS server that are not there are each said, and one that is there passes.
func TestCheckOpensEveryConnection(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	var provider *httptest.Server
	provider = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"issuer":"` + provider.URL + `","authorization_endpoint":"` + provider.URL + `/a","token_endpoint":"` + provider.URL +
			`/t","jwks_uri":"` + provider.URL + `/k","id_token_signing_alg_values_supported":["RS256"]}`))
	}))
	defer provider.Close()
	nowhere := testkit.Nowhere(t)
	for issuer, ok := range map[string]bool{provider.URL: true, "http://" + nowhere: false} {
		testkit.Environment(t, map[string]string{"ZEEBE_ADDRESS": g.Addr(), "ZEEBE_INSECURE_CONNECTION": "true",
			"RETRY_WORKER_DATABASE_URL": "postgres://u:canary@" + nowhere + "/x", "RETRY_WORKER_EVENTS_URL": "nats://u:canary@" + nowhere,
			"RETRY_WORKER_OIDC_ISSUER": issuer, "RETRY_WORKER_OIDC_CLIENT_ID": "x", "RETRY_WORKER_OIDC_CLIENT_SECRET_FILE": testkit.File(t, "client", []byte("canary"))})
		r := retryWorker("check")
		for _, step := range []string{"database", "NATS"} {
			if !strings.Contains(r.stdout, "FAIL  "+step+" ") {
				t.Errorf("%s is not there, and it says\n%s", step, r.stdout)
			}
		}
		if strings.Contains(r.stdout, "ok    OpenID provider ") != ok || strings.Contains(r.stdout, "FAIL  OpenID provider ") == ok {
			t.Errorf("the provider is there: %t, and it says\n%s", ok, r.stdout)
		}
		if r.code != exitFailed || strings.Contains(r.stdout, "canary") {
			t.Errorf("exit %d\n%s", r.code, r.stdout)
		}
	}
	path := audited(t)
	t.Setenv("ZEEBE_ADDRESS", g.Addr())
	t.Setenv("ZEEBE_INSECURE_CONNECTION", "true")
	if r := retryWorker("check"); !strings.Contains(r.stdout, "; the journal can be read") {
		t.Errorf("of %s it says\n%s", path, r.stdout)
	}
	t.Setenv("RETRY_WORKER_DATABASE_URL", "sqlite:"+filepath.Join(t.TempDir(), "no", "journal.db"))
	if r := retryWorker("check"); !strings.Contains(r.stdout, "FAIL  database ") {
		t.Errorf("of a folder that is not there it says\n%s", r.stdout)
	}
}
