package audit_test

import (
	"encoding/json"
	"testing"
	"time"

	"retry-worker/internal/audit"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// RN-BIL-005 §7.1: the fields of its record, by their names; RN-BIL-004 §7.1 adds shouldRetry.
func TestRecordHasWhatTheRulesName(t *testing.T) {
	l := filled(t, "what is this")
	for n, want := range map[int64]map[string]any{
		1: {"timestamp": "2026-03-02T10:00:00Z", "claimId": "CLM-1-1", "submissionError": "TIMEOUT", "errorClassification": "TRANSIENT",
			"retryCount": 1.0, "maxRetries": 5.0, "retryReason": "Transient error, retry 1 of 5", "executionTimeMs": 1.5, "shouldRetry": true,
			"jobKey": "9007199254740994", "kind": "attempt", "record": 1.0, "responsibleTeam": nil, "deadLetterId": nil},
		11: {"claimId": "CLM-1-2", "errorClassification": "PERMANENT", "backoffMinutes": nil, "nextRetryTime": nil, "shouldRetry": false,
			"retryCount": 1.0, "responsibleTeam": "faturamento", "matchedRule": "DUPLICATE_CLAIM", "outcome": "PERMANENT_ERROR"},
		12: {"errorClassification": "UNKNOWN", "matchedRule": nil, "shouldRetry": true},
	} {
		r := object(t, recordAt(t, l, n))
		for name, value := range want {
			if got, there := r[name]; !there || got != value {
				t.Errorf("record %d: %s is %v, want %v", n, name, got, value)
			}
		}
	}
	r := object(t, recordAt(t, l, 1))
	if minutes, _ := r["backoffMinutes"].(float64); minutes != 5 && minutes != 6 {
		t.Errorf("backoffMinutes is %v", r["backoffMinutes"])
	}
	moved := *recordAt(t, l, 1).Attempt // by the hours of its portal (R29)
	moved.NextRetryTime = moved.AnalysedAt.Add(28 * time.Minute)
	if minutes := object(t, &journal.Record{Attempt: &moved})["backoffMinutes"]; minutes != 28.0 {
		t.Errorf("backoffMinutes of a retry in 28 minutes is %v", minutes)
	}
}

func object(t *testing.T, r *journal.Record) map[string]any {
	t.Helper()
	b, err := json.Marshal(audit.Of(r))
	testkit.Must(t, err)
	var o map[string]any
	testkit.Must(t, json.Unmarshal(b, &o))
	return o
}

// The six events of §7.1, with their times; no backoff is calculated and no attempt scheduled where none follows.
func TestRecordHasTheSixEvents(t *testing.T) {
	l := filled(t, "what is this")
	const received, decided = "2026-03-02T10:00:00.448Z", "2026-03-02T10:00:00.449Z" // received in whole milliseconds, and 1.5 later
	for n, want := range map[int64][]audit.Event{
		1: {{1, "error_received", received}, {2, "error_classified", decided}, {3, "retry_count_checked", decided},
			{4, "backoff_calculated", decided}, {5, "retry_decided", decided}, {6, "next_attempt_scheduled", decided}},
		11: {{1, "error_received", received}, {2, "error_classified", decided}, {3, "retry_count_checked", decided}, {5, "retry_decided", decided}},
	} {
		got := audit.Of(recordAt(t, l, n)).Events
		if len(got) != len(want) {
			t.Fatalf("record %d: got %v, want %v", n, got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("record %d: got %v, want %v", n, got[i], want[i])
			}
		}
	}
	if r := object(t, recordAt(t, l, 10)); r["kind"] != "outcome" || r["events"] != nil || r["submissionError"] != nil || r["body"] == nil {
		t.Errorf("an outcome is %v", r)
	}
}
