package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"retry-worker/internal/testkit/wait"
)

// result is what a run of the program returned.
type result struct {
	stdout, stderr string
	code           int
}

// retryWorker runs the program in this process.
func retryWorker(args ...string) result {
	var stdout, stderr bytes.Buffer
	code := run(args, &stdout, &stderr)
	return result{stdout.String(), stderr.String(), code}
}

// fails checks that the run ended with code and printed nothing but these lines of errors, each after the program's
// name.
func (r result) fails(t *testing.T, code int, lines ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit %d, want %d", r.code, code)
	}
	if r.stdout != "" {
		t.Errorf("standard output: %q, want nothing", r.stdout)
	}
	r.says(t, lines...)
}

// says checks that standard error has exactly these lines, each after the program's name.
func (r result) says(t *testing.T, lines ...string) {
	t.Helper()
	var want strings.Builder
	for _, line := range lines {
		want.WriteString("retry-worker: " + line + "\n")
	}
	if r.stderr != want.String() {
		t.Errorf("standard error:\n%swant:\n%s", r.stderr, want.String())
	}
}

// object returns standard output, which must be one JSON object.
func (r result) object(t *testing.T) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &o); err != nil {
		t.Fatalf("standard output %q is no JSON object: %v", r.stdout, err)
	}
	if strings.Count(r.stdout, "\n") != 1 || !strings.HasSuffix(r.stdout, "}\n") {
		t.Errorf("standard output %q, want one line", r.stdout)
	}
	return o
}

// patience bounds what must happen; only a failing test reaches it.
const patience = wait.Limit
