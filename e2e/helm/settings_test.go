package helm

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"retry-worker/internal/config"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/tlstest"
)

// readElsewhere are variables that the chart sets and that the worker's settings do not name: the Go runtime and the
// PostgreSQL driver read them.
var readElsewhere = []string{"GOMEMLIMIT", "SSL_CERT_DIR", "PGSSLMODE", "PGSSLROOTCERT"}

// checkSettings: the worker understands the environment that the chart renders, every name of it.
func checkSettings(t *testing.T, r result) {
	t.Helper()
	variables := r.variables(t)
	for name := range variables {
		if !slices.Contains(readElsewhere, name) && !slices.Contains(knownSettings(t), name) && !strings.HasPrefix(name, "OTEL_") {
			t.Errorf("the chart sets %s, which the worker does not know", name)
		}
	}
	if _, err := load(t, variables); err != nil {
		t.Errorf("the worker refuses what the chart renders: %v", err)
	}
}

// knownSettings are the names of `retry-worker serve --help`.
func knownSettings(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, v := range config.Variables() {
		names = append(names, v.Name)
	}
	return names
}

// held is what secrets hold, by the variable that takes it or names its file. All others are certificates, or are not read
// with the settings.
var held = map[string]string{
	"RETRY_WORKER_DATABASE_URL_FILE":       "postgres://retry:secret@pg.example/retry",
	"RETRY_WORKER_EVENTS_URL_FILE":         "nats://retry:secret@nats.example:4222",
	"RETRY_WORKER_OIDC_CLIENT_SECRET_FILE": "secret",
	"ZEEBE_CLIENT_ID":                      "retry-worker",
	"ZEEBE_CLIENT_SECRET_FILE":             "secret",
	"ZEEBE_BASIC_AUTH_USERNAME":            "retry-worker",
	"ZEEBE_BASIC_AUTH_PASSWORD_FILE":       "secret",
}

// load reads the environment as the worker does at its start. Mounted folders lie in a temporary one.
func load(t *testing.T, variables map[string]any) (config.Settings, error) {
	t.Helper()
	testkit.Environment(t, nil)
	dir := t.TempDir()
	authority := tlstest.NewAuthority(t)
	certificate, key := filepath.Join(dir, "certificate"), filepath.Join(dir, "key")
	authority.Issue(t, certificate, key, "retry-worker")
	issued := map[string]string{"CAMUNDA_MTLS_CERT_PATH": testkit.Read(t, certificate), "CAMUNDA_MTLS_KEY_PATH": testkit.Read(t, key)}
	for name, variable := range variables {
		text := text(variable, "value")
		if at(variable, "valueFrom") != nil {
			if text = held[name]; text == "" {
				t.Fatalf("%s comes from a secret: say in held what that holds", name)
			}
		}
		if path, ok := strings.CutPrefix(text, "/etc/retry-worker/"); ok {
			text = filepath.Join(dir, path)
			testkit.Must(t, errors.Join(os.MkdirAll(filepath.Dir(text), 0o700), os.WriteFile(text, []byte(cmp.Or(held[name], issued[name], testkit.Read(t, authority.File))), 0o600)))
		}
		t.Setenv(name, text)
	}
	return config.Load()
}

// TestDefaultSettings: the chart's defaults are the worker's own, but for what a pod needs otherwise.
func TestDefaultSettings(t *testing.T) {
	chart, err := load(t, renderOne(t).variables(t))
	testkit.Must(t, err)
	worker, err := load(t, nil)
	testkit.Must(t, err)
	worker.OpsAddr, worker.DatabaseURL = ":9095", "sqlite:/data/retry-worker.db"
	worker.Engine.Address, worker.Engine.Plaintext = "zeebe-gateway:26500", true
	worker.TenantIDs, chart.TenantIDs = nil, nil
	worker.WorkerName, chart.WorkerName = "", "" // the machine's name
	if !reflect.DeepEqual(chart, worker) {
		t.Errorf("the chart's defaults make\n%+v\nthe worker's own are\n%+v", chart, worker)
	}
}
