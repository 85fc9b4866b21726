package worker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"

	"retry-worker/internal/testkit/golden"
	"retry-worker/internal/worker"
)

// example is one job; its name says what is to be seen.
type example struct{ name, headers, variables string }

// failures are the failed submissions of both rules' job types.
var failures = []example{
	{"RN-BIL-005 §9.1: transient, the second retry", `{}`, claim(`"submissionError":"TIMEOUT - Connection timeout after 30s","retryCount":1`)},
	{"the first failure, nothing counted yet", `{}`, claim(`"submissionError":"SERVICE_UNAVAILABLE"`)},
	{"retryCount null is absent (R9)", `{}`, claim(`"submissionError":"HTTP 503","retryCount":null,"lastSubmissionTime":null`)},
	{"retryCount 2.0 is 2 (R9)", `{}`, claim(`"submissionError":"connection error","retryCount":2.0`)},
	{"the last retry", `{}`, claim(`"submissionError":"RATE_LIMIT","retryCount":4`)},
	{"unknown is retried (R1.6)", `{}`, claim(`"submissionError":"operadora não respondeu","retryCount":0`)},
	{"a header names the policy", `{"retryPolicy":"tiss-submission","other":"x"}`, claim(`"submissionError":"TIMEOUT"`)},
	{"no headers at all", ``, claim(`"submissionError":"TIMEOUT"`)},
	{"lastSubmissionTime without a zone (R23)", `{}`, claim(`"submissionError":"TIMEOUT","lastSubmissionTime":"2025-01-12T10:30"`)},
	{"white space, any order, the last of two, a stranger", `{}`, " {\n\t\"other\" : [1,{\"a\":\"}\"}] , \"retryCount\":1 , \"claimId\" : \"CLM-X-9\" , \"retryCount\" : 3 ,\"submissionError\":\"TIMEOUT\" } "},
	{"escaped names are names", `{}`, `{"claim\u0049d":"CLM-001-123","submission\u0045rror":"TIMEOUT"}`},
	{"the error as it came: escapes", `{}`, claim(`"submissionError":"TIMEOUT \u00e9 \ud83d\ude00 \/ \u2028 <b>&\"\\\n"`)},
	{"the error as it came: unicode", `{}`, claim(`"submissionError":"TIMEOUT é 😀 / <b>& faturação"`)},
	{"a policy below a minute (R7)", `{"retryPolicy":"quick"}`, `{"messageId":"m-1","sendError":"TIMEOUT"}`},
	{"minutes are rounded up", `{"retryPolicy":"quick"}`, `{"messageId":"m-1","sendError":"TIMEOUT","retryCount":2}`},
	{"an empty error that is assumed transient (R11)", `{"retryPolicy":"quick"}`, `{"messageId":"m-1"}`},

	{"RN-BIL-005 §9.2: the limit (R10)", `{}`, claim(`"submissionError":"TIMEOUT","retryCount":5`)},
	{"above the limit (R10)", `{}`, claim(`"submissionError":"TIMEOUT","retryCount":7`)},
	{"the limit beats a permanent error (R1)", `{}`, claim(`"submissionError":"DUPLICATE_CLAIM","retryCount":5`)},
	{"the limit beats an empty error (R1)", `{}`, claim(`"submissionError":"","retryCount":5`)},
	{"the limit without an error", `{}`, claim(`"retryCount":5`)},
	{"the limit with an error that is an object", `{}`, claim(`"retryCount":5,"submissionError": { "code" : 503, "détail":[1e400, null] } `)},
	{"the limit with an error that is a number", `{}`, claim(`"retryCount":5,"submissionError":1.50`)},
	{"RN-BIL-005 §9.3: permanent, for cadastro", `{}`, claim(`"submissionError":"INVALID_PATIENT_DATA - CPF inválido","retryCount":0`)},
	{"permanent, for faturamento (R21)", `{}`, claim(`"submissionError":"AUTHORIZATION_DENIED","retryCount":1`)},
	{"permanent beats transient (R2)", `{}`, claim(`"submissionError":"TIMEOUT, then duplicate claim","retryCount":3`)},

	{"no claimId", `{}`, `{"submissionError":"TIMEOUT"}`},
	{"claimId is a number", `{}`, `{"claimId":123,"submissionError":"TIMEOUT"}`},
	{"claimId of another form", `{}`, `{"claimId":"CLM-001","submissionError":"TIMEOUT"}`},
	{"claimId of two lines", `{}`, `{"claimId":"CLM-001\n-1","submissionError":"TIMEOUT"}`},
	{"claimId too long", `{}`, `{"claimId":"CLM-` + strings.Repeat("x", 3000) + `-1","submissionError":"TIMEOUT"}`},
	{"retryCount is text", `{}`, claim(`"submissionError":"TIMEOUT","retryCount":"2"`)},
	{"retryCount is a fraction", `{}`, claim(`"submissionError":"TIMEOUT","retryCount":2.5`)},
	{"retryCount is negative", `{}`, claim(`"submissionError":"TIMEOUT","retryCount":-1`)},
	{"retryCount is true", `{}`, claim(`"submissionError":"TIMEOUT","retryCount":true`)},
	{"retryCount is a list", `{}`, claim(`"submissionError":"TIMEOUT","retryCount":[2]`)},
	{"lastSubmissionTime is no instant", `{}`, claim(`"submissionError":"TIMEOUT","lastSubmissionTime":"ontem"`)},
	{"no error", `{}`, claim(`"retryCount":1`)},
	{"an error of white space (R11)", `{}`, claim(`"submissionError":" \t\n","retryCount":1`)},
	{"an error that is a number", `{}`, claim(`"submissionError":503`)},
	{"an error that is an object", `{}`, claim(`"submissionError":{"code":503}`)},
	{"the first thing wrong is told: the id", `{}`, `{"claimId":"x","retryCount":"x","lastSubmissionTime":"x"}`},
	{"the first thing wrong is told: the policy", `{"retryPolicy":"x"}`, `{"claimId":"x"}`},
	{"a policy that does not exist", `{"retryPolicy":"tiss"}`, claim(`"submissionError":"TIMEOUT"`)},
	{"an id of another policy", `{"retryPolicy":"quick"}`, `{"messageId":"two words","sendError":"TIMEOUT"}`},
	{"headers that are no texts", `{"retryPolicy":5}`, claim(`"submissionError":"TIMEOUT"`)},
	{"headers that are no JSON", `{"retryPolicy`, claim(`"submissionError":"TIMEOUT"`)},
	{"variables that are a list", `{}`, `[]`},
	{"variables that are null", `{}`, `null`},
	{"variables that are no JSON", `{}`, `{"claimId":"CLM-001-123"`},
	{"no variables", `{}`, ``},
	{"variables of more than 1 MB", `{}`, claim(`"submissionError":"` + strings.Repeat("x", 1<<20) + `"`)},
}

