package faults_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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

// runWithBinary builds the program as `make build` does, so that their caches are one.
func runWithBinary(m *testing.M) int {
	dir, err := os.MkdirTemp("", "faults-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "a place for the binary:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "retry-worker")
	build := exec.Command("go", "build", "-trimpath", "-o", binary, "retry-worker/cmd/retry-worker")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the program under test: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}
