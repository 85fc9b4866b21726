package faults_test

import (
	"flag"
	"testing"

	"retry-worker/e2e/harness"
)

// rowsAtOnce: the rows spend their time waiting, so more of them than there are cores may run at once.
const rowsAtOnce = "8"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", rowsAtOnce); err != nil {
		panic(err)
	}
	harness.Main(m)
}
