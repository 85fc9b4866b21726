package scenarios

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/engine"
	"retry-worker/internal/decision"
)

// demoTime bounds the demo, which takes some 20 s.
const demoTime = 3 * time.Minute

// What somebody does who has just found the worker, on a broker that has nothing yet.
func TestNewcomerSeesDecisions(t *testing.T) {
	for _, version := range engine.Versions {
		t.Run(version, func(t *testing.T) {
			site := startSite(t, version)
			t.Cleanup(func() {
				if err := site.close(); err != nil {
					t.Error(err)
				}
			})
			s := begin(t, site)
			site.worker = serve(t, s.Broker, "newcomer")
			const undeployed = "FAIL  process SUB_06     not deployed; run `retry-worker deploy`"
			if out, code := once(t, s.Broker, enough, "check"); code != 1 || !strings.Contains(out, undeployed) {
				t.Errorf("check before deploy: exit %d, expected 1 with the line %q:\n%s", code, undeployed, out)
			}
			if out, code := once(t, s.Broker, enough, "deploy"); code != 0 || !strings.HasPrefix(out, "SUB_06 version 1 deployed (") {
				t.Errorf("deploy: exit %d, expected 0 and SUB_06 version 1:\n%s", code, out)
			}
			if out, code := once(t, s.Broker, enough, "check"); code != 0 || strings.Contains(out, "FAIL") || !strings.Contains(out, "gateway "+version) {
				t.Errorf("check after deploy: exit %d, expected 0, no FAIL and the gateway's version:\n%s", code, out)
			}
			out, code := once(t, s.Broker, demoTime, "demo", "--clock-url", s.ActuatorURL(), "--worker-log", s.worker.log.path)
			if code != 0 {
				t.Fatalf("demo: exit %d, expected 0:\n%s", code, out)
			}
			s.expectDemo(out)
			s.done("a newcomer: check, deploy, demo", "30 claims, 25 ended, 5 incidents")
		})
	}
}

// sampleClaims are the demo's claims, by kind.
var sampleClaims = map[string]int{"accepted": 3, "transient": 6, "unknown": 5, "permanent": 6, "exhausted": 5, "rejected": 5}

var summaryLine = regexp.MustCompile(`^ +(\d+) (\w+) +\S`)

// expectDemo holds what the demo printed, and what the broker counted, against what the demo is to show.
func (s *scene) expectDemo(out string) {
	s.t.Helper()
	told, summary, found := strings.Cut(out, "What became of the 30 claims:\n\n")
	if !found {
		s.t.Fatalf("the demo printed no summary:\n%s", out)
	}
	ended := make(map[string]int)
	for line := range strings.Lines(summary) {
		m := summaryLine.FindStringSubmatch(line)
		if m == nil {
			s.t.Errorf("after the summary the demo printed %q, expected nothing else", line)
			continue
		}
		n, _ := strconv.Atoi(m[1]) // digits only
		ended[m[2]] += n
	}
	if fmt.Sprint(ended) != fmt.Sprint(sampleClaims) {
		s.t.Errorf("claims that ended, by kind: %v, expected %v\n%s", ended, sampleClaims, summary)
	}
	for _, want := range []string{
		"decided: Transient error, retry 1 of 5, in ", "decided: Unknown error, retry 1 of 5, in ", "decided: Transient error, retry 5 of 5, in ",
		"decided: Permanent error, not retried; goes to cadastro", "decided: Permanent error, not retried; goes to faturamento",
		"decided: Maximum of 5 retries reached; goes to faturamento",
		"rejected: " + string(decision.InvalidClaimID), "rejected: " + string(decision.InvalidRetryCount),
		"rejected: " + string(decision.InvalidLastSubmissionTime), "rejected: " + string(decision.InvalidErrorMessage),
		"review by cadastro (dead letter ", "discarded", "accepted by the portal", "moves the broker's own clock",
	} {
		if !strings.Contains(told, want) {
			s.t.Errorf("the demo did not tell %q:\n%s", want, told)
		}
	}
	const rejected, completed = 5, 25
	s.eventually(func() bool {
		c := since(s.before, s.counters())
		return c["incidents pending"] == rejected && c["processes completed"] == completed
	})
	if c := since(s.before, s.counters()); c["incidents pending"] != rejected || c["processes completed"] != completed {
		s.t.Errorf("the broker has %d incidents and %d ended processes, expected %d and %d", c["incidents pending"], c["processes completed"], rejected, completed)
	}
}
