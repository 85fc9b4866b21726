package worker_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap/zapcore"

	"retry-worker/internal/worker"
)

// TestLogLine holds the one line of a decision to RN-BIL-005 §13.4, its level to R1 and its event to R16.
func TestLogLine(t *testing.T) {
	common := []string{
		"event", "claimId", "submissionError", "errorClassification", "matchedRule", "matchedText", "retryCount", "maxRetries",
		"retryPolicy", "catalogue", "executionTimeMs", "jobKey", "processInstanceKey",
	}
	scheduled := []string{"backoffMinutes", "nextRetryTime"}
	final := []string{"responsibleTeam", "deadLetterId"}
	tests := []struct {
		name      string
		variables string
		level     zapcore.Level
		event     string // of RN-BIL-005
		more      []string
		want      map[string]any
	}{
		{"transient", claim(`"submissionError":"TIMEOUT - 30s","retryCount":1`), zapcore.InfoLevel, "retry_scheduled", scheduled,
			map[string]any{"submissionError": "TIMEOUT - 30s", "errorClassification": "TRANSIENT", "matchedRule": "TIMEOUT", "matchedText": "TIMEOUT", "retryCount": int64(2),
				"backoffMinutes": int64(12), "nextRetryTime": "2025-01-12T10:52:00Z"}},
		{"unknown (R1.6)", claim(`"submissionError":"outra coisa"`), zapcore.WarnLevel, "retry_scheduled", scheduled,
			map[string]any{"submissionError": "outra coisa", "errorClassification": "UNKNOWN", "matchedRule": "", "matchedText": "", "retryCount": int64(1)}},
		{"permanent", claim(`"submissionError":"DUPLICATE_CLAIM"`), zapcore.WarnLevel, "permanent_error_detected", final,
			map[string]any{"errorClassification": "PERMANENT", "matchedRule": "DUPLICATE_CLAIM", "retryCount": int64(0), "responsibleTeam": "faturamento"}},
		{"the limit", claim(`"submissionError":"TIMEOUT","retryCount":5`), zapcore.ErrorLevel, "max_retries_exceeded", final,
			map[string]any{"errorClassification": "TRANSIENT", "retryCount": int64(5), "responsibleTeam": "faturamento"}},
		{"the limit with an unknown error", claim(`"retryCount":5`), zapcore.ErrorLevel, "max_retries_exceeded", final,
			map[string]any{"submissionError": "", "errorClassification": "UNKNOWN"}},
		{"a submission time ahead (R23)", claim(`"submissionError":"TIMEOUT","lastSubmissionTime":"2025-01-12T10:40:01Z"`), zapcore.WarnLevel,
			"retry_scheduled", append(scheduled, "warning"),
			map[string]any{"warning": "lastSubmissionTime lies in the future and is ignored"}},
		{"no error text", claim(`"submissionError":"undefined"`), zapcore.WarnLevel, "retry_scheduled", append(scheduled, "warning"),
			map[string]any{"warning": "submissionError holds undefined: the process passes no error text; check its mapping"}},
		{"a submission time that is past (R23)", claim(`"submissionError":"TIMEOUT","lastSubmissionTime":"2025-01-12T10:40:00.1Z"`), zapcore.InfoLevel,
			"retry_scheduled", scheduled, map[string]any{}},
	}
	for _, tt := range tests {
		for _, jobType := range []string{worker.AnalyzeRetry, worker.RetrySubmissionBackoff} {
			t.Run(tt.name+"/"+jobType, func(t *testing.T) {
				event := tt.event
				if event == "retry_scheduled" && jobType == worker.RetrySubmissionBackoff {
					event = "submission_retry_scheduled" // as RN-BIL-004 calls it
				}
				began := time.Now()
				h := handle(job(jobType, "{}", tt.variables))
				most, lines := time.Since(began), h.logs.All()
				if len(lines) != 1 {
					t.Fatalf("%d log lines for one decision: %v", len(lines), lines)
				}
				got := lines[0].ContextMap()
				want := append(slices.Clone(common), tt.more...)
				slices.Sort(want)
				if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
					t.Errorf("the fields are %v, want %v", names, want)
				}
				for name, value := range tt.want {
					if got[name] != value {
						t.Errorf("%s is %v, want %v", name, got[name], value)
					}
				}
				for name, value := range map[string]any{
					"event": event, "claimId": "CLM-001-123", "maxRetries": int64(5), "retryPolicy": "tiss-submission", "catalogue": version,
					"jobKey": int64(2251799813685301), "processInstanceKey": int64(2251799813685200),
				} {
					if got[name] != value {
						t.Errorf("%s is %v, want %v", name, got[name], value)
					}
				}
				if ms := float64(h.took.Microseconds()) / 1000; got["executionTimeMs"] != ms || h.took <= 0 || h.took > most {
					t.Errorf("executionTimeMs is %v, and counted were %s of %s", got["executionTimeMs"], h.took, most)
				}
				if lines[0].Level != tt.level {
					t.Errorf("logged as %s, want %s", lines[0].Level, tt.level)
				}
				if lines[0].Message == "" {
					t.Error("the line has no message")
				}
			})
		}
	}
}

