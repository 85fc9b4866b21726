package main

import (
	"testing"
	"time"

	"retry-worker/internal/decision"
)

// decisionCost is one analysis without engine: variables read, error classified, backoff drawn.
func decisionCost() testing.BenchmarkResult {
	policy := decision.TISSSubmission()
	variables := decision.Variables{
		ID: decision.Text("CLM-001-1234567890"), RetryCount: "1",
		Error: decision.Text("java.net.ConnectException: the portal of the operator refused the connection"), // the longest way: no code matches
	}
	now := time.Now()
	return testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			failure, rejection := policy.Read(variables)
			if rejection != nil {
				b.Fatal(rejection)
			}
			decision.Decide(&failure, policy, decision.Past{}, now)
		}
	})
}
