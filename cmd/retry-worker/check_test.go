package main

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/golden"
)

func topologyFails(code codes.Code) func(*testing.T, *gateway.Gateway) {
	return func(_ *testing.T, g *gateway.Gateway) { g.Inject(gateway.Fault{Method: gateway.Topology, Code: code}) }
}

// TestCheck: what the check says of an engine, and exit 1 where something is to be mended. Each case has its file in
// testdata/check.
func TestCheck(t *testing.T) {
	plain := map[string]string{"ZEEBE_INSECURE_CONNECTION": "true"}
	none := func(*testing.T, *gateway.Gateway) {}
	idp := gateway.NewIDP(t, "worker", "canary-secret", "zeebe-api")
	wantsToken := func(_ *testing.T, g *gateway.Gateway) { g.RequireToken(idp.Accepts) }
	client := func(id, secret, audience string) map[string]string {
		return map[string]string{
			"ZEEBE_INSECURE_CONNECTION": "true", "ZEEBE_AUTHORIZATION_SERVER_URL": idp.URL(),
			"ZEEBE_CLIENT_ID": id, "ZEEBE_CLIENT_SECRET": secret, "ZEEBE_TOKEN_AUDIENCE": audience,
		}
	}
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>Log in"))
	}))
	defer page.Close()
	for name, tt := range map[string]struct {
		options gateway.Options
		prepare func(*testing.T, *gateway.Gateway)
		vars    map[string]string
		args    string
	}{
		"plain":        {gateway.Options{}, none, plain, ""},
		"json":         {gateway.Options{}, none, plain, "-o json"},
		"json-down":    {gateway.Options{}, func(_ *testing.T, g *gateway.Gateway) { g.Down() }, plain, "-o json"},
		"nobody-there": {gateway.Options{}, func(_ *testing.T, g *gateway.Gateway) { g.Down() }, plain, ""},
		"rest":         {gateway.Options{REST: true}, none, map[string]string{"CAMUNDA_REST_ADDRESS": "REST"}, ""},
		"rest-page":    {gateway.Options{}, none, map[string]string{"CAMUNDA_REST_ADDRESS": page.URL + "/operate"}, ""},
		"hints":        {gateway.Options{}, none, map[string]string{"ZEEBE_INSECURE_CONNECTION": "true", "ZEEBE_GATEWAY_ADDRESS": "zeebe:26500"}, ""},
		"bad-settings": {gateway.Options{}, none, map[string]string{"ZEEBE_ADDRESS": "nonsense", "RETRY_WORKER_CONCURRENCY": "0"}, ""},

		"tls":                   {gateway.Options{TLS: true}, none, map[string]string{"ZEEBE_CA_CERTIFICATE_PATH": "AUTHORITY"}, ""},
		"tls-unknown-authority": {gateway.Options{TLS: true}, none, nil, ""},
		"tls-other-name":        {gateway.Options{TLS: true}, none, map[string]string{"ZEEBE_CA_CERTIFICATE_PATH": "AUTHORITY", "ZEEBE_OVERRIDE_AUTHORITY": "zeebe.example"}, ""},
		"tls-not-expected":      {gateway.Options{TLS: true}, none, plain, ""},
		"tls-none-there":        {gateway.Options{}, none, nil, ""},

		"tenants-off":     {gateway.Options{}, none, map[string]string{"ZEEBE_INSECURE_CONNECTION": "true", "RETRY_WORKER_TENANT_IDS": "clinic-a"}, ""},
		"tenants-none":    {gateway.Options{Tenants: []string{"clinic-a"}}, none, plain, ""},
		"tenants-another": {gateway.Options{Tenants: []string{"clinic-a"}}, none, map[string]string{"ZEEBE_INSECURE_CONNECTION": "true", "RETRY_WORKER_TENANT_IDS": "clinic-b"}, ""},

		"token":                {gateway.Options{}, wantsToken, client("worker", "canary-secret", "zeebe-api"), ""},
		"token-none":           {gateway.Options{}, wantsToken, client("", "", ""), ""},
		"token-wrong-secret":   {gateway.Options{}, wantsToken, client("worker", "canary-wrong", "zeebe-api"), ""},
		"token-wrong-audience": {gateway.Options{}, wantsToken, client("worker", "canary-secret", "other"), ""},
		"token-refused": {gateway.Options{}, func(_ *testing.T, g *gateway.Gateway) {
			g.RequireToken(func(string) bool { return false })
		}, client("worker", "canary-secret", "zeebe-api"), ""},
		"token-nobody-issues": {gateway.Options{}, func(t *testing.T, g *gateway.Gateway) {
			wantsToken(t, g)
			t.Setenv("ZEEBE_AUTHORIZATION_SERVER_URL", "http://"+testkit.Nowhere(t)+"/oauth/token")
		}, client("worker", "canary-secret", "zeebe-api"), ""},

		"unavailable":   {gateway.Options{}, topologyFails(codes.Unavailable), plain, ""},
		"denied":        {gateway.Options{}, topologyFails(codes.PermissionDenied), plain, ""},
		"unimplemented": {gateway.Options{}, topologyFails(codes.Unimplemented), plain, ""},
		"internal":      {gateway.Options{}, topologyFails(codes.Internal), plain, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := gateway.New(t, tt.options)
			vars := map[string]string{"ZEEBE_ADDRESS": g.Addr()}
			maps.Copy(vars, tt.vars)
			if vars["ZEEBE_CA_CERTIFICATE_PATH"] != "" {
				vars["ZEEBE_CA_CERTIFICATE_PATH"] = g.CAFile()
			}
			if vars["CAMUNDA_REST_ADDRESS"] == "REST" {
				vars["CAMUNDA_REST_ADDRESS"] = g.RESTAddress()
			}
			testkit.Environment(t, vars)
			tt.prepare(t, g)
			checked(t, name, g, strings.Fields(tt.args)...)
		})
	}
}

// What differs from time to time: others' words for what is wrong, addresses and instants.
var (
	othersWords = regexp.MustCompile(`(ask for the topology|ask for jobs|x509|tls|Post): [^;\n]*`)
	addresses   = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	instants    = regexp.MustCompile(`valid until [0-9-]+`)
	room        = regexp.MustCompile(`[^\s"]*retry-worker\.db may be written, \d+ MiB`)
	seconds     = regexp.MustCompile(`(differs by|ends in) -?[0-9ms]+`)
)

// checked holds a check's lines and exit code against the case's file, and that it took no job and started nothing.
func checked(t *testing.T, name string, g *gateway.Gateway, args ...string) {
	t.Helper()
	r := retryWorker(append([]string{"check"}, args...)...)
	if (r.code == exitFailed) != (strings.Contains(r.stdout, "FAIL ") || strings.Contains(r.stdout, `"ok":false`)) {
		t.Errorf("exit %d after\n%s", r.code, r.stdout)
	}
	if n := len(g.Journal()) + g.Calls(gateway.CreateProcessInstance); n != 0 || g.Counts().HandedOut != 0 {
		t.Errorf("the check started %d jobs or instances", n)
	}
	said := othersWords.ReplaceAllString(r.stdout+r.stderr, "$1: …")
	said = instants.ReplaceAllString(addresses.ReplaceAllString(said, "ADDRESS"), "valid until INSTANT")
	said = seconds.ReplaceAllString(room.ReplaceAllString(said, "FILE may be written, SOME MiB"), "$1 SECONDS")
	golden.Check(t, "testdata/check/"+name+".txt", said)
}
