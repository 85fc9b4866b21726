package scenarios

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/zeebe"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// What somebody does who has just found the worker, on a broker that has nothing yet: other scenarios come later, for they run
// side by side.
func TestNewcomerSeesDecisions(t *testing.T) {
	for _, version := range zeebe.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			f := openFixture(t, version, version)
			s := newScenario(t, f)
			log := logFile(t)
			w := harness.RunWorker(t, harness.Binary(t), harness.Settings(s.GatewayAddress(), t.TempDir(), s.protocol()...), log)
			t.Cleanup(func() { _ = w.Stop(context.Background(), harness.StopTime) })
			run := func(args ...string) (string, int) {
				return harness.RunCommand(t, harness.Binary(t), s.engine(), args...)
			}
			undeployed := regexp.MustCompile("(?m)^FAIL +process (SUB_06|WHATSAPP_MESSAGE|FAILED_JOB|JOB_QUEUE) +not deployed; run `retry-worker deploy`")
			if out, code := run("check"); code != 1 || len(undeployed.FindAllString(out, -1)) != 4 {
				t.Errorf("check before deploy: exit %d, expected 1 with four lines %s:\n%s", code, undeployed, out)
			}
			out, code := run("deploy")
			for _, process := range []string{"SUB_06", "WHATSAPP_MESSAGE", "FAILED_JOB", "JOB_QUEUE"} {
				if code != 0 || !strings.Contains(out, process+" version 1 deployed (") {
					t.Errorf("deploy: exit %d, expected 0 and %s version 1:\n%s", code, process, out)
				}
			}
			if out, code := run("check"); code != 0 || strings.Contains("\n"+out, "\nFAIL ") || !strings.Contains(out, "gateway "+version) {
				t.Errorf("check after deploy: exit %d, expected 0, no line FAIL and the gateway's version:\n%s", code, out)
			}
			out, code = run("demo", "--api-url", "http://"+w.API, "--clock-url", s.ActuatorURL(), "--worker-log", log.Name())
			if code != 0 {
				t.Fatalf("demo: exit %d, expected 0:\n%s", code, out)
			}
			s.expectDemo(out)
			testkit.Must(s.t, s.clock.Follow(t.Context()))
			s.done("a newcomer: check, deploy, demo", "4 processes, 70 samples, 65 ended, 5 incidents")
		})
	}
}

// expectDemo holds what the demo printed, and what the broker counted, against what the demo is to show.
func (s *scenario) expectDemo(out string) {
	s.t.Helper()
	told, summary, found := strings.Cut(out, "\nWhat became of them:\n")
	want, err := testdata.ReadFile("testdata/demo.txt")
	testkit.Must(s.t, err)
	if !found || strings.TrimSpace(summary) != strings.TrimSpace(string(want)) {
		s.t.Errorf("the demo sums up\n%s\nexpected\n%s", summary, want)
	}
	for _, want := range []string{
		"SUB_06: 50 claims; the demo plays ", "WHATSAPP_MESSAGE: 7 messages; the demo plays ", "FAILED_JOB: 5 jobs; the demo plays ", "JOB_QUEUE: 8 jobs ",
		"decided: Transient error, retry 1 of 5, in ", "decided: Unknown error, retry 1 of 5, in ", "decided: Transient error, retry 5 of 5, in ",
		"decided: Permanent error, not retried; goes to cadastro", "decided: Permanent error, not retried; goes to faturamento",
		"decided: Maximum of 5 retries reached; goes to faturamento",
		"rejected: " + string(decision.InvalidRetryCount),
		"rejected: " + string(decision.InvalidLastSubmissionTime), "rejected: " + string(decision.InvalidErrorMessage),
		"review by cadastro (dead letter ", "discarded", "accepted by the portal", "moves the clock 5 s ahead", " min ahead. ---",
		"decided: Transient error, retry 1 of 3, in ", "decided: Transient error, retry 2 of 3, in ", "decided: Transient error, retry 3 of 3, in 5 min, ", // TRD-0003
		"decided: Maximum of 3 retries reached; goes to atendimento", "decided: Permanent error, not retried; goes to atendimento",
		"decided: Unknown error, retry 3 of 3, in ", "decided: Maximum of 3 retries reached; goes to ti", // Retry Failed Job
		"dependencies open: 2; WAITING", "dependencies open: 1; WAITING", "no dependency open: PENDING", "review by ti (dead letter ", // UC-004
		"decided: Maximum of 0 retries reached; goes to ti", "decided: Permanent error, not retried; goes to ti",
	} {
		if !strings.Contains(told, want) {
			s.t.Errorf("the demo did not tell %q:\n%s", want, told)
		}
	}
	const rejected, completed = 5, 65
	var c counts
	wait.Until(s.t, fmt.Sprintf("%d incidents and %d ended processes", rejected, completed), func() bool {
		all, err := s.Counters(s.t.Context())
		testkit.Must(s.t, err)
		c = countsOf(all)
		return c["incidents pending"] == rejected && c["processes completed"] == completed
	}, func() string { return fmt.Sprint(c) })
}
