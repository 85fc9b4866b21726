package config_test

import (
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/internal/access"
	"retry-worker/internal/config"
)

// Secrets come from files as well as from variables, without the line's end that editors leave.
func TestSecretsFromFiles(t *testing.T) {
	environment(t, map[string]string{
		"RETRY_WORKER_DATABASE_URL_FILE": write(t, "database", "postgres://journal:canary@db/retries\n"),
		"RETRY_WORKER_EVENTS_URL_FILE":   write(t, "events", "nats://worker:canary@nats:4222\r\n"),
		"ZEEBE_CLIENT_ID":                "worker", "ZEEBE_CLIENT_SECRET_FILE": write(t, "client", " canary \n"),
	})
	s := load(t)
	if s.DatabaseURL != "postgres://journal:canary@db/retries" || s.EventsURL != "nats://worker:canary@nats:4222" || s.Engine.OAuth.ClientSecret != "canary" {
		t.Errorf("the settings are %q, %q and %q, expected what stands in the files", s.DatabaseURL, s.EventsURL, s.Engine.OAuth.ClientSecret)
	}
	if url, err := config.DatabaseURL(); err != nil || url != s.DatabaseURL {
		t.Errorf("the commands that read the journal find it at %q (%v), expected where the worker does", url, err)
	}
}

// What is wrong with such a file is one line that names it, and nothing that stands in it.
func TestSecretFilesThatCannotBe(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"missing":            {map[string]string{"RETRY_WORKER_DATABASE_URL_FILE": gone}, `RETRY_WORKER_DATABASE_URL_FILE is "` + gone + `", expected a readable file with the value of RETRY_WORKER_DATABASE_URL (no such file or directory)`},
		"empty":              {map[string]string{"RETRY_WORKER_EVENTS_URL_FILE": write(t, "empty", "\n")}, "it is empty"},
		"a folder":           {map[string]string{"RETRY_WORKER_DATABASE_URL_FILE": t.TempDir()}, "is a directory"},
		"too large":          {map[string]string{"RETRY_WORKER_DATABASE_URL_FILE": write(t, "large", strings.Repeat("canary", 20_000))}, "more than 65536 bytes"},
		"both":               {map[string]string{"RETRY_WORKER_EVENTS_URL": "nats://canary@x", "RETRY_WORKER_EVENTS_URL_FILE": write(t, "both", "nats://canary@y")}, "RETRY_WORKER_EVENTS_URL and RETRY_WORKER_EVENTS_URL_FILE are both set, expected one of them"},
		"a wrong URL":        {map[string]string{"RETRY_WORKER_DATABASE_URL_FILE": write(t, "wrong", "mysql://canary@db")}, "RETRY_WORKER_DATABASE_URL is a URL that begins with mysql://, expected"},
		"a client's missing": {map[string]string{"ZEEBE_CLIENT_ID": "worker", "ZEEBE_CLIENT_SECRET_FILE": gone}, "ZEEBE_CLIENT_SECRET_FILE is "},
		"a secret alone":     {map[string]string{"ZEEBE_CLIENT_SECRET_FILE": write(t, "secret", "canary")}, "ZEEBE_CLIENT_ID is missing, expected"},
		"no key":             {map[string]string{"RETRY_WORKER_TLS_CERT_FILE": gone}, "RETRY_WORKER_TLS_KEY_FILE is missing, expected"},
		"no certificate":     {map[string]string{"RETRY_WORKER_TLS_KEY_FILE": gone}, "RETRY_WORKER_TLS_CERT_FILE is missing, expected"},
		"no client":          {map[string]string{"RETRY_WORKER_OIDC_ISSUER": "https://canary", "RETRY_WORKER_OIDC_CLIENT_SECRET_FILE": write(t, "client", "canary")}, "RETRY_WORKER_OIDC_CLIENT_ID is missing, expected"},
		"no client's secret": {map[string]string{"RETRY_WORKER_OIDC_ISSUER": "https://canary", "RETRY_WORKER_OIDC_CLIENT_ID": "a"}, "RETRY_WORKER_OIDC_CLIENT_SECRET_FILE is missing, expected"},
		"no provider":        {map[string]string{"RETRY_WORKER_OIDC_CLIENT_ID": "a", "RETRY_WORKER_OIDC_CLIENT_SECRET_FILE": write(t, "client2", "canary")}, "RETRY_WORKER_OIDC_ISSUER is no URL, expected https://…"},
		"a plain provider":   {map[string]string{"RETRY_WORKER_OIDC_ISSUER": "http://login.canary", "RETRY_WORKER_OIDC_CLIENT_ID": "a", "RETRY_WORKER_OIDC_CLIENT_SECRET_FILE": write(t, "client3", "canary")}, "RETRY_WORKER_OIDC_ISSUER is a URL that begins with http://, expected https://…"},
		"a switch":           {map[string]string{"RETRY_WORKER_PPROF": "on"}, `RETRY_WORKER_PPROF is "on", expected true or false`},
	} {
		t.Run(name, func(t *testing.T) {
			environment(t, c.env)
			found := problems(t)
			if len(found) != 1 || !strings.Contains(found[0], c.want) || strings.Contains(strings.Join(found, ""), "canary") {
				t.Errorf("it said %q, expected one line with %q and nothing secret", found, c.want)
			}
		})
	}
}

// With a provider console and API may be served to other machines.
func TestProvider(t *testing.T) {
	environment(t, map[string]string{
		"RETRY_WORKER_OIDC_ISSUER": "http://127.0.0.1:5556/dex", "RETRY_WORKER_OIDC_CLIENT_ID": "retry-worker", "RETRY_WORKER_OIDC_TEAM_CLAIM": "groups",
		"RETRY_WORKER_OIDC_CLIENT_SECRET_FILE": write(t, "client", "senha\n"), "RETRY_WORKER_HTTP_ADDR": "0.0.0.0:8095",
	})
	s, err := config.Load()
	want := access.Provider{Issuer: "http://127.0.0.1:5556/dex", ClientID: "retry-worker", ClientSecret: "senha", RoleClaim: "roles", TeamClaim: "groups"}
	if err != nil || s.Provider == nil || *s.Provider != want {
		t.Errorf("got %+v (%v), want %+v", s.Provider, err, want)
	}
}
