package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

// run asks the API about a bulk run and gives back what it answers.
func (r *service) run(t *testing.T, method, path, body string) (answer struct {
	ID, State, Token string
	Hold             *string
	Total, Ready     int64
	Counts           map[string]int64
}) {
	t.Helper()
	status, text := r.ask(t, method, "/api/v1/bulk-runs"+path, body)
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status >= 300 {
		t.Fatalf("%s %s: %d %s (%v)", method, path, status, text, err)
	}
	return answer
}

// A bulk run is planned, started, carried out and verified; a stop in between loses nothing, and an engine that is away is
// waited for.
func TestBulkRunOverHTTP(t *testing.T) {
	skipIfShort(t, "waits for what a run does each few seconds")
	leavesNothing(t)
	g := gateway.New(t, gateway.Options{})
	s := settings(t, g.Addr())
	r := serve(t, s)
	var reviews []int64
	for n := range 6 {
		_, review := r.dead(t, g, fmt.Sprintf("CLM-%d-1", n))
		reviews = append(reviews, review)
	}
	command := `"action":"retry","filter":{"policy":"tiss-submission","reason":"DUPLICATE_CLAIM"},"perMinute":120`
	plan := r.run(t, http.MethodPost, "/plan", "{"+command+"}")
	if plan.Total != 6 || plan.Ready != 6 || plan.Token == "" {
		t.Fatalf("the plan is %+v", plan)
	}
	id := r.run(t, http.MethodPost, "", fmt.Sprintf(`{%s,"reason":"senha corrigida","token":%q}`, command, plan.Token)).ID
	wait.Until(t, "one is decided", func() bool { return r.run(t, http.MethodGet, "/"+id, "").Counts["planned"] < 6 })
	g.Down()
	wait.Until(t, "it is held", func() bool {
		held := r.run(t, http.MethodGet, "/"+id, "")
		return held.State == "running" && held.Hold != nil && *held.Hold == "engine_down"
	})
	left := r.run(t, http.MethodGet, "/"+id, "").Counts["planned"]
	r.stop()
	r.returned(t, 5*time.Second)
	g.Up()
	r = serve(t, s)
	wait.Until(t, "the journal is open again", func() bool {
		status, _ := r.ask(t, http.MethodGet, "/api/v1/bulk-runs/"+id, "")
		return status != http.StatusServiceUnavailable
	})
	wait.Until(t, "it is done", func() bool { return r.run(t, http.MethodGet, "/"+id, "").State == "done" })
	wait.Until(t, "each process has it", func() bool {
		for _, review := range reviews {
			if j, _ := g.Job(review); j.State != gateway.Completed {
				return false
			}
		}
		return true
	})
	wait.Until(t, "and the run says so", func() bool { return r.run(t, http.MethodGet, "/"+id, "").Counts["taken"] == 6 })
	if left == 0 || !r.metric(t, fmt.Sprintf(`retry_worker_bulk_items_total{action="retry",outcome="decided"} %d`, left)) {
		t.Errorf("%d were left, and are not what this worker has decided on", left)
	}
	if lines := logged.with(t, "event", "bulk_run_done"); len(lines) != 1 || lines[0]["run"] != id || strings.Contains(fmt.Sprint(lines), "CLM-") {
		t.Errorf("the log says %v", lines)
	}
}