// outcomes are the jobs that tell what came of a retry.
var outcomes = []example{
	{"success is the default", `{}`, `{"claimId":"CLM-001-123"}`},
	{"success", `{}`, claim(`"retryOutcome":"success"`)},
	{"failure", `{"retryPolicy":"tiss-submission"}`, claim(`"retryOutcome":"failure"`)},
	{"null is the default", `{}`, claim(`"retryOutcome":null`)},
	{"of another policy", `{"retryPolicy":"quick"}`, `{"messageId":"m-1"}`},
	{"variables it does not read may be anything", `{}`, claim(`"retryCount":"x","submissionError":5`)},
	{"another word", `{}`, claim(`"retryOutcome":"sucesso"`)},
	{"in capitals", `{}`, claim(`"retryOutcome":"SUCCESS"`)},
	{"no text", `{}`, claim(`"retryOutcome":true`)},
	{"no subject", `{}`, `{"retryOutcome":"success"}`},
	{"a subject of another form", `{}`, `{"claimId":"123"}`},
	{"a policy that does not exist", `{"retryPolicy":"x"}`, `{"claimId":"CLM-001-123"}`},
	{"headers that are no texts", `[]`, `{"claimId":"CLM-001-123"}`},
	{"variables that are no object", `{}`, `"CLM-001-123"`},
}

