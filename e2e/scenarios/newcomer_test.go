package scenarios

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// What somebody does who has just found the worker, on an engine that has nothing yet.
func TestNewcomerSeesDecisions(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{byGRPC, byREST} {
		t.Run(protocol, func(t *testing.T) {
			s := onProcesses(t, protocol)
			w := harness.StartWorker(t, harness.Binary(t), harness.Settings(s.GatewayAddress(), t.TempDir(), s.environment()...))
			run := func(args ...string) (string, int) {
				return harness.RunCommand(t, harness.Binary(t), s.environment(), args...)
			}
			out, code := run("deploy", "-o", "json")
			for _, process := range []string{"SUB_06", "WHATSAPP_MESSAGE", "FAILED_JOB", "JOB_QUEUE"} {
				if code != 0 || !strings.Contains(out, `{"process":"`+process+`","version":1,`) {
					t.Errorf("deploy: exit %d, expected 0 and %s version 1:\n%s", code, process, out)
				}
			}
			if out, code := run("check"); code != 0 || strings.Contains("\n"+out, "\nFAIL ") || !strings.Contains(out, "gateway 8.8") {
				t.Errorf("check: exit %d, expected 0, no line FAIL and the gateway's version:\n%s", code, out)
			}
			dev, err := harness.DevBinary()
			testkit.Must(t, err)
			out, code = harness.RunCommand(t, dev, s.environment(), "--samples-only", "--api-url", "http://"+w.API, "--clock-url", s.ControlURL())
			if code != 0 {
				t.Fatalf("the samples: exit %d, expected 0:\n%s", code, out)
			}
			s.expectDemo(out, w)
			s.done("a newcomer: check, deploy, demo", "4 processes, 72 samples, 67 ended, 5 incidents")
		})
	}
}

var demoID = regexp.MustCompile(`\bDEMO-\d+`)

// expectDemo holds what the demo printed, the worker logged and the engine counted against what the demo is to show.
func (s *processes) expectDemo(out string, w *harness.Worker) {
	s.t.Helper()
	told, summary, found := strings.Cut(out, "\nWhat became of them:\n")
	want, err := testdata.ReadFile("testdata/demo.txt")
	testkit.Must(s.t, err)
	summary = demoID.ReplaceAllString(summary, "DEMO-N")
	if !found || strings.TrimSpace(summary) != strings.TrimSpace(string(want)) {
		s.t.Errorf("the demo sums up\n%s\nexpected\n%s", summary, want)
	}
	for _, want := range []string{
		"SUB_06: 52 claims; the demo plays ", "WHATSAPP_MESSAGE: 7 messages; the demo plays ", "FAILED_JOB: 5 jobs; the demo plays ", "JOB_QUEUE: 8 jobs ",
		"review by cadastro (dead letter ", "discarded", "accepted by the portal", "moves the clock 5 s ahead", " min ahead. ---",
		"\n\nSUB_06: claims\n  CLM-",
		"dependencies open: 2; WAITING", "dependencies open: 1; WAITING", "no dependency open: PENDING", "review by ti (dead letter ", // UC-004
	} {
		if !strings.Contains(told, want) {
			s.t.Errorf("the demo did not tell %q:\n%s", want, told)
		}
	}
	for _, want := range []string{
		"Transient error, retry 1 of 5", "Unknown error, retry 1 of 5", "Transient error, retry 5 of 5", "Permanent error, not retried",
		"Maximum of 5 retries reached", string(decision.InvalidRetryCount), string(decision.InvalidLastSubmissionTime), string(decision.InvalidErrorMessage),
		"Transient error, retry 3 of 3", "Maximum of 3 retries reached", // TRD-0003
		"Unknown error, retry 3 of 3",  // Retry Failed Job
		"Maximum of 0 retries reached", // UC-004
	} {
		wait.Until(s.t, "the worker's log to have "+want, func() bool { return strings.Contains(w.Log.Text(), want) })
	}
	const rejected, completed = 5, 67
	var c counts
	wait.Until(s.t, fmt.Sprintf("%d incidents and %d ended processes", rejected, completed), func() bool {
		all, err := s.Counters(s.t.Context())
		testkit.Must(s.t, err)
		c = countsOf(all)
		return c["incidents pending"] == rejected && c["processes completed"] == completed
	}, func() string { return fmt.Sprint(c) })
}
