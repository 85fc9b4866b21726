package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	stdlog "log"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

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

// TestUnreadSettingsAreLogged: whoever sets a name that nobody reads is told at the start.
func TestUnreadSettingsAreLogged(t *testing.T) {
	s := settings(t, gateway.New(t, gateway.Options{}).Addr())
	s.Unread = []string{"ZEEBE_GATEWAY_ADDRESS is set and not read"}
	serve(t, s)
	if lines := logged.with(t, "event", "setting_not_read"); len(lines) != 1 || lines[0]["message"] != s.Unread[0] || lines[0]["level"] != "warn" {
		t.Errorf("it is logged as %v", lines)
	}
}

// settled waits until n jobs are answered.
func settled(t *testing.T, g *gateway.Gateway, n int) {
	t.Helper()
	testkit.Must(t, g.WaitFor(wait.Context(t), func(c gateway.Counts) bool { return c.Settled == n }))
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

// stamped matches the beginning of a line in JSON: its instant is in UTC, with milliseconds.
var stamped = regexp.MustCompile(`^\{"level":"warn","timestamp":"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"`)

// TestLogHasNoSecrets: neither in errors and messages of others, nor in the paths of requests.
func TestLogHasNoSecrets(t *testing.T) {
	var out strings.Builder
	log := app.NewLogger(&out, zap.InfoLevel, "json")
	t.Cleanup(zap.RedirectStdLog(log))
	log = log.With(zap.NamedError("with", errors.New("senha=Abc1")))
	log.Warn("not sent", zap.Error(errors.New("Post https://ana:Abc2@h/x: Authorization: Bearer Abc3")), zap.String("path", "/subjects/p/CLM-ana@h.com-Abc4"))
	stdlog.Print("client_secret=Abc5")
	log.Warn("ours", zap.String("found", "whsec_Abc6Abc6Abc6Abc6Abc6Abc6"), zap.Error(errors.New("rwt_AbcdefAbcdefAbcdefAbcdef")))
	if got := out.String(); strings.Contains(got, "Abc") || strings.Count(got, "[SECRET]") != 6 || strings.Count(got, "\n") != 3 || !stamped.MatchString(got) {
		t.Errorf("logged %s", got)
	}
}
