// Package console drives the console's pages in a real Chromium, beside a real worker with its journal and a real
// Zeebe broker, as the people do who decide on what the worker gave up.
//
// It draws the pictures of docs/console.md too: go test ./e2e/console -run Pictures -update
package console_test

import (
	"flag"
	"testing"

	"retry-worker/e2e/harness"
)

var update = flag.Bool("update", false, "draw the pictures of docs/console.md anew")

// version of the broker.
const version = "8.6.0"

func TestMain(m *testing.M) { harness.Main(m) }
