package main

import (
	"encoding/xml"
	"strings"
	"testing"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// Each policy's picture is one file that stands for itself.
func TestPlanAsPicture(t *testing.T) {
	testkit.Environment(t, nil)
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
	testkit.Environment(t, nil)
	r := retryWorker("plan", "--policy", "tiss-submission", "--destination", "unimed-sp", "--at", "2026-12-24T17:00:00-03:00",
		"--policies-file", "testdata/calendar.yaml", "-o", "svg")
	if err := xml.Unmarshal([]byte(r.stdout), new(struct{})); err != nil || r.code != exitDone {
		t.Errorf("no picture: %v, exit %d, %s", err, r.code, r.stderr)
	}
	golden.Check(t, "testdata/plan/christmas.svg", r.stdout)
}
