package config_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"retry-worker/internal/config"
)

// setting is one variable: what it is when nobody sets it, a value it takes, and values it refuses with
// the whole line that says so.
type setting struct {
	name   string
	read   func(*config.Settings) any
	preset any
	good   string
	want   any
	bad    map[string]string
}

const (
	hostPort    = ", expected host:port, such as "
	notLoopback = ", expected a loopback address such as 127.0.0.1:8095 as long as neither RETRY_WORKER_AUTH_TOKENS_FILE nor RETRY_WORKER_OIDC_ISSUER is set: " +
		"other machines reach this one, patients' claims are served there, and nobody has to log in; " +
		"`retry-worker token new --name NAME --role admin --file FILE` makes the first"
	upTo10k  = ", expected a whole number from 1 to 10000"
	upToHour = ", expected a duration from 1s to 1h0m0s, such as 10s"
	database = ", expected sqlite:FILE or postgres://…"
	tokenURL = ", expected https://… or http://…"
	keeping  = ", expected years, days or hours, such as 5y, 90d or 48h"
)

func settings(t *testing.T) []setting {
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	empty := write(t, "empty.pem", "")
	authority := write(t, "authority.pem", authorityPEM)
	return append(notifySettings(), []setting{
		{name: "RETRY_WORKER_HTTP_ADDR", read: func(s *config.Settings) any { return s.HTTPAddr },
			preset: "127.0.0.1:8095", good: "[::1]:18095", want: "[::1]:18095", bad: map[string]string{
				"nowhere":             `"nowhere"` + hostPort + "127.0.0.1:8095",
				":8095":               `":8095"` + notLoopback,
				"0.0.0.0:8095":        `"0.0.0.0:8095"` + notLoopback,
				"retry.example:8095":  `"retry.example:8095"` + notLoopback,
				"127.0.0.1.evil:8095": `"127.0.0.1.evil:8095"` + notLoopback,
			}},
		{name: "RETRY_WORKER_OPS_ADDR", read: func(s *config.Settings) any { return s.OpsAddr },
			preset: "127.0.0.1:9095", good: ":19095", want: ":19095", bad: map[string]string{
				"9095":                `"9095"` + hostPort + "127.0.0.1:9095",
				"127.0.0.1:":          `"127.0.0.1:"` + hostPort + "127.0.0.1:9095",
				"127.0.0.1:65536":     `"127.0.0.1:65536"` + hostPort + "127.0.0.1:9095",
				"127.0.0.1:-1":        `"127.0.0.1:-1"` + hostPort + "127.0.0.1:9095",
				"http://0.0.0.0:9095": `"http://0.0.0.0:9095"` + hostPort + "127.0.0.1:9095",
				"::1:9095":            `"::1:9095"` + hostPort + "127.0.0.1:9095",
				"a\nb":                `"a\nb"` + hostPort + "127.0.0.1:9095",
			}},
		{name: "RETRY_WORKER_DATABASE_URL", read: func(s *config.Settings) any { return s.DatabaseURL },
			preset: "sqlite:retry-worker.db", good: "postgres://journal@db/retries", want: "postgres://journal@db/retries", bad: map[string]string{
				"sqlite:":           `"sqlite:"` + database,
				"journal.db":        "no URL" + database,
				"mysql://db/x":      "a URL that begins with mysql://" + database,
				"postgres://":       "a URL that begins with postgres:// and has no readable host" + database,
				"postgres://db:x/y": "a URL that begins with postgres:// and has no readable host" + database,
			}},
		{name: "RETRY_WORKER_POLICIES_FILE", read: func(s *config.Settings) any { return s.PoliciesFile },
			preset: "", good: "/etc/retry-worker/policies.yaml", want: "/etc/retry-worker/policies.yaml"}, // what is in it, the catalogue says
		{name: "RETRY_WORKER_MAX_JOBS_ACTIVE", read: func(s *config.Settings) any { return s.MaxJobsActive },
			preset: 50, good: "10000", want: 10000, bad: map[string]string{
				"0": `"0"` + upTo10k, "10001": `"10001"` + upTo10k, "-1": `"-1"` + upTo10k, "many": `"many"` + upTo10k,
				"2.5": `"2.5"` + upTo10k, " 5": `" 5"` + upTo10k, "99999999999999999999": `"99999999999999999999"` + upTo10k,
			}},
		{name: "RETRY_WORKER_JOB_TIMEOUT", read: func(s *config.Settings) any { return s.JobTimeout },
			preset: 10 * time.Second, good: "1m30s", want: 90 * time.Second, bad: map[string]string{
				"10": `"10"` + upToHour, "999ms": `"999ms"` + upToHour, "61m": `"61m"` + upToHour,
				"-10s": `"-10s"` + upToHour, "PT10S": `"PT10S"` + upToHour,
			}},
		{name: "RETRY_WORKER_CONCURRENCY", read: func(s *config.Settings) any { return s.Concurrency },
			preset: 50, good: "1", want: 1, bad: map[string]string{"0": `"0"` + upTo10k, "all": `"all"` + upTo10k}},
		{name: "RETRY_WORKER_TENANT_IDS", read: func(s *config.Settings) any { return s.TenantIDs },
			preset: []string(nil), good: "<default>, clinic-a", want: []string{"<default>", "clinic-a"}, bad: map[string]string{
				"a,,b": `"a,,b", expected names separated by single commas`,
				"a, ":  `"a, ", expected names separated by single commas`,
			}},
		{name: "RETRY_WORKER_WORKER_NAME", read: func(s *config.Settings) any { return s.WorkerName },
			preset: "retry-worker@" + host, good: "night-shift", want: "night-shift"},
		{name: "RETRY_WORKER_SHUTDOWN_TIMEOUT", read: func(s *config.Settings) any { return s.ShutdownTimeout },
			preset: 25 * time.Second, good: "1h", want: time.Hour, bad: map[string]string{"soon": `"soon"` + upToHour}},
		{name: "RETRY_WORKER_LOG_LEVEL", read: func(s *config.Settings) any { return s.LogLevel },
			preset: zapcore.InfoLevel, good: "debug", want: zapcore.DebugLevel, bad: map[string]string{
				"verbose": `"verbose", expected debug or info or warn or error`,
				"INFO":    `"INFO", expected debug or info or warn or error`,
			}},
		{name: "RETRY_WORKER_LOG_FORMAT", read: func(s *config.Settings) any { return s.LogFormat },
			preset: "json", good: "console", want: "console", bad: map[string]string{"xml": `"xml", expected json or console`}},
		{name: "RETRY_WORKER_EVENTS_URL", read: func(s *config.Settings) any { return s.EventsURL },
			preset: "", good: "nats://127.0.0.1:4222", want: "nats://127.0.0.1:4222", bad: map[string]string{
				"127.0.0.1:4222": "no URL, expected nats://…", "http://127.0.0.1": "a URL that begins with http://, expected nats://…",
			}},
		{name: "RETRY_WORKER_RETENTION", read: func(s *config.Settings) any { return s.Retention },
			preset: 5 * 366 * 24 * time.Hour, good: "90d", want: 90 * 24 * time.Hour, bad: map[string]string{
				"201y": `"201y", expected at most 200 years`, "999999d": `"999999d", expected at most 200 years`,
				"5": `"5"` + keeping, "0d": `"0d"` + keeping, "5 years": `"5 years"` + keeping, "-1y": `"-1y"` + keeping,
			}},
		{name: "RETRY_WORKER_OPERATE_URL", read: func(s *config.Settings) any { return s.OperateURL },
			preset: "", good: "https://operate.hospital.example/", want: "https://operate.hospital.example", bad: map[string]string{
				"https://operate/?a=b": "a URL with user, query or fragment, expected https://HOST or https://HOST/PATH, where people open Operate",
			}},
		{name: "RETRY_WORKER_GRAFANA_URL", read: func(s *config.Settings) any { return s.GrafanaURL },
			preset: "", good: "http://grafana:3000/d/retry-worker", want: "http://grafana:3000/d/retry-worker", bad: map[string]string{
				"grafana": "no URL, expected https://HOST or https://HOST/PATH, where people open Grafana",
			}},
		{name: "RETRY_WORKER_AUTH_TOKENS_FILE", read: func(s *config.Settings) any { return s.AuthTokensFile },
			preset: "", good: "/run/secrets/tokens", want: "/run/secrets/tokens"}, // what is in it, access says
		{name: "RETRY_WORKER_OIDC_ISSUER"}, // these go together: TestProvider
		{name: "RETRY_WORKER_OIDC_CLIENT_ID"},
		{name: "RETRY_WORKER_OIDC_CLIENT_SECRET_FILE"},
		{name: "RETRY_WORKER_OIDC_ROLE_CLAIM"},
		{name: "RETRY_WORKER_OIDC_TEAM_CLAIM"},
		{name: "RETRY_WORKER_TOKEN"}, // of the commands that speak to the API: TestClient
		{name: "ZEEBE_ADDRESS", read: func(s *config.Settings) any { return s.Engine.Address },
			preset: "127.0.0.1:26500", good: "zeebe-gateway:26500", want: "zeebe-gateway:26500", bad: map[string]string{
				"zeebe-gateway":      `"zeebe-gateway"` + hostPort + "127.0.0.1:26500",
				"http://zeebe:26500": `"http://zeebe:26500"` + hostPort + "127.0.0.1:26500",
			}},
		{name: "ZEEBE_HOST", read: func(s *config.Settings) any { return s.Engine.Address },
			preset: "127.0.0.1:26500", good: "fe80::1%eth0", want: "[fe80::1%eth0]:26500", bad: map[string]string{
				"zeebe:26500":   `"zeebe:26500", expected a host name or an IP address (the port goes into ZEEBE_PORT)`,
				"https://zeebe": `"https://zeebe", expected a host name or an IP address (the port goes into ZEEBE_PORT)`,
			}},
		{name: "ZEEBE_PORT", read: func(s *config.Settings) any { return s.Engine.Address },
			preset: "127.0.0.1:26500", good: "36500", want: "127.0.0.1:36500", bad: map[string]string{
				"grpc":  `"grpc", expected a whole number from 1 to 65535`,
				"0":     `"0", expected a whole number from 1 to 65535`,
				"65536": `"65536", expected a whole number from 1 to 65535`,
			}},
		{name: "ZEEBE_INSECURE_CONNECTION", read: func(s *config.Settings) any { return s.Engine.Plaintext },
			preset: false, good: "true", want: true, bad: map[string]string{"yes": `"yes", expected true or false`}},
		{name: "ZEEBE_CA_CERTIFICATE_PATH", read: func(s *config.Settings) any { return s.Engine.CACertificatePath },
			preset: "", good: authority, want: authority, bad: map[string]string{
				"/nowhere/ca.pem": `"/nowhere/ca.pem", expected a readable PEM file (no such file or directory)`,
				"/nowhere/a\nb":   `"/nowhere/a\nb", expected a readable PEM file (no such file or directory)`,
				"/":               `"/", expected a readable PEM file (is a directory)`,
				empty:             `"` + empty + `", expected a PEM file that holds a certificate`,
			}},
		{name: "ZEEBE_OVERRIDE_AUTHORITY", read: func(s *config.Settings) any { return s.Engine.OverrideAuthority },
			preset: "", good: "zeebe.example", want: "zeebe.example"},
		{name: "ZEEBE_KEEP_ALIVE", read: func(s *config.Settings) any { return s.Engine.KeepAlive },
			preset: 45 * time.Second, good: "60000", want: time.Minute, bad: map[string]string{
				"45s":  `"45s", expected a whole number from 10000 to 2147483647`,
				"9999": `"9999", expected a whole number from 10000 to 2147483647`,
			}},
		{name: "RETRY_WORKER_ENGINE", bad: map[string]string{"soap": `"soap", expected auto or grpc or rest`}}, // TestProtocol
		{name: "ZEEBE_REST_ADDRESS", read: func(s *config.Settings) any { return s.Engine.RESTAddress },
			preset: "", good: "https://zeebe/x", want: "https://zeebe/x", bad: map[string]string{"zeebe:8080": "no URL, expected http://HOST:8080 or https://…"}},
		{name: "ZEEBE_BASIC_AUTH_USERNAME", read: func(s *config.Settings) any { return s.Engine.Username }, good: "worker", want: "worker", preset: ""},
		{name: "ZEEBE_BASIC_AUTH_PASSWORD", read: func(s *config.Settings) any { return s.Engine.Password }, good: "canary", want: "canary", preset: ""},
		{name: "ZEEBE_BASIC_AUTH_PASSWORD_FILE"},
		{name: "ZEEBE_CLIENT_ID"},      // these two go together:
		{name: "ZEEBE_CLIENT_SECRET"},  // TestOAuth
		{name: "ZEEBE_TOKEN_AUDIENCE"}, // have an effect with them only
		{name: "ZEEBE_TOKEN_SCOPE"},    //
		{name: "ZEEBE_AUTHORIZATION_SERVER_URL", bad: map[string]string{
			"idp.example":       "no URL" + tokenURL,
			"ftp://idp.example": "a URL that begins with ftp://" + tokenURL,
			"https://":          "a URL that begins with https:// and has no readable host" + tokenURL,
		}},
		{name: "ZEEBE_AUTH_REQUEST_TIMEOUT", bad: map[string]string{
			"10s": `"10s", expected a whole number from 100 to 600000`,
			"99":  `"99", expected a whole number from 100 to 600000`,
		}},
		{name: "RETRY_WORKER_DATABASE_URL_FILE"}, // TestSecretsFromFiles
		{name: "RETRY_WORKER_EVENTS_URL_FILE"},
		{name: "ZEEBE_CLIENT_SECRET_FILE"},
		{name: "RETRY_WORKER_TLS_CERT_FILE"}, // these two go together: TestSecretFilesThatCannotBe
		{name: "RETRY_WORKER_TLS_KEY_FILE"},
		{name: "RETRY_WORKER_PROXIES", read: func(s *config.Settings) any { return s.Proxies },
			preset: []netip.Prefix(nil), good: "10.0.8.7/24, ::ffff:10.0.9.1, [::1]",
			want: []netip.Prefix{netip.MustParsePrefix("10.0.8.0/24"), netip.MustParsePrefix("10.0.9.1/32"), netip.MustParsePrefix("::1/128")},
			bad: map[string]string{
				"10.0.8.0/33": `"10.0.8.0/33", expected networks such as 10.0.8.0/24, or addresses such as 10.0.8.7`,
				"proxy":       `"proxy", expected networks such as 10.0.8.0/24, or addresses such as 10.0.8.7`,
			}},
		{name: "RETRY_WORKER_PPROF", read: func(s *config.Settings) any { return s.Profiles }, preset: false, good: "true", want: true},
		{name: "OTEL_SDK_DISABLED"}, // what they come to together: TestWhenTracesAreSent
		{name: "OTEL_TRACES_EXPORTER"},
		{name: "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{name: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"},
		{name: "OTEL_EXPORTER_OTLP_PROTOCOL"},
		{name: "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"},
	}...)
}

