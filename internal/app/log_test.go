package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/grpclog"

	"retry-worker/internal/app"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

func analyze(claim, text string, count int) gateway.Job {
	return gateway.Job{Type: worker.AnalyzeRetry, Variables: variables(claim, text, count)}
}

func variables(claim, text string, count int) string {
	return fmt.Sprintf(`{"claimId":%q,"submissionError":%q,"retryCount":%d}`, claim, text, count)
}

// answerAtOnce gives every loop a job: the first poll is answered now and not after its time-out.
func answerAtOnce(g *gateway.Gateway) {
	for _, jobType := range []string{worker.AnalyzeRetry, worker.RetrySubmissionBackoff, worker.RecordRetryOutcome} {
		g.AddJob(gateway.Job{Type: jobType, Variables: variables("CLM-1-1", "TIMEOUT", 0)})
	}
}

// expectation is one job and the log line that its decision makes.
type expectation struct {
	jobType, claim, text string
	count                int
	fields               map[string]any // as JSON gives them back
}

func expectations() (all []expectation) {
	for jobType, scheduled := range map[string]string{ // R16
		worker.AnalyzeRetry: "retry_scheduled", worker.RetrySubmissionBackoff: "submission_retry_scheduled",
	} {
		id := func(kind string) string { return "CLM-" + strings.ToUpper(jobType) + "-" + kind + "-1" }
		all = append(all,
			expectation{jobType, id("TRANSIENT"), "TIMEOUT", 1, map[string]any{
				"event": scheduled, "level": "info", "message": "Transient error, retry 2 of 5", "errorClassification": "TRANSIENT",
				"matchedRule": "TIMEOUT", "retryCount": 2.0,
			}},
			expectation{jobType, id("UNKNOWN"), "something new", 0, map[string]any{
				"event": scheduled, "level": "warn", "message": "Unknown error, retry 1 of 5", "errorClassification": "UNKNOWN",
				"matchedRule": "", "retryCount": 1.0,
			}},
			expectation{jobType, id("PERMANENT"), "DUPLICATE_CLAIM", 2, map[string]any{
				"event": "permanent_error_detected", "level": "warn", "message": "Permanent error, not retried",
				"errorClassification": "PERMANENT", "matchedRule": "DUPLICATE_CLAIM", "retryCount": 2.0, "responsibleTeam": "faturamento",
			}},
			expectation{jobType, id("EXHAUSTED"), "503", 5, map[string]any{
				"event": "max_retries_exceeded", "level": "error", "message": "Maximum of 5 retries reached",
				"errorClassification": "TRANSIENT", "matchedRule": "503", "retryCount": 5.0, "responsibleTeam": "faturamento",
			}},
		)
	}
	return all
}

// RN-BIL-005 §13.4: one line a decision, with these fields.
func TestDecisionsAreLogged(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	wanted := expectations()
	for i := range wanted {
		w := &wanted[i]
		key := g.AddJob(gateway.Job{Type: w.jobType, Variables: variables(w.claim, w.text, w.count)})
		w.fields["jobKey"], w.fields["claimId"], w.fields["submissionError"] = float64(key), w.claim, w.text
		w.fields["maxRetries"], w.fields["retryPolicy"] = 5.0, "tiss-submission"
	}
	r := serve(t, settings(t, g.Addr()))
	settled(t, g, len(wanted))
	for _, w := range wanted {
		lines := logged.with(t, "claimId", w.claim)
		if len(lines) != 1 {
			t.Errorf("%s: %d log lines, want 1: %v", w.claim, len(lines), lines)
			continue
		}
		for field, want := range w.fields {
			if got := lines[0][field]; got != want {
				t.Errorf("%s: %s is %v, want %v", w.claim, field, got, want)
			}
		}
		checkTimes(t, lines[0])
	}
	for _, jobType := range []string{worker.AnalyzeRetry, worker.RetrySubmissionBackoff} {
		for action, n := range map[string]int{"completed": 2, "bpmn_error": 2, "failed": 0} {
			line := fmt.Sprintf(`retry_worker_jobs_total{action=%q,job_type=%q} %d`, action, jobType, n)
			wait.Until(t, line, func() bool { return r.metric(t, line) })
		}
	}
}

// checkTimes holds the times of a decision's line against one another.
func checkTimes(t *testing.T, line map[string]any) {
	t.Helper()
	at, err := time.Parse("2006-01-02T15:04:05.000Z", line["timestamp"].(string))
	if err != nil || time.Since(at) > time.Minute {
		t.Errorf("%v: timestamp %v, want now in UTC with milliseconds", line["claimId"], line["timestamp"])
	}
	took, ok := line["executionTimeMs"].(float64)
	if !ok || took < 0 || took > 10_000 {
		t.Errorf("%v: executionTimeMs %v", line["claimId"], line["executionTimeMs"])
	}
	minutes, retried := line["backoffMinutes"].(float64)
	if !retried {
		if _, ok := line["nextRetryTime"]; ok || line["responsibleTeam"] == nil {
			t.Errorf("%v: want a team and no next retry: %v", line["claimId"], line)
		}
		return
	}
	next, err := time.Parse("2006-01-02T15:04:05Z", line["nextRetryTime"].(string)) // R7: in whole seconds
	most := 2*time.Second + time.Duration(took)*time.Millisecond                    // the line comes after the decision
	if off := next.Sub(at) - time.Duration(minutes)*time.Minute; err != nil || off > time.Second || off < -most {
		t.Errorf("%v: nextRetryTime %v is not %v min after %v", line["claimId"], line["nextRetryTime"], minutes, at)
	}
}

