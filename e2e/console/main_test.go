package console_test

import (
	"flag"
	"testing"

	"retry-worker/e2e/harness"
)

var update = flag.Bool("update", false, "draw the README's pictures anew")

// version of the broker.
const version = "8.6.0"

func TestMain(m *testing.M) { harness.Main(m) }
