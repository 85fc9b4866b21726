// Package console drives the console in a real Chromium, with a real worker and the development engine, as the people
// who decide dead letters do.
package console_test

import (
	"testing"

	"retry-worker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }
