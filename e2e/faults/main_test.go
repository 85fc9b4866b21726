// Package faults holds the loop, its adapter and the real handler together against what a gateway can do to a worker:
// the tests play faults on a scripted gateway, over real gRPC and REST, and print what became of the jobs as one table.
// What each status, time-out and token means alone is tested in internal/zeebe and internal/worker; what the engine
// does, in e2e/chaos.
//
// Rows run in a testing/synctest bubble, connected in memory: time passes at once and bounds are exact.
package faults_test

import (
	"testing"

	"retry-worker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m, harness.Parallel(8)) }