func TestSettingsDefaults(t *testing.T) {
	for _, v := range []string{"unset", "set but empty"} {
		t.Run(v, func(t *testing.T) {
			environment(t, nil)
			all := settings(t)
			if v != "unset" {
				for _, s := range all {
					t.Setenv(s.name, "")
				}
			}
			got := load(t)
			for _, s := range all {
				if s.read != nil && !reflect.DeepEqual(s.read(&got), s.preset) {
					t.Errorf("%s: got %v, want %v", s.name, s.read(&got), s.preset)
				}
			}
			if got.Engine.OAuth != nil {
				t.Errorf("got a token source %v, want none", got.Engine.OAuth)
			}
		})
	}
}

func TestSettingsTakeGoodValues(t *testing.T) {
	for _, s := range settings(t) {
		if s.good == "" {
			continue
		}
		t.Run(s.name, func(t *testing.T) {
			environment(t, map[string]string{s.name: s.good})
			got := load(t)
			if !reflect.DeepEqual(s.read(&got), s.want) {
				t.Errorf("%q: got %v, want %v", s.good, s.read(&got), s.want)
			}
		})
	}
}

// With tokens the console may be reached from elsewhere; an address that is none stays one.
func TestTokensOpenTheAddress(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:8095", ":8095", "[::]:8095", "10.0.0.7:8095", "retry.example:8095", "127.0.0.1:8095"} {
		environment(t, map[string]string{"RETRY_WORKER_HTTP_ADDR": addr, "RETRY_WORKER_AUTH_TOKENS_FILE": "/run/secrets/tokens"})
		if got := load(t); got.HTTPAddr != addr {
			t.Errorf("got %q, want %q", got.HTTPAddr, addr)
		}
	}
	environment(t, map[string]string{"RETRY_WORKER_HTTP_ADDR": "nowhere", "RETRY_WORKER_AUTH_TOKENS_FILE": "/run/secrets/tokens"})
	if got, want := problems(t), `RETRY_WORKER_HTTP_ADDR is "nowhere"`+hostPort+"127.0.0.1:8095"; !slices.Equal(got, []string{want}) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestClient: what the commands that speak to the API read needs nothing else to be right, nor a loopback address.
