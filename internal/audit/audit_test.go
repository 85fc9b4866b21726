package audit_test

import (
	"testing"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
)

// The backoff of a retry that the hours of its portal moved (R29). testdata/export.jsonl has all else that §7.1 of the rules names,
// with its six events.
func TestBackoffOfAMovedRetry(t *testing.T) {
	moved := *recordAt(t, filled(t, "what is this"), 1).Attempt
	moved.NextRetryTime = moved.AnalysedAt.Add(28 * time.Minute)
	if minutes := audit.Of(&journal.Entry{Attempt: &moved}).BackoffMinutes; minutes == nil || *minutes != 28 {
		t.Errorf("backoffMinutes of a retry in 28 minutes is %v", minutes)
	}
}