// settled waits until n jobs are answered.
func settled(t *testing.T, g *gateway.Gateway, n int) {
	t.Helper()
	testkit.Must(t, g.WaitFor(wait.Context(t), func(c gateway.Counts) bool { return c.Settled == n }))
}

func TestRejectionsAreLogged(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	key := g.AddJob(gateway.Job{Type: worker.AnalyzeRetry, Variables: `{"claimId":"CLM-1-1","retryCount":2.5,"submissionError":"TIMEOUT"}`})
	r := serve(t, settings(t, g.Addr()))
	settled(t, g, 1)
	lines := logged.with(t, "event", "input_rejected")
	if len(lines) != 1 {
		t.Fatalf("%d lines, want 1:\n%s", len(lines), logged)
	}
	const detail = "INVALID_RETRY_COUNT: retryCount is 2.5, expected a whole number from 0 to 9223372036854775807, or none; " +
		"correct the variable and resolve the incident"
	for field, want := range map[string]any{
		"level": "warn", "rejection": "INVALID_RETRY_COUNT", "detail": detail, "jobType": "analyze-retry", "jobKey": float64(key),
	} {
		if got := lines[0][field]; got != want {
			t.Errorf("%s is %v, want %v", field, got, want)
		}
	}
	job, _ := g.Job(key)
	if job.State != gateway.Incident || job.Answers[0].Message != detail {
		t.Errorf("the job is %v with %q, want an incident that says the same", job.State, job.Answers[0].Message)
	}
	line := `retry_worker_rejected_inputs_total{job_type="analyze-retry",reason="INVALID_RETRY_COUNT"} 1`
	wait.Until(t, line, func() bool { return r.metric(t, line) })
}

// A line for each change of what the engine does, not for each poll.
func TestLossOfTheEngineIsLoggedOnce(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	answerAtOnce(g)
	r := serve(t, settings(t, g.Addr()))
	lost := func() int {
		return len(logged.with(t, "message", "engine does not answer polls; asking on with growing pauses (`retry-worker check` says more)"))
	}
	wait.Until(t, "ready", func() bool { return r.ready(t) && len(logged.with(t, "message", "engine answers polls")) == 5 })
	g.Down()
	wait.Until(t, "every loop has said so", func() bool { return lost() == 5 })
	g.Up()
	wait.Until(t, "every loop is back", func() bool {
		return len(logged.with(t, "message", "engine answers polls")) == 10
	})
	if n := lost(); n != 5 {
		t.Errorf("%d warnings for five loops, want 5:\n%s", n, logged)
	}
}

func TestStandardLibraryLogsTheSameWay(t *testing.T) {
	logged.empty()
	stdlog.Print("from somewhere else")
	if lines := logged.with(t, "message", "from somewhere else"); len(lines) != 1 {
		t.Errorf("got %q, want one JSON line", logged)
	}
}

// Of gRPC's own lines errors alone: the worker says itself that a connection failed.
func TestGRPCLogsTheSameWay(t *testing.T) {
	logged.empty()
	grpclog.Warning("a connection failed")
	grpclog.Error("a server that nobody expected")
	lines := logged.lines(t)
	if len(lines) != 1 || lines[0]["message"] != "a server that nobody expected" || lines[0]["level"] != "error" {
		t.Errorf("got %q, want one JSON line", logged)
	}
}

func TestLevelAndFormat(t *testing.T) {
	console.empty()
	sparse.Info("not this")
	sparse.Warn("but this", zap.String("field", "value"), zap.Duration("pause", 1500*time.Millisecond))
	fields := strings.Split(strings.TrimSpace(console.String()), "\t")
	if len(fields) != 4 || fields[1] != "warn" || fields[2] != "but this" {
		t.Fatalf("got %q, want time, level, message and fields on one line", console)
	}
	var rest map[string]string
	if err := json.Unmarshal([]byte(fields[3]), &rest); err != nil || rest["field"] != "value" || rest["pause"] != "1.5s" {
		t.Errorf("fields: got %q", fields[3])
	}
	if !strings.HasSuffix(fields[0], "Z") {
		t.Errorf("time: got %q, want UTC", fields[0])
	}
}

// TestLogHasNoSecrets: neither in errors and messages of others, nor in the paths of requests.
func TestLogHasNoSecrets(t *testing.T) {
	var out strings.Builder
	log := app.NewLogger(&out, zap.InfoLevel, "json").With(zap.NamedError("with", errors.New("senha=Abc1")))
	t.Cleanup(func() { app.NewLogger(io.Discard, zap.InfoLevel, "json") })
	log.Warn("not sent", zap.Error(errors.New("Post https://ana:Abc2@h/x: Authorization: Bearer Abc3")), zap.String("path", "/subjects/p/CLM-ana@h.com-Abc4"))
	stdlog.Print("client_secret=Abc5")
	if got := out.String(); strings.Contains(got, "Abc") || strings.Count(got, "[SECRET]") != 3 || strings.Count(got, "\n") != 2 {
		t.Errorf("logged %s", got)
	}
}
