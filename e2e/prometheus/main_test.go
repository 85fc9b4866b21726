package prometheus_test

import (
	"flag"
	"testing"

	"retry-worker/e2e/harness"
)

var update = flag.Bool("update", false, "draw the pictures of the dashboards anew")

func TestMain(m *testing.M) { harness.Main(m) }
