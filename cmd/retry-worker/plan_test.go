package main

import (
	"encoding/xml"
	"strings"
	"testing"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/testkit/golden"
)

// Each policy's picture is one file that stands for itself.
func TestPlanAsPicture(t *testing.T) {
	environment(t, nil)
	for _, policy := range catalogue.Default().Policies.Names() {
		args := []string{"plan", "--policy", policy, "-o", "svg"}
		if policy == "job-queue" {
			args = append(args, "--max-attempts", "4", "--delay-between-attempts", "PT30S")
		}
		r := retryWorker(args...)
		if r.code != exitDone || r.stderr != "" {
			t.Errorf("%s: exit %d, %s", policy, r.code, r.stderr)
		}
		if err := xml.Unmarshal([]byte(r.stdout), new(struct{})); err != nil || !strings.HasPrefix(r.stdout, "<svg ") {
			t.Errorf("%s: no picture: %v", policy, err)
		}
		golden.Check(t, "testdata/plan/"+policy+".svg", r.stdout)
	}
}

// The closed hours of a destination are shaded.
func TestPlanOverChristmas(t *testing.T) {
	environment(t, nil)
	r := retryWorker("plan", "--policy", "tiss-submission", "--destination", "unimed-sp", "--at", "2026-12-24T17:00:00-03:00",
		"--policies-file", "testdata/calendar.yaml", "-o", "svg")
	if err := xml.Unmarshal([]byte(r.stdout), new(struct{})); err != nil || r.code != exitDone {
		t.Errorf("no picture: %v, exit %d, %s", err, r.code, r.stderr)
	}
	golden.Check(t, "testdata/plan/christmas.svg", r.stdout)
}

// R13, R14, R15 and R5 as `plan` tells them: the waits in seconds, earliest, nominal and latest.
func TestPlanAgreesWithTheSpecification(t *testing.T) {
	environment(t, nil)
	for policy, want := range map[string][][3]float64{
		"tiss-submission":  {{300, 300, 360}, {480, 600, 720}, {960, 1200, 1440}, {1920, 2400, 2880}, {3840, 4800, 5760}},
		"whatsapp-message": {{5, 5, 5}, {30, 30, 30}, {300, 300, 300}},
		"failed-job":       {{1, 1, 1}, {5, 5, 5}, {25, 25, 25}},
		"job-queue":        {},
		"no-retry":         {},
	} {
		o := retryWorker("plan", "--policy", policy, "-o", "json").object(t)
		all, _ := o["plans"].([]any)
		p, _ := all[0].(map[string]any)
		retries, _ := p["retries"].([]any)
		if len(all) != 1 || p["policy"] != policy || len(retries) != len(want) || o["catalogue"] != catalogue.Default().Version {
			t.Errorf("%s: got %v", policy, o)
			continue
		}
		for i, retry := range retries {
			wait, _ := retry.(map[string]any)["wait"].(map[string]any)
			if got := [3]any{wait["earliest"], wait["nominal"], wait["latest"]}; got != [3]any{want[i][0], want[i][1], want[i][2]} {
				t.Errorf("%s, retry %d: waits %v, want %v", policy, i+1, got, want[i])
			}
		}
	}
}