// TestVariablesAtTheBound: 1 MB is the last size that is read.
func TestVariablesAtTheBound(t *testing.T) {
	frame := len(claim(`"submissionError":"TIMEOUT "`))
	for size, want := range map[int]worker.Action{1 << 20: worker.Completed, 1<<20 + 1: worker.Failed} {
		h := handle(job(worker.AnalyzeRetry, "{}", claim(`"submissionError":"TIMEOUT `+strings.Repeat("x", size-frame)+`"`)))
		if h.reply.Action != want {
			t.Errorf("%d bytes of variables: %s %.100s, want %s", size, h.reply.Action, h.reply.Failure.Message, want)
		}
		if line := fmt.Sprint(h.logs.All()[0].ContextMap()); len(line) > 2000 {
			t.Errorf("a log line of %d bytes", len(line))
		}
	}
}

// TestNothingPersonal: wherever a CPF stands in a job, it is in no log line and in no message to the
// engine.
func TestNothingPersonal(t *testing.T) {
	for _, cpf := range []string{"529.982.247-25", "52998224725", "CPF: 529982247-25"} {
		for _, e := range []struct{ name, headers, variables string }{
			{"in a claimId", "{}", `{"claimId":"` + cpf + `","submissionError":"TIMEOUT"}`},
			{"in a claimId, with words around it", "{}", `{"claimId":"conta do paciente ` + cpf + `, leito 3"}`},
			{"in a claimId that is too long", "{}", `{"claimId":"` + strings.Repeat("x", 285) + ` ` + cpf + ` ` + strings.Repeat("x", 600) + `"}`},
			{"in a retryCount", "{}", claim(`"submissionError":"TIMEOUT","retryCount":"` + cpf + `"`)},
			{"in a retryCount that is a number", "{}", claim(`"submissionError":"TIMEOUT","retryCount":-52998224725`)},
			{"in a lastSubmissionTime", "{}", claim(`"submissionError":"TIMEOUT","lastSubmissionTime":"` + cpf + `"`)},
			{"in the policy's name", `{"retryPolicy":"` + cpf + `"}`, claim(`"submissionError":"TIMEOUT"`)},
			{"in the headers", `{"retryPolicy":["` + cpf + `"]}`, claim(`"submissionError":"TIMEOUT"`)},
			{"in variables that are no JSON", "{}", `{"claimId":"` + cpf + `"`},
			{"in an outcome", "{}", claim(`"retryOutcome":"` + cpf + `"`)},
			{"in the error: transient", "{}", claim(`"submissionError":"TIMEOUT, paciente ` + cpf + `"`)},
			{"in the error: unknown", "{}", claim(`"submissionError":"paciente ` + cpf + ` não encontrado"`)},
			{"in the error: permanent", "{}", claim(`"submissionError":"INVALID_PATIENT_DATA ` + cpf + `"`)},
			{"in the error: the limit", "{}", claim(`"retryCount":5,"submissionError":"` + cpf + `"`)},
			{"in the error, at the cut", "{}", claim(`"retryCount":5,"submissionError":"` + strings.Repeat("x", 993) + ` ` + cpf + `"`)},
			{"in the error that is an object", "{}", claim(`"submissionError":{"cpf":"` + cpf + `"}`)},
		} {
			for _, jobType := range []string{worker.AnalyzeRetry, worker.RetrySubmissionBackoff, worker.RecordRetryOutcome} {
				h := handle(job(jobType, e.headers, e.variables))
				r := &running{logs: h.logs}
				wantNoPersonalData(t, r, h.reply.Failure.Message+" "+h.reply.Error.Message, "529.982.247-25")
				if t.Failed() {
					t.Fatalf("%s %s, %s", cpf, e.name, jobType)
				}
			}
		}
	}
}

// TestIDInALogLine: what redaction finds in an id is in no line.
func TestIDInALogLine(t *testing.T) {
	h := handle(job(worker.AnalyzeRetry, "{}", `{"claimId":"CLM-ana@exemplo.com-1","submissionError":"TIMEOUT"}`))
	if got := h.logs.All()[0].ContextMap()["claimId"]; got != "[E-MAIL]" {
		t.Errorf("the line names %q", got)
	}
}
