package main

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// decisionCost is the CPU time and the allocations of one analysis without engine: variables read,
// error classified, backoff drawn. CPU time, because the machine's other work must not count.
func decisionCost() (cpu time.Duration, allocations float64, err error) {
	policy := decisiontest.TISSSubmission()
	variables := decision.Variables{
		ID: decision.Text("CLM-001-1234567890"), RetryCount: "1",
		Error: decision.Text("java.net.ConnectException: the portal of the operator refused the connection"), // the longest way: no code matches
	}
	now := time.Now()
	decide := func() {
		failure, rejection := policy.Read(variables)
		if rejection != nil {
			err = fmt.Errorf("the benchmark's own failure is refused: %w", rejection)
			return
		}
		decision.Decide(&failure, policy, decision.Past{}, now)
	}
	const times = 300_000
	began := ownCPU()
	for range times {
		decide()
	}
	return (ownCPU() - began) / times, testing.AllocsPerRun(1000, decide), err
}

func ownCPU() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil { // cannot fail for oneself
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
