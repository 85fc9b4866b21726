package main

import (
	"strings"
	"testing"
)

// TestDemoNamesItsOwnFlag: the address of the API is read as the commands on dead letters read --server.
func TestDemoNamesItsOwnFlag(t *testing.T) {
	environment(t, nil)
	r := retryWorker("demo", "--api-url", "ftp://console")
	if r.code != exitUsage || !strings.Contains(r.stderr, "--api-url is no address of a console") || strings.Contains(r.stderr, "--server") {
		t.Errorf("exit %d, %q, want 2 and what is wrong with --api-url", r.code, r.stderr)
	}
}
