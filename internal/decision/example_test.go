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

// A permanent error is not retried; the decision says who is to act.
func ExampleDecide_permanent() {
	policy := decisiontest.TISSSubmission()
	failure, _ := policy.Read(decision.Variables{
		ID:    decision.Text("CLM-001-1234567890"),
		Error: decision.Text("INVALID_PATIENT_DATA - CPF inválido"),
	})
	d := decision.Decide(&failure, policy, decision.Past{}, time.Date(2025, 1, 12, 10, 40, 0, 0, time.UTC))
	fmt.Println(d.Outcome, "for", d.Team)
	fmt.Println(d.RetryReason)
	// Output:
	// PERMANENT_ERROR for cadastro
	// Permanent error, not retried
}

// Input that makes no sense is refused by name before anything is decided.
func ExamplePolicy_Read() {
	_, rejection := decisiontest.TISSSubmission().Read(decision.Variables{
		ID:         decision.Text("CLM-001-1234567890"),
		Error:      decision.Text("TIMEOUT"),
		RetryCount: "2.5",
	})
	fmt.Println(rejection)
	// Output:
	// INVALID_RETRY_COUNT: retryCount is 2.5, expected a whole number from 0 to 9223372036854775807, or none
}

func ExampleClassifier_Classify() {
	policy := decisiontest.TISSSubmission()
	for _, text := range []string{"HTTP 503", "protocol 15037", "timeout, then duplicate claim"} {
		m := policy.Rules.Classify(text, 0)
		fmt.Printf("%-9s %-18q%s\n", m.Class, m.Name, text)
	}
	// Output:
	// TRANSIENT "503"             HTTP 503
	// UNKNOWN   ""                protocol 15037
	// PERMANENT "DUPLICATE_CLAIM" timeout, then duplicate claim
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
