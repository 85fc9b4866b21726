// Package console drives the console's pages in a real Chromium, beside a real worker with its journal and the
// development engine, as the people do who decide on what the worker gave up.
//
// It draws the pictures of docs/console.md too: go test ./e2e/console -run Pictures -update
package console_test

import (
	"flag"
	"testing"

	"retry-worker/e2e/harness"
)

var update = flag.Bool("update", false, "draw the pictures of docs/console.md anew")

func TestMain(m *testing.M) { harness.Main(m) }
