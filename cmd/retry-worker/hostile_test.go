package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"retry-worker/internal/api"
	"retry-worker/internal/deadletter"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

// nasty is a text that acts on a terminal which shows it as it is.
const nasty = "<script>alert(1)</script>\x1b]0;owned\a\x1b[2J\u009b31m\u202egnp.exe\u2066\ufeff\u2028\r\nretry-worker: done\x7f"

// active reports whether printing a text does something else than showing it.
func active(s string) bool {
	return !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' || unicode.Is(unicode.Cf, r) || r == 0x2028
	})
}

// hostile are answers of the API that hold what is nasty wherever there is a text, by how their paths end.
func hostile() map[string]any {
	text, long := nasty, nasty+strings.Repeat("x", 1<<20)
	d := api.DeadLetter{ID: nasty, State: nasty, Outcome: nasty, Reason: nasty, ResponsibleTeam: nasty, Error: long, CreatedAt: nasty,
		Subject: api.SubjectName{Tenant: nasty, Policy: nasty, ID: nasty}, Process: nasty, Delivery: nasty, MatchedRule: &text, ErrorClassification: &text,
		Review: &api.Review{Decision: nasty, Reason: nasty, By: nasty, At: nasty, NextRetryTime: &text}}
	var filter api.Filter
	filter.Policy, filter.Fingerprint, filter.Query, filter.Since, filter.Until = nasty, nasty, nasty, nasty, nasty
	command := api.BulkCommand{Action: journal.BulkAction(nasty), When: nasty, PerMinute: 1, Filter: filter}
	run := api.BulkRun{ID: nasty, BulkCommand: command, Reason: nasty, By: nasty, State: journal.BulkDone, ChangedBy: &text, ChangedAt: &text,
		CreatedAt: nasty, EndedAt: &text, Total: 10, Counts: map[journal.BulkOutcome]int64{journal.BulkOutcome(nasty): 1, journal.BulkRefused: 5, journal.BulkTaken: 4}}
	group := api.DeadLetterGroup{Fingerprint: &text, Policy: nasty, Pattern: long, Count: 1, FirstSeen: nasty, LastSeen: nasty}
	return map[string]any{
		"/dead-letters": api.Page[api.DeadLetter]{Items: []api.DeadLetter{d}, Next: &text}, someID: d, "/retry": d,
		"/groups": api.Page[api.DeadLetterGroup]{Items: []api.DeadLetterGroup{group}, Next: &text},
		"/plan": api.BulkPlan{Token: "t", BulkCommand: command, Total: 10, Ready: 5, Oldest: &text, Newest: &text, Causes: []api.DeadLetterGroup{group},
			Refused: []deadletter.RefusedCount{{Code: journal.Code(nasty), Message: nasty, Count: 5}}, Tallies: []deadletter.ReadyCount{{Policy: nasty, Count: 5}}},
		"GET /bulk-runs": api.Page[api.BulkRun]{Items: []api.BulkRun{run}, Next: &text}, "/bulk-runs/" + someID: run, "": run,
		"/items": api.Page[api.BulkItem]{Items: []api.BulkItem{{Number: 1, DeadLetter: nasty, Subject: api.SubjectName{ID: nasty}, Outcome: journal.BulkOutcome(nasty), Code: &text, ChangedAt: nasty}}},
	}
}

// Whatever a server answers with, nothing of it acts on the terminal.
func TestHostileTextOnTheTerminal(t *testing.T) {
	answers, status := hostile(), http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		longest := ""
		for end := range answers {
			if strings.HasSuffix(r.Method+" "+strings.TrimPrefix(r.URL.Path, "/api/v1"), end) && len(end) > len(longest) {
				longest = end
			}
		}
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		answer := answers[longest]
		if status != http.StatusOK {
			answer = map[string]string{"error": nasty, "message": nasty + strings.Repeat("x", 1<<20)}
		}
		_ = e.Encode(answer)
	}))
	defer server.Close()
	testkit.Environment(t, map[string]string{"RETRY_WORKER_HTTP_ADDR": strings.TrimPrefix(server.URL, "http://"), "COLUMNS": "200"})
	for _, status = range []int{http.StatusOK, http.StatusConflict} {
		for _, command := range []string{"list", "show " + someID, "retry " + someID + " --reason x", "list -o json", "show " + someID + " -o json",
			"groups", "retry --filter all", "retry --filter all --reason x --yes", "runs list",
			"runs show " + someID, "runs items " + someID, "runs pause " + someID, "groups -o json", "runs list -o json", "retry --filter all --reason x --yes -o json"} {
			r := retryWorker(words(t, "dead-letters "+command)...)
			if active(r.stdout) || active(r.stderr) {
				t.Errorf("%s: something acts: %.600q %.300q", command, r.stdout, r.stderr)
			}
			if (r.code == exitDone) != (status == http.StatusOK) || strings.Contains(r.stdout+r.stderr, "\nretry-worker: done") {
				t.Errorf("%s: exit %d, %.300q", command, r.code, r.stderr)
			}
			if !strings.Contains(command, "json") && len(r.stdout)+len(r.stderr) > 40_000 {
				t.Errorf("%s prints %d bytes", command, len(r.stdout)+len(r.stderr))
			}
		}
	}
}
