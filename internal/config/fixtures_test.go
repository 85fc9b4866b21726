package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"retry-worker/internal/config"
)

// environment leaves only vars of what the worker reads, for the time of the test.
func environment(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "RETRY_WORKER_") || strings.HasPrefix(name, "ZEEBE_") || strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "") // puts the old value back in the end
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, value := range vars {
		t.Setenv(name, value)
	}
}

func load(t *testing.T) config.Settings {
	t.Helper()
	s, err := config.Load()
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return s
}

func problems(t *testing.T) []string {
	t.Helper()
	_, err := config.Load()
	found, ok := errors.AsType[config.Problems](err)
	if !ok {
		t.Fatalf("Load: got %v, want problems", err)
	}
	return found
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// usageRows returns the settings by their names.
func usageRows(t *testing.T) map[string]config.Variable {
	t.Helper()
	variables, err := config.Variables()
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]config.Variable)
	for _, v := range variables {
		rows[v.Name] = v
	}
	return rows
}

// shipped matches NAME: value (YAML) and NAME=value (ENV). A broker's own ZEEBE_… are among them; the
// worker does not read those.
var shipped = regexp.MustCompile(`(?m)^(?:ENV )?\s*((?:RETRY_WORKER|ZEEBE)_[A-Z_]+)[:=]\s*"?([^"\s#]+)"?`)

func shippedSettings(content string) map[string]string {
	found := make(map[string]string)
	for _, m := range shipped.FindAllStringSubmatch(content, -1) {
		found[m[1]] = m[2]
	}
	return found
}

// authorityPEM is a throw-away certificate; nobody has its key.
const authorityPEM = `-----BEGIN CERTIFICATE-----
MIIBiTCCAS+gAwIBAgIUUQ0fMSMFjEmepDqPW9DFYxhCrhAwCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOdGVzdCBhdXRob3JpdHkwIBcNMjYxMTIxMTI1MjAwWhgPMjEy
NjEwMjgxMjUyMDBaMBkxFzAVBgNVBAMMDnRlc3QgYXV0aG9yaXR5MFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAEZahtKf38jWkgH86rMqU4yH2gVSP4UUwhWGe5zwTH
QHQ3y0xuAibQ8+4SUHFfcHyxt3FIFX9ldgRN6hmJ7wHQyqNTMFEwHQYDVR0OBBYE
FNU8tznqOehOo/u/eZmq13jCqTAOMB8GA1UdIwQYMBaAFNU8tznqOehOo/u/eZmq
13jCqTAOMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIhAORvllMz
Mv8whVv0WNlhog0HtjrlirVnF53tFLGN2BNZAiBSk4huGyU2Ql7nVUmIjrxTvAO5
OwdzK3UDisj71TWBew==
-----END CERTIFICATE-----
`
