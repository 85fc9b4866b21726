package main

import (
	"encoding/json"
	"strings"
	"testing"

	"retry-worker/internal/testkit"
)

func TestCompare(t *testing.T) {
	audited(t)
	file := testkit.File(t, "policies.yaml", []byte("extends: built-in\npolicies: {tiss-submission: {maxRetries: 1}}\n"))
	run := func(args ...string) result {
		return retryWorker(append([]string{"policies", "compare", "built-in", file}, args...)...)
	}
	text := run("--since", "2026-03-01")
	for _, want := range []string{"tiss-submission since 2026-03-01T00:00:00Z", "retried by A alone", "what came of the like", "cannot be told"} {
		if text.code != 0 || !strings.Contains(text.stdout, want) {
			t.Errorf("exit status %d, nothing of %q:\n%s%s", text.code, want, text.stdout, text.stderr)
		}
	}
	var got compared
	testkit.Must(t, json.Unmarshal([]byte(run("--since", "2026-03-01", "-o", "json").stdout), &got))
	if got.Failures != 3 || got.RetriedByA != 1 || got.MissedByB != 1 || got.RetriesA != 2 || got.RetriesB != 1 || len(got.Estimates) != 3 {
		t.Errorf("it came to %+v", got)
	}
	if page := run("--since", "2026-03-01", "-o", "html").stdout; !strings.HasPrefix(page, "<!doctype html>") || !strings.Contains(page, "<svg") {
		t.Errorf("the page is %.200s", page)
	}
}
