package testkit

import (
	"os"
	"strings"
	"testing"
)

// Environment leaves only vars of what the program reads, for the time of the test.
func Environment(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "RETRY_WORKER_") || strings.HasPrefix(name, "ZEEBE_") || strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "") // puts the old value back in the end
			Must(t, os.Unsetenv(name))
		}
	}
	for name, value := range vars {
		t.Setenv(name, value)
	}
}
