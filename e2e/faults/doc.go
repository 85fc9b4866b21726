// Package faults holds the loop against everything a gateway can do to it: the tests play the faults on
// the stub gateway, over real gRPC on loopback, and print what became of the jobs as one table.
//
// The worker is the real one: its loop and its adapter inside the test process where its hooks are
// looked at, the built binary where signals and the file system matter. Only tests are here.
package faults
