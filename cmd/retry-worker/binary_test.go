package main

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestProductionAlone: the program holds neither the development engine nor the samples, nor anything made for tests, by
// whatever way.
func TestProductionAlone(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil || !strings.Contains(string(out), "retry-worker/internal/app\n") {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	foreign := regexp.MustCompile(`(?m)^(retry-worker/(internal/(engine|demo|testkit|sim)|e2e|bench|tools).*|testing)$`)
	if found := foreign.FindAllString(string(out), -1); found != nil {
		t.Errorf("the program holds %q", found)
	}
}
