package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/testkit"
)

// TestServeRefusesABrokenPoliciesFile: wrong input, everything that is wrong with it at once, a line each.
func TestServeRefusesABrokenPoliciesFile(t *testing.T) {
	content := bytes.Replace(catalogue.Default().YAML(), []byte("maxRetries: 5"), []byte("maxRetries: -5"), 1)
	file := write(t, "policies.yaml", bytes.Replace(content, []byte("totalLimit: 48h"), []byte("totalLimit: soon"), 1))
	_, err := catalogue.Load(file)
	wrong, ok := errors.AsType[*catalogue.Error](err)
	if !ok || len(wrong.Lines()) != 2 {
		t.Fatalf("Load: %v, want two problems", err)
	}
	testkit.Environment(t, map[string]string{
		"RETRY_WORKER_POLICIES_FILE": file, "RETRY_WORKER_OPS_ADDR": "127.0.0.1:0", "RETRY_WORKER_HTTP_ADDR": "127.0.0.1:0",
		"RETRY_WORKER_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "journal.db"),
	})
	retryWorker("serve").fails(t, exitUsage,
		"RETRY_WORKER_POLICIES_FILE: "+wrong.Lines()[0], "RETRY_WORKER_POLICIES_FILE: "+wrong.Lines()[1])
}
