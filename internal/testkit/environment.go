package testkit

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// read are how the names begin that the program reads.
var read = regexp.MustCompile(`^(RETRY_WORKER|ZEEBE|CAMUNDA|OTEL)_`)

// Environment leaves only vars of what the program reads, for the time of the test.
func Environment(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if read.MatchString(name) {
			t.Setenv(name, "") // puts the old value back in the end
			Must(t, os.Unsetenv(name))
		}
	}
	for name, value := range vars {
		t.Setenv(name, value)
	}
}
