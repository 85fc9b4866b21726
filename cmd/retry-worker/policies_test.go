package main

import (
	"encoding/json"
	"strings"
	"testing"

	"retry-worker/internal/audit"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/testkit"
)

// What is shown can be put into a file and used: it holds, and decides the same. A file that extends the built-in catalogue is shown
// whole.
func TestPoliciesShowIsACatalogue(t *testing.T) {
	testkit.Environment(t, nil)
	if r := retryWorker("policies", "schema"); r.stdout != string(catalogue.Schema()) || !json.Valid([]byte(r.stdout)) || r.code != exitDone {
		t.Errorf("exit %d, %d bytes, want the schema", r.code, len(r.stdout))
	}
	const extends = "testdata/policies/extends.yaml"
	effective := retryWorker("policies", "show", "--policies-file", extends).stdout
	if first, rest, _ := strings.Cut(effective, "\n"); !strings.HasSuffix(first, `, source "`+extends+`"`) || strings.Contains(rest, "extends:") || !strings.Contains(rest, "whatsapp-message:") {
		t.Errorf("shown\n%s", effective)
	}
	shown := retryWorker("policies", "show")
	if first, _, _ := strings.Cut(shown.stdout, "\n"); first != "# version "+catalogue.Default().Version+`, source "built-in"` {
		t.Errorf("the first line is %q", first)
	}
	file := testkit.File(t, "policies.yaml", []byte(shown.stdout))
	retryWorker("policies", "check", file).done(t)
	decide := []string{"decide", "--id", "CLM-1-1", "--error", "HTTP 503", "--now", "2025-01-12T10:40:00Z"}
	a, b, _ := strings.Cut(retryWorker(decide...).stdout, "catalogue ")
	if copied, _, _ := strings.Cut(retryWorker(append(decide, "--policies-file", file)...).stdout, "catalogue "); copied != a || b == "" {
		t.Errorf("the copy decides %q, the original %q", copied, a)
	}
}

func TestPoliciesDiff(t *testing.T) {
	audited(t)
	file := testkit.File(t, "policies.yaml", []byte("extends: built-in\npolicies: {tiss-submission: {maxRetries: 1}}\n"))
	run := func(args ...string) string {
		return retryWorker(append([]string{"policies", "diff", "built-in", file}, args...)...).done(t).stdout
	}
	var got policiesDiff
	testkit.Must(t, json.Unmarshal([]byte(run("--since", "2026-03-01", "-o", "json")), &got))
	want := audit.Differences{Failures: 3, Alike: 2, Otherwise: 1}
	if got.Differences != want || len(got.Policies) != 1 || got.Policies[0].Differences != want || got.A == got.B {
		t.Errorf("it came to %+v", got)
	}
	text := run("--since", "2026-03-01")
	if !strings.Contains(text, "NOT COMPARABLE") || !strings.Contains(text, "\ntiss-submission") {
		t.Errorf("printed\n%s", text)
	}
	if none := run("--since", "2026-03-09"); !strings.Contains(none, "failures           0\n") {
		t.Errorf("of no failure it prints\n%s", none)
	}
}
