// Package console drives the console's pages in a real Chromium, beside a real worker with its journal and the
// development engine, as the people do who decide on what the worker gave up.
package console_test

import (
	"testing"

	"retry-worker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
