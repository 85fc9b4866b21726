package audit_test

import (
	"fmt"
	"os"
	"testing"
)

// benchFolder holds what several benchmarks use.
var benchFolder string

func TestMain(m *testing.M) {
	var err error
	if benchFolder, err = os.MkdirTemp("", "retry-worker-audit-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	result := m.Run()
	_ = os.RemoveAll(benchFolder)
	os.Exit(result)
}
