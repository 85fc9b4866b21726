package faults_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"retry-worker/e2e/build"
)

// rowsAtOnce: the rows spend their time waiting, so more of them than there are cores may run at once.
const rowsAtOnce = "8"

// binary is the program under test.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", rowsAtOnce); err != nil {
		panic(err)
	}
	os.Exit(runWithBinary(m))
}

func runWithBinary(m *testing.M) int {
	dir, err := os.MkdirTemp("", "faults-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "a place for the binary:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	if binary, err = build.Worker(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}