func TestClient(t *testing.T) {
	environment(t, map[string]string{"RETRY_WORKER_JOB_TIMEOUT": "nonsense"})
	if addr, tls, token, err := config.Client(); addr != "127.0.0.1:8095" || tls || token != "" || err != nil {
		t.Errorf("got %q, a token of length %d, %v", addr, len(token), err)
	}
	t.Setenv("RETRY_WORKER_HTTP_ADDR", "retry.example:80")
	t.Setenv("RETRY_WORKER_TOKEN", "rwt_x")
	t.Setenv("RETRY_WORKER_TLS_CERT_FILE", "tls.crt")
	if addr, tls, token, err := config.Client(); addr != "retry.example:80" || !tls || token != "rwt_x" || err != nil {
		t.Errorf("got %q, a token of length %d, %v", addr, len(token), err)
	}
	t.Setenv("RETRY_WORKER_HTTP_ADDR", "nowhere")
	if _, _, _, err := config.Client(); err == nil || err.Error() != `RETRY_WORKER_HTTP_ADDR is "nowhere"`+hostPort+"127.0.0.1:8095" {
		t.Errorf("got %v", err)
	}
}

func TestSettingsRefuseBadValues(t *testing.T) {
	for _, s := range settings(t) {
		for value, line := range s.bad {
			t.Run(s.name+"="+value, func(t *testing.T) {
				environment(t, map[string]string{s.name: value})
				if got, want := problems(t), s.name+" is "+line; !slices.Equal(got, []string{want}) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
				}
			})
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	environment(t, map[string]string{"RETRY_WORKER_NONSENSE": "1", "RETRY_WORKER_ABSURD": "1"})
	want := []string{
		"RETRY_WORKER_ABSURD is set, expected one of the names that `retry-worker serve --help` lists",
		"RETRY_WORKER_NONSENSE is set, expected one of the names that `retry-worker serve --help` lists",
	}
	for _, s := range settings(t) {
		for value, line := range s.bad {
			if s.name != "ZEEBE_ADDRESS" { // which the host and the port beat
				t.Setenv(s.name, value)
				want = append(want, s.name+" is "+line)
				break
			}
		}
	}
	slices.Sort(want)
	for range 3 { // the order is the same every time
		if got := problems(t); !slices.Equal(got, want) {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	_, err := config.Load()
	if lines := strings.Split(err.Error(), "\n"); !slices.Equal(lines, want) {
		t.Errorf("as an error: got %d lines, want %d", len(lines), len(want))
	}
}

// names of the contract's section "Environment"; ZEEBE_* as far as it names them.
var contractNames = []string{
	"RETRY_WORKER_HTTP_ADDR", "RETRY_WORKER_OPS_ADDR", "RETRY_WORKER_DATABASE_URL", "RETRY_WORKER_POLICIES_FILE",
	"RETRY_WORKER_MAX_JOBS_ACTIVE", "RETRY_WORKER_JOB_TIMEOUT", "RETRY_WORKER_CONCURRENCY", "RETRY_WORKER_TENANT_IDS",
	"RETRY_WORKER_WORKER_NAME", "RETRY_WORKER_SHUTDOWN_TIMEOUT", "RETRY_WORKER_LOG_LEVEL", "RETRY_WORKER_LOG_FORMAT",
	"RETRY_WORKER_EVENTS_URL", "RETRY_WORKER_RETENTION", "RETRY_WORKER_AUTH_TOKENS_FILE",
	"RETRY_WORKER_OIDC_ISSUER", "RETRY_WORKER_OIDC_CLIENT_ID", "RETRY_WORKER_OIDC_CLIENT_SECRET_FILE", "RETRY_WORKER_OIDC_ROLE_CLAIM",
	"RETRY_WORKER_OIDC_TEAM_CLAIM", "RETRY_WORKER_ENGINE", "ZEEBE_REST_ADDRESS",
	"ZEEBE_ADDRESS", "ZEEBE_INSECURE_CONNECTION", "ZEEBE_CLIENT_ID",
}

func TestUsageListsEverySetting(t *testing.T) {
	rows := usageRows(t)
	for _, name := range contractNames {
		if rows[name].Name == "" {
			t.Errorf("the table does not list %s", name)
		}
	}
	tested := make(map[string]bool)
	for _, s := range settings(t) {
		tested[s.name] = true
		if rows[s.name].Name == "" {
			t.Errorf("the table does not list %s", s.name)
		}
	}
	for name := range rows {
		if !tested[name] {
			t.Errorf("the table lists %s, which no test here knows", name)
		}
	}
	for name, preset := range map[string]string{ // as the contract has them
		"RETRY_WORKER_HTTP_ADDR": "127.0.0.1:8095", "RETRY_WORKER_OPS_ADDR": "127.0.0.1:9095",
		"RETRY_WORKER_DATABASE_URL": "sqlite:retry-worker.db", "RETRY_WORKER_MAX_JOBS_ACTIVE": "50",
		"RETRY_WORKER_JOB_TIMEOUT": "10s", "RETRY_WORKER_SHUTDOWN_TIMEOUT": "25s", "RETRY_WORKER_LOG_LEVEL": "info",
		"RETRY_WORKER_LOG_FORMAT": "json", "RETRY_WORKER_RETENTION": "5y", "ZEEBE_ADDRESS": "127.0.0.1:26500",
	} {
		if rows[name].Default != preset {
			t.Errorf("%s: the table says %q, want the default %s", name, rows[name], preset)
		}
	}
}

func TestWhatIsShippedLoads(t *testing.T) {
	for _, file := range []string{"docker-compose.yml", "Dockerfile"} {
		t.Run(file, func(t *testing.T) {
			content, err := os.ReadFile(filepath.Join("..", "..", file))
			if err != nil {
				t.Fatal(err)
			}
			found := shippedSettings(string(content))
			if len(found) == 0 {
				t.Fatal("sets nothing that the worker reads; this test looks at the wrong place")
			}
			environment(t, found)
			load(t)
		})
	}
}
