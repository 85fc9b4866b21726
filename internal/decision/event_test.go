package decision_test

import (
	"math"
	"reflect"
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
	detected := map[string]any{
		"claimId": "CLM-001-123", "errorType": decision.Reason("INSURANCE_EXPIRED"), "errorMessage": "redacted",
		"detectedAt": decision.Instant(analysed), "severity": "CRITICAL",
	}
	next, minutes := decision.Instant(retried.NextRetryTime), decision.Minutes(retried.Wait())
	tests := []struct {
		name     string
		decision decision.Decision
		rule     decision.BusinessRule
		want     decision.Event
	}{
		{"RN-BIL-005 retry", retried, decision.RNBIL005, decision.Event{"RetryScheduled", "retry_scheduled", map[string]any{
			"claimId": "CLM-001-123", "retryCount": int64(2), "maxRetries": int64(5), "backoffMinutes": minutes, "nextRetryTime": next,
			"errorClassification": decision.Transient, "scheduledAt": decision.Instant(analysed), "version": int64(2),
		}}},
		{"RN-BIL-004 retry", retried, decision.RNBIL004, decision.Event{"SubmissionRetryScheduled", "submission_retry_scheduled", map[string]any{
			"claimId": "CLM-001-123", "retryCount": int64(2), "errorClassification": decision.Transient,
			"nextRetryTime": next, "backoffMinutes": minutes, "timestamp": decision.Instant(analysed),
		}}},
		{"RN-BIL-005 limit", exceeded, decision.RNBIL005, decision.Event{"MaxRetriesExceeded", "max_retries_exceeded", map[string]any{
			"claimId": "CLM-001-123", "finalError": "redacted", "totalAttempts": int64(6), "totalDuration": "PT180M",
			"exceededAt": decision.Instant(analysed), "severity": "CRITICAL",
		}}},
		{"RN-BIL-004 limit", exceeded, decision.RNBIL004, decision.Event{"SubmissionRetryExhausted", "max_retries_exceeded", map[string]any{
			"claimId": "CLM-001-123", "retryCount": int64(5), "lastError": "redacted", "timestamp": decision.Instant(analysed),
		}}},
		{"RN-BIL-005 permanent", permanent, decision.RNBIL005, decision.Event{"PermanentErrorDetected", "permanent_error_detected", detected}},
		{"RN-BIL-004 permanent", permanent, decision.RNBIL004, decision.Event{"PermanentErrorDetected", "permanent_error_detected", detected}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Fields["possiblyAccepted"] = tt.decision.PossiblyAccepted // R33
			if got := tt.decision.Event(tt.rule, "redacted"); !reflect.DeepEqual(got, &tt.want) {
				t.Fatalf("got  %#v\nwant %#v", got, tt.want)
			}
		})
	}
}

// TestEventAttempts: the first submission counts (R12), and the largest integer stays one.
func TestEventAttempts(t *testing.T) {
	for count, want := range map[int64]int64{5: 6, 7: 8, math.MaxInt64 - 1: math.MaxInt64, math.MaxInt64: math.MaxInt64} {
		d := decide(decisiontest.TISSSubmission(), claim(strconv.FormatInt(count, 10), "TIMEOUT"))
		if got := d.Event(decision.RNBIL005, "").Fields["totalAttempts"]; got != want {
			t.Errorf("retryCount %d: %v attempts, want %d", count, got, want)
		}
	}
}
