package decision_test

import (
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestManualIsTheLaddersOwnBackoff: a person's retry waits as long as the worker's own retry at that count would have
// (R6, R17).
func TestManualIsTheLaddersOwnBackoff(t *testing.T) {
	p := decisiontest.TISSSubmission()
	for count, text := range []string{"0", "1", "2", "3", "4"} {
		d := decide(p, claim(text, "TIMEOUT"))
		if got := p.Manual("CLM-001-123", decision.OwnPolicy{}, int64(count)); got != d.Backoff {
			t.Errorf("after %d retries: %+v, the worker's own is %+v", count, got, d.Backoff)
		}
	}
}

// TestManualKeepsToTheJobsOwnDelay (R15).
func TestManualKeepsToTheJobsOwnDelay(t *testing.T) {
	p := &decision.Policy{Name: "job-queue", Own: &decision.OwnVariables{}, Backoff: decision.BackoffRule{
		Base: time.Second, Max: time.Second, Factor: 1, Rounding: time.Millisecond}}
	if got := p.Manual("job-1", decision.OwnPolicy{Delay: 42 * time.Second, HasDelay: true}, 3).Delay; got != 42*time.Second {
		t.Errorf("%v, want the 42s that the job asked for", got)
	}
	if got := p.Manual("job-1", decision.OwnPolicy{}, 3).Delay; got != time.Second {
		t.Errorf("%v, want the policy's 1s", got)
	}
}
