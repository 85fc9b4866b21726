package decision_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestR16Events: each outcome under each rule is the event of its §12.3, field by field, with the log
// name of its §13.4.
func TestR16Events(t *testing.T) {
	p := decisiontest.TISSSubmission()
	retried := decide(p, claim("1", "TIMEOUT"))
	permanent := decide(p, claim("1", "INSURANCE_EXPIRED since yesterday"))
	past := decision.Past{FirstFailure: analysed.Add(-3 * time.Hour)}
	exceeded := decideWith(p, claim("5", "TIMEOUT"), past, analysed)
	detected := decision.PermanentErrorDetected{
		ClaimID: "CLM-001-123", ErrorType: "INSURANCE_EXPIRED", ErrorMessage: "redacted", DetectedAt: analysed, Severity: "CRITICAL",
	}
	tests := []struct {
		name     string
		decision decision.Decision
		rule     decision.BusinessRule
		want     decision.Event
		typ, log string
	}{
		{"RN-BIL-005 retry", retried, decision.RNBIL005, decision.RetryScheduled{
			ClaimID: "CLM-001-123", RetryCount: 2, MaxRetries: 5, BackoffMinutes: decision.Minutes(retried.Wait()),
			NextRetryTime: retried.NextRetryTime, ErrorClassification: "TRANSIENT", ScheduledAt: analysed, Version: 2,
		}, "RetryScheduled", "retry_scheduled"},
		{"RN-BIL-004 retry", retried, decision.RNBIL004, decision.SubmissionRetryScheduled{
			ClaimID: "CLM-001-123", RetryCount: 2, ErrorClassification: "TRANSIENT",
			NextRetryTime: retried.NextRetryTime, BackoffMinutes: decision.Minutes(retried.Wait()), Timestamp: analysed,
		}, "SubmissionRetryScheduled", "submission_retry_scheduled"},
		{"RN-BIL-005 limit", exceeded, decision.RNBIL005, decision.MaxRetriesExceededEvent{
			ClaimID: "CLM-001-123", FinalError: "redacted", TotalAttempts: 6, TotalDuration: 3 * time.Hour, ExceededAt: analysed, Severity: "CRITICAL",
		}, "MaxRetriesExceeded", "max_retries_exceeded"},
		{"RN-BIL-004 limit", exceeded, decision.RNBIL004, decision.SubmissionRetryExhausted{
			ClaimID: "CLM-001-123", RetryCount: 5, LastError: "redacted", Timestamp: analysed,
		}, "SubmissionRetryExhausted", "max_retries_exceeded"},
		{"RN-BIL-005 permanent", permanent, decision.RNBIL005, detected, "PermanentErrorDetected", "permanent_error_detected"},
		{"RN-BIL-004 permanent", permanent, decision.RNBIL004, detected, "PermanentErrorDetected", "permanent_error_detected"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.decision.Event(tt.rule, "redacted")
			if got != tt.want {
				t.Fatalf("got  %#v\nwant %#v", got, tt.want)
			}
			if got.Type() != tt.typ || got.LogName() != tt.log {
				t.Errorf("named %s and %s, want %s and %s", got.Type(), got.LogName(), tt.typ, tt.log)
			}
		})
	}
}

// TestEventAttempts: the first submission counts (R12), and the largest integer stays one.
func TestEventAttempts(t *testing.T) {
	for count, want := range map[int64]int64{5: 6, 7: 8, math.MaxInt64 - 1: math.MaxInt64, math.MaxInt64: math.MaxInt64} {
		d := decide(decisiontest.TISSSubmission(), claim(strconv.FormatInt(count, 10), "TIMEOUT"))
		if got := d.Event(decision.RNBIL005, "").(decision.MaxRetriesExceededEvent).TotalAttempts; got != want {
			t.Errorf("retryCount %d: %d attempts, want %d", count, got, want)
		}
	}
}

// TestEventDurationIsBounded: an episode from long before there were computers does not overflow.
func TestEventDurationIsBounded(t *testing.T) {
	v := claim("5", "TIMEOUT")
	v.LastSubmissionTime = `"0000-01-01T00:00:00Z"`
	d := decide(decisiontest.TISSSubmission(), v)
	if got := d.Event(decision.RNBIL005, "").(decision.MaxRetriesExceededEvent).TotalDuration; got != math.MaxInt64 {
		t.Errorf("2025 years are %s, want the longest duration", got)
	}
}
