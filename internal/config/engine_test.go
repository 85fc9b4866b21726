package config_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/config"
	"retry-worker/internal/zeebe"
)

func TestGatewayAddress(t *testing.T) {
	for _, c := range []struct{ name, address, host, port, want string }{
		{"nothing", "", "", "", "127.0.0.1:26500"},
		{"address", "gateway:1", "", "", "gateway:1"},
		{"host beats address", "gateway:1", "other", "", "other:26500"},
		{"port beats address", "gateway:1", "", "2", "127.0.0.1:2"},
		{"both beat address", "gateway:1", "other", "2", "other:2"},
		{"IPv6 host", "", "::1", "2", "[::1]:2"},
		{"a Service named zeebe", "gateway:1", "", "tcp://10.96.0.17:26500", "gateway:1"},
		{"a Service named zeebe, host", "gateway:1", "other", "tcp://10.96.0.17:9600", "other:26500"},
		{"a wrong address that is beaten", "gateway", "other", "2", "other:2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			environment(t, map[string]string{"ZEEBE_ADDRESS": c.address, "ZEEBE_HOST": c.host, "ZEEBE_PORT": c.port})
			if got := load(t).Engine.Address; got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestOAuth(t *testing.T) {
	environment(t, map[string]string{
		"ZEEBE_ADDRESS": "gateway.example:443", "ZEEBE_CLIENT_ID": "worker", "ZEEBE_CLIENT_SECRET": "canary-secret",
	})
	want := zeebe.OAuth{
		ClientID: "worker", ClientSecret: "canary-secret", Audience: "gateway.example",
		URL: "https://login.cloud.camunda.io/oauth/token/", RequestTimeout: 10 * time.Second,
	}
	if got := load(t).Engine.OAuth; got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	t.Setenv("ZEEBE_TOKEN_AUDIENCE", "zeebe-api")
	t.Setenv("ZEEBE_TOKEN_SCOPE", "jobs")
	t.Setenv("ZEEBE_AUTHORIZATION_SERVER_URL", "http://idp.example/token")
	t.Setenv("ZEEBE_AUTH_REQUEST_TIMEOUT", "2500")
	want = zeebe.OAuth{
		ClientID: "worker", ClientSecret: "canary-secret", Audience: "zeebe-api", Scope: "jobs",
		URL: "http://idp.example/token", RequestTimeout: 2500 * time.Millisecond,
	}
	if got := load(t).Engine.OAuth; got == nil || *got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestOAuthHalfConfigured(t *testing.T) {
	environment(t, map[string]string{"ZEEBE_CLIENT_ID": "worker"})
	want := "ZEEBE_CLIENT_SECRET is missing, expected the secret that belongs to ZEEBE_CLIENT_ID"
	if got := problems(t); !slices.Equal(got, []string{want}) {
		t.Errorf("without a secret: got %q, want %q", got, want)
	}
	environment(t, map[string]string{"ZEEBE_CLIENT_ID": "", "ZEEBE_CLIENT_SECRET": "canary-secret"})
	want = "ZEEBE_CLIENT_ID is missing, expected the client id that belongs to ZEEBE_CLIENT_SECRET"
	if got := problems(t); !slices.Equal(got, []string{want}) {
		t.Errorf("without an id: got %q, want %q", got, want)
	}
}

// Each value holds "canary" where somebody's secret may stand; every one of them is refused.
func TestSecretsStayOutOfProblems(t *testing.T) {
	for name, values := range map[string][]string{
		"RETRY_WORKER_DATABASE_URL": {
			"postgre://user:canary@db/x", "postgresql//user:canary@db", "postgres:user:canary@db", "host=db password=canary",
			"host=db password=canary options=a://b", "mysql://db/x?password=canary", "postgres://user:canary@:99999/x",
			"postgres://user:ca%zznary@db/canary", "mysql://user:pass/canary@db",
		},
		"RETRY_WORKER_EVENTS_URL": {
			"nat://canary@host:4222", "http://user:canary@host", "canary@host:4222", "nats://user:canary@",
			"nats://canary:canary@host:port",
		},
		"ZEEBE_AUTHORIZATION_SERVER_URL": {"ftp://id:canary@idp.example", "https://id:canary@", "https://id:canary@idp.example/token"},
	} {
		for _, value := range values {
			t.Run(name+"="+value, func(t *testing.T) {
				environment(t, map[string]string{name: value, "ZEEBE_CLIENT_SECRET": "canary-secret"})
				got := strings.Join(problems(t), "\n")
				if !strings.Contains(got, name+" is ") || !strings.Contains(got, "ZEEBE_CLIENT_ID is missing") {
					t.Errorf("got %q, want a line about %s and one about ZEEBE_CLIENT_ID", got, name)
				}
				if strings.Contains(got, "canary") {
					t.Errorf("the secret stands in %q", got)
				}
			})
		}
	}
}

func TestLoadEngine(t *testing.T) {
	// What the commands that only speak to the engine do not need is not held against them.
	environment(t, map[string]string{
		"RETRY_WORKER_OPS_ADDR": "nonsense", "RETRY_WORKER_TENANT_IDS": "a,b",
		"ZEEBE_ADDRESS": "gateway:1", "ZEEBE_INSECURE_CONNECTION": "true",
	})
	engine, tenants, err := config.LoadEngine()
	if err != nil {
		t.Fatal(err)
	}
	want := zeebe.Options{Address: "gateway:1", Plaintext: true, KeepAlive: 45 * time.Second, Reason: "ZEEBE_REST_ADDRESS is not set"}
	if !reflect.DeepEqual(engine, want) || !slices.Equal(tenants, []string{"a", "b"}) {
		t.Errorf("got %+v and %v, want %+v and a, b", engine, tenants, want)
	}
	t.Setenv("ZEEBE_KEEP_ALIVE", "1")
	t.Setenv("RETRY_WORKER_TENANT_IDS", ",")
	_, _, err = config.LoadEngine()
	for _, name := range []string{"RETRY_WORKER_TENANT_IDS", "ZEEBE_KEEP_ALIVE"} {
		if err == nil || !strings.Contains(err.Error(), name+" is ") {
			t.Errorf("got %v, want a line about %s", err, name)
		}
	}
}

func TestOpsAddr(t *testing.T) {
	environment(t, map[string]string{"RETRY_WORKER_OPS_ADDR": "0.0.0.0:1", "ZEEBE_ADDRESS": "nonsense"})
	if got, err := config.OpsAddr(); err != nil || got != "0.0.0.0:1" {
		t.Errorf("got %q, %v, want 0.0.0.0:1", got, err)
	}
	t.Setenv("RETRY_WORKER_OPS_ADDR", "nonsense")
	const want = `RETRY_WORKER_OPS_ADDR is "nonsense", expected host:port, such as 127.0.0.1:9095`
	if _, err := config.OpsAddr(); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestProtocol holds which engine is spoken to by which protocol, and why.
func TestProtocol(t *testing.T) {
	const grpcAddress, rest = "gateway:1", "http://gateway:2"
	for _, tt := range []struct{ engine, grpc, rest, want string }{
		{"", "", "", "gRPC at 127.0.0.1:26500 (ZEEBE_REST_ADDRESS is not set)"},
		{"auto", grpcAddress, "", "gRPC at gateway:1 (ZEEBE_REST_ADDRESS is not set)"},
		{"auto", "", rest, "REST at http://gateway:2 (only ZEEBE_REST_ADDRESS is set)"},
		{"auto", grpcAddress, rest, "gRPC at gateway:1 or REST at http://gateway:2 (neither has answered yet)"},
		{"grpc", grpcAddress, rest, "gRPC at gateway:1 (RETRY_WORKER_ENGINE is grpc)"},
		{"rest", grpcAddress, rest, "REST at http://gateway:2 (RETRY_WORKER_ENGINE is rest)"},
		{"rest", "", "", "REST at http://127.0.0.1:8080 (RETRY_WORKER_ENGINE is rest)"},
	} {
		environment(t, map[string]string{"RETRY_WORKER_ENGINE": tt.engine, "ZEEBE_ADDRESS": tt.grpc, "ZEEBE_REST_ADDRESS": tt.rest})
		engine, _, err := config.LoadEngine()
		if got := engine.String(); err != nil || got != tt.want {
			t.Errorf("%+v: got %s, %v", tt, got, err)
		}
	}
}
