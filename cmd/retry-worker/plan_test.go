package main

import (
	"testing"

	"retry-worker/internal/catalogue"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/golden"
)

// Each policy's picture is one file that stands for itself. The closed hours of a destination are shaded.
func TestPlanAsPicture(t *testing.T) {
	testkit.Environment(t, nil)
	all := map[string][]string{"christmas": {"--policy", "tiss-submission", "--destination", "unimed-sp",
		"--at", "2026-12-24T17:00:00-03:00", "--policies-file", "testdata/calendar.yaml"}}
	for _, policy := range catalogue.Default().Policies.Names() {
		all[policy] = []string{"--policy", policy}
	}
	all["job-queue"] = append(all["job-queue"], "--max-attempts", "4", "--delay-between-attempts", "PT30S")
	for name, args := range all {
		r := retryWorker(append([]string{"plan", "-o", "svg"}, args...)...).done(t)
		golden.Check(t, "testdata/plan/"+name+".svg", r.stdout)
	}
}
