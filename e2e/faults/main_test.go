// Package faults holds the worker against everything a gateway can do to it: the tests play the faults on a scripted
// gateway, over real gRPC, and print what became of the jobs as one table.
//
// Where the loop and its adapter are enough they run in a testing/synctest bubble, connected in memory: time passes at
// once and bounds are exact. The built program plays where signals, settings and the file system matter.
package faults_test

import (
	"testing"

	"retry-worker/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m, harness.Parallel(8)) }
