package worker_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/zap/zapcore"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
	"retry-worker/internal/worker"
)

// example is one job of a golden file, which holds it beside its reply; its name says what is to be seen.
type example struct{ text, name, headers, variables string }

var asked = regexp.MustCompile(`(?m)^=== (.*)\nheaders   (.*)\nvariables (.*)\n`)

// examples are the jobs of a golden file. There ⏎ ends a line of a variable, and x*3000 is so many x.
func examples(t testing.TB, file string) (all []example) {
	t.Helper()
	plain := strings.NewReplacer("⏎", "\n", "x*3000", strings.Repeat("x", 3000), "x*1048576", strings.Repeat("x", 1<<20))
	for _, m := range asked.FindAllStringSubmatch(testkit.Read(t, "testdata/"+file+".golden"), -1) {
		all = append(all, example{m[0], m[1], m[2], plain.Replace(m[3])})
	}
	return all
}

// render writes a reply so that a person can judge it.
func render(r worker.Reply) string {
	switch r.Action {
	case worker.Completed:
		return fmt.Sprintf("--- completed\n%s\n\n", indented(r.Variables))
	case worker.Thrown:
		return fmt.Sprintf("--- bpmn_error %s: %s\n%s\n\n", r.Error.Code, r.Error.Message, indented(r.Error.Variables))
	default:
		return fmt.Sprintf("--- %s with %d retries, after %s\n%s\n\n", r.Action, r.Failure.Retries, r.Failure.Backoff, r.Failure.Message)
	}
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
	for jobType, file := range map[string]string{
		worker.AnalyzeRetry: "analysis", worker.RetrySubmissionBackoff: "analysis", worker.RecordRetryOutcome: "outcome",
	} {
		t.Run(jobType, func(t *testing.T) {
			got := ""
			for _, e := range examples(t, file) {
				h := handle(job(jobType, e.headers, e.variables))
				if file == "analysis" || h.reply.Action == worker.Failed {
					wantContract(t, h.reply)
				}
				h.wantReported(t, jobType, e)
				got += e.text + render(h.reply)
			}
			golden.Check(t, "testdata/"+file+".golden", got)
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
