package console_test

import (
	"net/http"
	"strings"
	"testing"

	"retry-worker/internal/journal"
)

// TestBulkRefused is everything that the API must refuse, with the exact codes; nothing is started by it.
func TestBulkRefused(t *testing.T) {
	c := openClinic(t)
	plan := func(fields string) string { return `{"action":"retry","filter":{},` + fields + `}` }
	start := func(fields string) string {
		return `{"action":"retry","filter":{},"reason":"x","token":"` + herdToken + `"` + fields + `}`
	}
	for _, tt := range []struct {
		who, path, body string // no body: a GET
		status          int
		code            string
	}{
		{"vera", "/bulk-runs/plan", `{"action":"retry"}`, 422, "invalid_filter"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":null}`, 422, "invalid_filter"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":"all"}`, 422, "invalid_filter"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":[]}`, 422, "invalid_filter"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"state":"open"}}`, 422, "unknown_field"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"Team":"ti"}}`, 422, "unknown_field"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"team":["ti"]}}`, 422, "invalid_team"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"policy":"\u0000"}}`, 422, "invalid_policy"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"fingerprint":"\u001b[2J"}}`, 422, "invalid_fingerprint"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"q":"` + strings.Repeat("x", 1001) + `"}}`, 422, "invalid_q"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"reason":1}}`, 422, "invalid_reason"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"since":"yesterday"}}`, 422, "invalid_since"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"since":"2026-03-01"}}`, 422, "invalid_since"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"until":"9999-12-31T23:59:59Z"}}`, 422, "invalid_until"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"until":1772438400}}`, 422, "invalid_until"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"since":"2026-03-02T00:00:00Z","until":"2026-03-01T00:00:00Z"}}`, 422, "invalid_period"},
		{"vera", "/bulk-runs/plan", `{"filter":{}}`, 422, "invalid_action"},
		{"vera", "/bulk-runs/plan", `{"action":"delete","filter":{}}`, 422, "invalid_action"},
		{"vera", "/bulk-runs/plan", `{"action":7,"filter":{}}`, 422, "invalid_action"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":0`), 422, "invalid_pace"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":-1`), 422, "invalid_pace"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":6001`), 422, "invalid_pace"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":1e308`), 422, "invalid_pace"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":1e999`), 422, "invalid_pace"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":59.5`), 422, "invalid_pace"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":"60"`), 422, "invalid_pace"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":"NaN"`), 422, "invalid_pace"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":NaN`), 400, "invalid_json"},
		{"vera", "/bulk-runs/plan", plan(`"forceRetry":1`), 422, "invalid_force_retry"},
		{"vera", "/bulk-runs/plan", plan(`"fresh":true`), 422, "force_required"},
		{"vera", "/bulk-runs/plan", plan(`"when":1`), 422, "invalid_when"},
		{"vera", "/bulk-runs/plan", plan(`"reason":"x"`), 422, "unknown_field"},
		{"vera", "/bulk-runs/plan", plan(`"token":"x"`), 422, "unknown_field"},
		{"vera", "/bulk-runs/plan", plan(`"by":"maria"`), 422, "unknown_field"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{`, 400, "invalid_json"},
		{"vera", "/bulk-runs/plan", `[]`, 400, "invalid_json"},
		{"vera", "/bulk-runs/plan", `null`, 400, "invalid_json"},
		{"vera", "/bulk-runs/plan", plan(`"when":"` + strings.Repeat("x", 1<<17) + `"`), 413, "body_too_large"},

		{"ada", "/bulk-runs", `{"action":"retry","filter":{},"reason":"x"}`, 422, "invalid_plan"},
		{"ada", "/bulk-runs", `{"action":"retry","filter":{},"reason":"x","token":""}`, 422, "invalid_plan"},
		{"ada", "/bulk-runs", `{"action":"retry","filter":{},"reason":"x","token":7}`, 422, "invalid_plan"},
		{"ada", "/bulk-runs", `{"action":"retry","filter":{},"reason":"x","token":"../../x"}`, 422, "invalid_plan"},
		{"ada", "/bulk-runs", `{"action":"retry","filter":{},"reason":"x","token":"` + strings.Repeat("a", 60_000) + `"}`, 422, "invalid_plan"},
		{"ada", "/bulk-runs", `{"action":"retry","filter":{},"reason":"\u200b","token":"` + herdToken + `"}`, 422, "reason_required"},
		{"ada", "/bulk-runs", `{"action":"retry","filter":{},"token":"` + herdToken + `"}`, 422, "reason_required"},
		{"ada", "/bulk-runs", `{"action":"retry","reason":"x","token":"` + herdToken + `"}`, 422, "invalid_filter"},
		{"ada", "/bulk-runs", `{"action":"retry","filter":{"team":"nobody"},"reason":"x","token":"` + herdToken + `"}`, 422, "nothing_to_do"},
		{"ada", "/bulk-runs", start(`,"by":"maria"`), 422, "unknown_field"},
		{"ada", "/bulk-runs", start(`,"perMinute":1e9`), 422, "invalid_pace"},
		{"ada", "/bulk-runs", start(`,"when":"` + strings.Repeat("x", 1<<17) + `"`), 413, "body_too_large"},

		{"vera", "/bulk-runs?limit=0", "", 422, "invalid_limit"},
		{"vera", "/bulk-runs?limit=201", "", 422, "invalid_limit"},
		{"vera", "/bulk-runs?cursor=x", "", 422, "invalid_cursor"},
		{"vera", "/bulk-runs?cursor=" + anID, "", 422, "invalid_cursor"},
		{"vera", "/bulk-runs?state=done", "", 422, "unknown_parameter"},
		{"vera", "/bulk-runs/" + anID, "", 404, "run_not_found"},
		{"vera", "/bulk-runs/..%2F..", "", 404, "run_not_found"},
		{"vera", "/bulk-runs/%00", "", 404, "run_not_found"},
		{"vera", "/bulk-runs/' OR 1=1 --", "", 404, "run_not_found"},
		{"vera", "/bulk-runs/" + anID + "/items", "", 404, "run_not_found"},
		{"vera", "/bulk-runs/" + aRun + "/items?outcome=lost", "", 422, "invalid_outcome"},
		{"vera", "/bulk-runs/" + aRun + "/items?outcome=REFUSED", "", 422, "invalid_outcome"},
		{"vera", "/bulk-runs/" + aRun + "/items?after=-1", "", 422, "invalid_after"},
		{"vera", "/bulk-runs/" + aRun + "/items?after=1e3", "", 422, "invalid_after"},
		{"vera", "/bulk-runs/" + aRun + "/items?after=9223372036854775808", "", 422, "invalid_after"},
		{"vera", "/bulk-runs/" + aRun + "/items?cursor=x", "", 422, "unknown_parameter"},
		{"vera", "/bulk-runs/" + aRun + "/items?limit=1&limit=2", "", 422, "invalid_parameter"},

		{"ada", "/bulk-runs/" + anID + "/pause", `{}`, 404, "run_not_found"},
		{"ada", "/bulk-runs/" + aPaused + "/pause", `{}`, 409, "invalid_run_state"},
		{"ada", "/bulk-runs/" + aRun + "/resume", `{}`, 409, "invalid_run_state"},
		{"ada", "/bulk-runs/" + aDone + "/cancel", `{}`, 409, "invalid_run_state"},
		{"ada", "/bulk-runs/" + aRun + "/cancel", `{"reason":"x"}`, 422, "unknown_field"},
		{"ada", "/bulk-runs/" + aRun + "/cancel", `x`, 400, "invalid_json"},

		{"vera", "/dead-letters/groups?since=2026-03-01T00:00:00Z", "", 422, "unknown_parameter"},
		{"vera", "/dead-letters/groups?state=closed", "", 422, "invalid_state"},
		{"vera", "/dead-letters/groups?cursor=x", "", 422, "invalid_cursor"},
		{"vera", "/dead-letters/groups?limit=0", "", 422, "invalid_limit"},
		{"vera", "/dead-letters/groups?fingerprint=%00", "", 422, "invalid_fingerprint"},
		{"vera", "/dead-letters?since=2026-03-01", "", 422, "invalid_since"},
		{"vera", "/dead-letters?since=2026-03-01T00:00:00+03:00", "", 422, "invalid_since"}, // + is a blank here
		{"vera", "/dead-letters?until=now", "", 422, "invalid_until"},

		{"vera", "/bulk-runs", start(""), 403, "forbidden_role"},
		{"otto", "/bulk-runs", start(""), 403, "forbidden_role"},
		{"otto", "/bulk-runs/" + aRun + "/pause", `{}`, 403, "forbidden_role"},
		{"otto", "/bulk-runs/" + aPaused + "/resume", `{}`, 403, "forbidden_role"},
		{"otto", "/bulk-runs/" + aRun + "/cancel", `{}`, 403, "forbidden_role"},
		{"vera", "/bulk-runs/" + aRun + "/cancel", `{}`, 403, "forbidden_role"},
	} {
		ask := func() answer { return c.post(tt.who, tt.path, tt.body) }
		if tt.body == "" {
			ask = func() answer { return c.get(tt.who, strings.ReplaceAll(tt.path, " ", "%20")) }
		}
		a := ask()
		a.refused(t, tt.who+" "+short(tt.path)+" "+short(tt.body), tt.status, tt.code)
	}
	if n := len(c.herd.runs); n != 3 || c.herd.runs[aRun].State != journal.BulkRunning || c.herd.runs[aPaused].State != journal.BulkPaused {
		t.Errorf("then there are %d runs: %+v", n, c.herd.runs[aRun])
	}
	c.post("ada", "/bulk-runs", start(""))
	a := c.post("ada", "/bulk-runs", start(""))
	a.refused(t, "a plan that no longer matches", http.StatusConflict, "plan_outdated")
	if text := a.body["message"].(string); !strings.Contains(text, "10 were planned, 9 are there now") {
		t.Errorf("it does not say what changed: %s", text)
	}
}

// An address that is spelled out is not taken for another's {id}, whatever the method.
func TestBulkMethods(t *testing.T) {
	c := openClinic(t)
	for _, tt := range []struct{ method, path, allowed string }{
		{"GET", "/bulk-runs/plan", "POST"}, {"DELETE", "/bulk-runs/plan", "POST"}, {"PUT", "/bulk-runs", "GET, HEAD, POST"}, {"POST", "/bulk-runs/" + aRun, "GET, HEAD"},
		{"POST", "/dead-letters/groups", "GET, HEAD"}, {"GET", "/bulk-runs/" + aRun + "/cancel", "POST"}, {"DELETE", "/bulk-runs/" + aRun, "GET, HEAD"},
	} {
		a := ask(t, tt.method, c.url+tt.path, "{}", c.as("ada"), header("Content-Type", "application/json"))
		a.refused(t, tt.method+" "+tt.path, http.StatusMethodNotAllowed, "method_not_allowed")
		if got := a.header.Get("Allow"); got != tt.allowed {
			t.Errorf("%s %s: Allow is %q, want %q", tt.method, tt.path, got, tt.allowed)
		}
	}
}