// render writes an example and its reply so that a person can judge it.
func render(b *bytes.Buffer, e example, r worker.Reply) {
	fmt.Fprintf(b, "=== %s\n", e.name)
	fmt.Fprintf(b, "headers   %s\nvariables %s\n", short(e.headers), short(e.variables))
	switch r.Action {
	case worker.Completed:
		fmt.Fprintf(b, "--- completed\n%s\n\n", indented(r.Variables))
	case worker.Thrown:
		fmt.Fprintf(b, "--- bpmn_error %s: %s\n%s\n\n", r.Error.Code, r.Error.Message, indented(r.Error.Variables))
	default:
		fmt.Fprintf(b, "--- %s with %d retries, after %s\n%s\n\n", r.Action, r.Failure.Retries, r.Failure.Backoff, r.Failure.Message)
	}
}

func short(s string) string {
	const most = 200
	if len(s) > most {
		return fmt.Sprintf("%s… (%d bytes)", s[:most], len(s))
	}
	return strings.ReplaceAll(s, "\n", `⏎`)
}

// indented spreads a JSON object over lines; what stands between its quotes stays as it is.
func indented(object string) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(object), "", "  "); err != nil {
		return "no JSON: " + object
	}
	return b.String()
}

// TestReplies holds every example's reply to the golden file, to the last byte. The two rules differ in
// what they report, not in what they answer.
func TestReplies(t *testing.T) {
	for jobType, examples := range map[string][]example{
		worker.AnalyzeRetry: failures, worker.RetrySubmissionBackoff: failures, worker.RecordRetryOutcome: outcomes,
	} {
		t.Run(jobType, func(t *testing.T) {
			file := map[bool]string{true: "outcome", false: "analysis"}[jobType == worker.RecordRetryOutcome]
			var got bytes.Buffer
			for _, e := range examples {
				h := handle(job(jobType, e.headers, e.variables))
				if file == "analysis" || h.reply.Action == worker.Failed {
					wantContract(t, h.reply)
				}
				h.wantReported(t, jobType, e)
				render(&got, e, h.reply)
			}
			golden.Check(t, "testdata/"+file+".golden", got.String())
		})
	}
}

// wantReported fails unless a job is one fresh decision or one rejection, by its own type, and what the log is to say.
func (h *handled) wantReported(t *testing.T, jobType string, e example) {
	t.Helper()
	decided, rejected, lines := 1, 0, 1
	switch {
	case h.reply.Action == worker.Failed:
		decided, rejected = 0, 1
	case jobType == worker.RecordRetryOutcome:
		decided, lines = 0, 0
	}
	if len(h.decided) != decided || len(h.rejected) != rejected || h.logs.Len() != lines {
		t.Fatalf("%s: %d decisions, %d rejections and %d lines were reported, want %d, %d, %d",
			e.name, len(h.decided), len(h.rejected), h.logs.Len(), decided, rejected, lines)
	}
	if large := len(e.variables) > 1<<20; large != (h.oversized == 1) {
		t.Errorf("%s: %d oversized jobs were counted", e.name, h.oversized)
	}
	if rejected == 0 {
		return
	}
	line, code := h.logs.All()[0], string(h.rejected[0])
	want := map[string]any{
		"event": "input_rejected", "rejection": code, "detail": h.reply.Failure.Message, "jobType": jobType,
		"jobKey": int64(2251799813685301), "processInstanceKey": int64(2251799813685200), "tenantId": "<default>",
	}
	got, named := line.ContextMap(), strings.HasPrefix(h.reply.Failure.Message, code+": ")
	if line.Level != zapcore.WarnLevel || !maps.Equal(got, want) || !named {
		t.Errorf("%s: logged as %s %v, want a warning %v", e.name, line.Level, got, want)
	}
}
