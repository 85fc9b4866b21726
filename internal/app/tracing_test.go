package app_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/config"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/tracingtest"
	"retry-worker/internal/worker"
)

// One span a job, with what was decided; the journal's step and the engine's answer are spans in it. Nothing personal.
func TestTraces(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	collector := tracingtest.Start(t, config.TraceGRPC)
	const secret = "123.456.789-09"
	retried := g.AddJob(gateway.Job{Type: worker.AnalyzeRetry, Variables: variables("CLM-2025-000001", "TIMEOUT - paciente "+secret, 1)})
	given := g.AddJob(gateway.Job{Type: worker.AnalyzeRetry, Variables: variables("CLM-2025-000002", "INVALID_PATIENT_DATA - CPF "+secret, 0)})
	refused := g.AddJob(gateway.Job{Type: worker.AnalyzeRetry, Variables: variables("no claim of "+secret, "TIMEOUT", 0)})
	blank := g.AddJob(gateway.Job{Type: worker.AnalyzeRetry, Variables: variables("CLM-2025-000003", " ", 0)})
	s := settings(t, g.Addr())
	s.TraceProtocol = config.TraceGRPC
	r := serve(t, s)
	settled(t, g, 4)
	r.stop()
	r.returned(t, 10*time.Second)

	jobs := make(map[string]tracingtest.Span)
	inside, records := make(map[string][]string), make(map[string]bool)
	for _, span := range collector.All() {
		if key := span.Attributes["zeebe.job.key"]; key != "" {
			jobs[strings.TrimPrefix(key, "int_value:")] = span
		} else {
			records[span.Attributes["retry_worker.journal.record"]] = true
			inside[span.Parent] = append(inside[span.Parent], span.Name)
		}
		if text := fmt.Sprint(span); strings.Contains(text, secret) || strings.Contains(text, "CLM-") || strings.Contains(text, "paciente") {
			t.Errorf("a span holds what the job held: %s", text)
		}
	}
	const gateway = "gateway_protocol.Gateway/"
	for _, want := range []struct {
		job        int64
		attributes map[string]string
		inside     string
		failed     bool
	}{
		{retried, map[string]string{
			"retry_worker.policy": "tiss-submission", "retry_worker.outcome": "RETRY", "retry_worker.classification": "TRANSIENT", "retry_worker.reason": "TIMEOUT",
			"retry_worker.action": "completed",
		}, "journal " + gateway + "CompleteJob", false},
		{given, map[string]string{
			"retry_worker.outcome": "PERMANENT_ERROR", "retry_worker.reason": "INVALID_PATIENT_DATA", "retry_worker.team": "cadastro", "retry_worker.action": "bpmn_error",
		}, "journal " + gateway + "SetVariables " + gateway + "ThrowError", false},
		{refused, map[string]string{"retry_worker.action": "failed"}, gateway + "FailJob", true},
		{blank, map[string]string{"retry_worker.action": "failed", "retry_worker.rejection": "INVALID_ERROR_MESSAGE"}, "journal " + gateway + "FailJob", true},
	} {
		span, found := jobs[strconv.FormatInt(want.job, 10)]
		if !found || span.Name != worker.AnalyzeRetry {
			t.Errorf("job %d has no span %s: %v", want.job, worker.AnalyzeRetry, jobs)
			continue
		}
		for name, value := range want.attributes {
			if span.Attributes[name] != value {
				t.Errorf("%s of job %d is %q, expected %q", name, want.job, span.Attributes[name], value)
			}
		}
		if got := strings.Join(inside[span.ID], " "); got != want.inside {
			t.Errorf("inside job %d there are %q, expected %q", want.job, got, want.inside)
		}
		if lines := logged.with(t, "traceId", span.Trace); len(lines) != 1 && !want.failed || len(lines) > 0 && lines[0]["jobKey"] != float64(want.job) {
			t.Errorf("the log says of job %d's trace: %v", want.job, lines)
		}
		if span.Failed != want.failed {
			t.Errorf("the span of job %d failed: %v, expected %v", want.job, span.Failed, want.failed)
		}
	}
	if delete(records, ""); len(records) < 2 { // whichever were first: a rejection is a record too
		t.Errorf("the spans tell of the journal's records %v, expected those of two decisions", records)
	}
	if len(jobs) != 4 {
		t.Errorf("%d jobs have a span, expected 4", len(jobs))
	}
}
