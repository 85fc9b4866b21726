package testkit

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// read matches the names of the variables that the program reads.
var read = regexp.MustCompile(`^(RETRY_WORKER|ZEEBE|CAMUNDA|OTEL)_`)

// Environment sets vars, and unsets all other variables that the program reads, until the test ends.
func Environment(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if read.MatchString(name) {
			t.Setenv(name, "") // restores the old value in the end
			Must(t, os.Unsetenv(name))
		}
	}
	for name, value := range vars {
		t.Setenv(name, value)
	}
}
