package decision_test

import (
	"fmt"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// A submission failed for the second time; what follows, when, and why?
func ExampleDecide() {
	policy := decisiontest.TISSSubmission()
	failure, rejection := policy.Read(decision.Variables{
		ID:         decision.Text("CLM-001-1234567890"),
		Error:      decision.Text("TIMEOUT - Connection timeout after 30s"),
		RetryCount: "1", // variables are JSON, as the process holds them
	})
	if rejection != nil {
		fmt.Println(rejection)
		return
	}
	now := time.Date(2025, 1, 12, 10, 40, 0, 0, time.UTC)
	d := decision.Decide(&failure, policy, decision.Past{}, now)
	fmt.Println(d.Outcome, d.ErrorClassification, d.MatchedRule)
	fmt.Println(d.RetryReason)
	fmt.Println(decision.Minutes(d.Backoff.Delay), "minutes, at", d.NextRetryTime.Format(time.RFC3339))
	// Output:
	// RETRY TRANSIENT TIMEOUT
	// Transient error, retry 2 of 5
	// 9 minutes, at 2025-01-12T10:49:00Z
}

// The ladder of tiss-submission: the earliest, the nominal and the latest minute of each retry.
func ExampleBackoffRule() {
	rule := decisiontest.TISSSubmission().Backoff
	for n := range int64(5) {
		earliest, latest := rule.After(0, n), rule.After(0.999, n)
		fmt.Println(decision.Minutes(earliest.Delay), rule.Raw(n), decision.Minutes(latest.Delay))
	}
	// Output:
	// 5 5m0s 6
	// 8 10m0s 12
	// 16 20m0s 24
	// 32 40m0s 48
	// 64 1h20m0s 96
}
