package app

import (
	"strings"
	"testing"

	"retry-worker/internal/config"
	"retry-worker/internal/zeebe"
)

func TestUnencrypted(t *testing.T) {
	t.Setenv("PGSSLMODE", "")
	oauth := func(url string) config.Settings {
		return config.Settings{HTTPAddr: "127.0.0.1:0", Engine: zeebe.Options{OAuth: &zeebe.OAuth{ClientID: "worker", ClientSecret: "canary", URL: url}}}
	}
	at := func(database, events string) config.Settings {
		return config.Settings{HTTPAddr: "localhost:8095", DatabaseURL: database, EventsURL: events}
	}
	for name, tt := range map[string]struct {
		settings config.Settings
		want     string // in the only line; empty: there is none
	}{
		"all within this machine": {at("postgres://u:canary@127.0.0.1/db", "nats://u:canary@localhost:4222"), ""},
		"the console opened":      {config.Settings{HTTPAddr: "0.0.0.0:8095"}, "RETRY_WORKER_TLS_CERT_FILE"},
		"every interface":         {config.Settings{HTTPAddr: ":8095"}, "RETRY_WORKER_TLS_CERT_FILE"},
		"with a certificate":      {config.Settings{HTTPAddr: "0.0.0.0:8095", TLSCertFile: "tls.crt"}, ""},
		"a database elsewhere":    {at("postgres://u:canary@db.example/journal", ""), "sslmode=verify-full"},
		"several of them":         {at("postgres://u:canary@a.example:5432,b.example:5432/journal", ""), "sslmode=verify-full"},
		"it may fall back":        {at("postgresql://u:canary@db.example/journal?sslmode=prefer", ""), "sslmode=verify-full"},
		"it must not":             {at("postgres://u:canary@db.example/journal?sslmode=require", ""), ""},
		"switched off in words":   {at("postgres://u:canary@db.example/journal?sslmode=disable", ""), ""},
		"by a socket":             {at("postgres://u:canary@/journal?host=/run/postgresql", ""), ""},
		"a file":                  {at("sqlite:postgres.db", ""), ""},
		"events elsewhere":        {at("sqlite:x", "nats://u:canary@nats.example"), "tls://"},
		"events by TLS":           {at("sqlite:x", "tls://u:canary@nats.example"), ""},
		"events without a user":   {at("sqlite:x", "nats://nats.example"), ""},
		"a token in the open":     {oauth("http://idp.example/token"), "ZEEBE_AUTHORIZATION_SERVER_URL"},
		"a token by TLS":          {oauth("https://idp.example/token"), ""},
		"a token of this machine": {oauth("http://127.0.0.1:8080/token"), ""},
	} {
		lines := unencrypted(&tt.settings)
		if text := strings.Join(lines, "\n"); (tt.want == "") != (len(lines) == 0) || len(lines) > 1 || !strings.Contains(text, tt.want) || strings.Contains(text, "canary") {
			t.Errorf("%s: it says %q, expected a line with %q", name, lines, tt.want)
		}
	}
	t.Setenv("PGSSLMODE", "verify-full")
	if lines := unencrypted(&config.Settings{HTTPAddr: "127.0.0.1:0", DatabaseURL: "postgres://u@db.example/journal"}); len(lines) > 0 {
		t.Errorf("PGSSLMODE says it, and still it says %q", lines)
	}
}
