package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/bulk"
	"retry-worker/internal/console"
	"retry-worker/internal/decision"
	"retry-worker/internal/review"
)

// openRealClinic plans and starts runs as the worker does; nobody carries them out.
func openRealClinic(t *testing.T) *clinic {
	t.Helper()
	c := openClinic(t)
	policies, clock := func() decision.Policies { return c.policies }, func() time.Time { return c.now }
	up := func() time.Time { return now.Add(-time.Hour) }
	letters := review.New(c.store, c.journal, policies, clock, up)
	c.api.Open(console.Journal{Reader: c.store, Recorder: c.journal, DeadLetters: letters, Groups: letters, Bulk: bulk.New(c.store, c.journal, policies, clock, up)})
	return c
}

// planned is the token of a plan.
func (c *clinic) planned(fields string) string {
	c.t.Helper()
	a := c.post("vera", "/bulk-runs/plan", "{"+fields+"}")
	token, _ := a.body["token"].(string)
	if a.status != http.StatusOK || token == "" {
		c.t.Fatalf("%s: got %d %s", fields, a.status, a.text)
	}
	return token
}

// start is the answer to a start with that token.
func (c *clinic) start(fields, token string) answer {
	c.t.Helper()
	return c.post("ada", "/bulk-runs", "{"+fields+`,"reason":"x","token":"`+token+`"}`)
}

// A plan's token starts that very command, and nothing else.
func TestPlanTokens(t *testing.T) {
	c := openRealClinic(t)
	for n := range 5 {
		c.permanent(fmt.Sprintf("CLM-%03d-1", n))
	}
	const command = `"action":"retry","filter":{"team":"faturamento"},"perMinute":60`
	token := c.planned(command)
	other := c.planned(`"action":"discard","filter":{"team":"faturamento"},"perMinute":60`)
	last := token[len(token)-1:]
	for what, tt := range map[string]struct{ command, token string }{
		"another team":    {strings.Replace(command, "faturamento", "cadastro", 1), token},
		"no team":         {`"action":"retry","filter":{},"perMinute":60`, token},
		"a period":        {strings.Replace(command, `"}`, `","until":"2026-03-03T00:00:00Z"}`, 1), token},
		"another action":  {strings.Replace(command, "retry", "discard", 1), token},
		"another pace":    {strings.Replace(command, ":60", ":61", 1), token},
		"forced":          {command + `,"forceRetry":true`, token},
		"now":             {command + `,"when":"now"`, token},
		"another's token": {command, other},
		"a cut token":     {command, token[:len(token)-1]},
		"a longer token":  {command, token + last},
		"twice the token": {command, token + token},
		"no token":        {command, "x"},
		"a NUL":           {command, `\u0000`},
		"an id":           {command, anID},
	} {
		a := c.start(tt.command, tt.token)
		a.refused(t, what, http.StatusUnprocessableEntity, "invalid_plan")
	}
	if a := c.get("vera", "/bulk-runs"); a.text != `{"items":[],"next":null}`+"\n" {
		t.Errorf("there are runs: %s", a.text)
	}
	if a := c.start(command, token); a.status != http.StatusCreated || a.body["state"] != "preparing" || a.body["by"] != "ada" {
		t.Errorf("the very command: got %d %s", a.status, a.text)
	}
}

// A plan that no longer matches what is there says so, with the numbers; what came since is no reason.
func TestPlanOutdated(t *testing.T) {
	c := openRealClinic(t)
	gone := c.permanent("CLM-001-1")
	c.permanent("CLM-002-1")
	const command = `"action":"retry","filter":{}`
	first, second := c.planned(command), ""
	c.permanent("CLM-003-1")
	if a := c.post("otto", "/dead-letters/"+gone+"/discard", `{"reason":"x"}`); a.status != http.StatusOK {
		t.Fatalf("got %d %s", a.status, a.text)
	}
	a := c.start(command, first)
	a.refused(t, "one is gone", http.StatusConflict, "plan_outdated")
	if message := a.body["message"].(string); !strings.HasPrefix(message, "2 dead letters were planned, 1 of those are open now") || !strings.Contains(message, "1 came since") {
		t.Errorf("it says %s", message)
	}
	second = c.planned(command)
	c.permanent("CLM-004-1")
	if a := c.start(command, second); a.status != http.StatusCreated {
		t.Errorf("one came since: got %d %s", a.status, a.text)
	}
}

// What nothing would come of is planned, and not started; each says why.
func TestNothingToDo(t *testing.T) {
	c := openRealClinic(t)
	c.exhausted("CLM-001-1")
	for fields, want := range map[string]string{
		`"action":"retry","filter":{"team":"cadastro"}`: "no open dead letter", `"action":"retry","filter":{}`: "max_retries_exceeded",
	} {
		a := c.start(fields, c.planned(fields))
		a.refused(t, fields, http.StatusUnprocessableEntity, "nothing_to_do")
		if message := a.body["message"].(string); !strings.Contains(message, want) {
			t.Errorf("%s: it says %s", fields, message)
		}
	}
	const forced = `"action":"retry","filter":{},"forceRetry":true`
	if a := c.start(forced, c.planned(forced)); a.status != http.StatusCreated {
		t.Errorf("forced: got %d %s", a.status, a.text)
	}
}

// The service's own refusals come with the codes that are described.
func TestBulkRefusedInTruth(t *testing.T) {
	c := openRealClinic(t)
	c.permanent("CLM-001-1")
	const command = `"action":"retry","filter":{}`
	run := c.start(command, c.planned(command)).body["id"].(string)
	for _, tt := range []struct {
		path, body string
		status     int
		code       string
	}{
		{"/bulk-runs/plan", `{"filter":{}}`, 422, "invalid_action"},
		{"/bulk-runs/plan", `{"action":"purge","filter":{}}`, 422, "invalid_action"},
		{"/bulk-runs/plan", `{"action":"retry","filter":{},"when":"later"}`, 422, "invalid_when"},
		{"/bulk-runs/plan", `{"action":"retry","filter":{},"fresh":true}`, 422, "force_required"},
		{"/bulk-runs/plan", `{"action":"retry","filter":{"reason":"LUCK"}}`, 422, "invalid_reason"},
		{"/bulk-runs/plan", `{"action":"retry","filter":{"fingerprint":"' OR 1=1"}}`, 422, "invalid_fingerprint"},
		{"/bulk-runs/plan", `{"action":"retry","filter":{"q":"` + strings.Repeat("x", 201) + `"}}`, 422, "invalid_query"},
		{"/bulk-runs/plan", `{"action":"retry","filter":{"since":"2026-03-02T00:00:00Z","until":"2026-03-02T00:00:00Z"}}`, 422, "invalid_period"},
		{"/bulk-runs", `{"action":"retry","filter":{},"reason":"` + strings.Repeat("é", 501) + `","token":"` + c.planned(command) + `"}`, 422, "reason_too_long"},
		{"/bulk-runs/" + run + "/resume", `{}`, 409, "invalid_run_state"},
		{"/bulk-runs/" + strings.ToUpper(run) + "/pause", `{}`, 200, ""},
		{"/bulk-runs/" + run + "/pause", `{}`, 409, "invalid_run_state"},
		{"/bulk-runs/" + run + "/cancel", `{}`, 200, ""},
		{"/bulk-runs/" + run + "/cancel", `{}`, 409, "invalid_run_state"},
		{"/bulk-runs/" + anID + "/cancel", `{}`, 404, "run_not_found"},
		{"/bulk-runs/x/cancel", `{}`, 404, "run_not_found"},
		{"/bulk-runs/x", "", 404, "run_not_found"},
		{"/bulk-runs/" + anID + "/items", "", 404, "run_not_found"},
		{"/bulk-runs?cursor=x", "", 422, "invalid_cursor"},
		{"/bulk-runs?cursor=" + strings.Repeat("A", 900), "", 422, "invalid_cursor"},
		{"/dead-letters/groups?cursor=x", "", 422, "invalid_cursor"},
		{"/dead-letters/groups?fingerprint=zz", "", 422, "invalid_fingerprint"},
		{"/dead-letters?fingerprint=F1", "", 422, "invalid_fingerprint"},
		{"/dead-letters?since=2026-03-02T00:00:00Z&until=2026-03-01T00:00:00Z", "", 422, "invalid_period"},
	} {
		a := answer{}
		if tt.body == "" {
			a = c.get("vera", tt.path)
		} else {
			a = c.post("ada", tt.path, tt.body)
		}
		if tt.code == "" {
			if a.status != tt.status {
				t.Errorf("%s: got %d %s", tt.path, a.status, a.text)
			}
			continue
		}
		a.refused(t, short(tt.path)+" "+short(tt.body), tt.status, tt.code)
	}
}

// Filters of the list and of groups in truth.
func TestDeadLettersByCauseAndAge(t *testing.T) {
	c := openRealClinic(t)
	old := c.permanent("CLM-001-1")
	c.now = now.Add(time.Hour)
	recent, wrong := c.permanent("CLM-002-1"), c.letter("CLM-003-1", "INVALID_PATIENT_DATA: no name", 0)
	cause := c.get("vera", "/dead-letters/"+old).body["fingerprint"].(string)
	for query, want := range map[string][]string{
		"fingerprint=" + cause:                                      {recent, old},
		"since=2026-03-02T10:30:00Z":                                {wrong, recent},
		"since=2026-03-02T11:00:00Z":                                {wrong, recent},
		"until=2026-03-02T11:00:00Z":                                {old},
		"until=2026-03-02T08:00:00-03:00":                           {old},
		"fingerprint=" + cause + "&since=2026-03-02T10:30:00Z":      {recent},
		"since=2026-03-02T11:00:00.001Z":                            nil,
		"limit=1&fingerprint=" + cause + "&state=all&since=&until=": {recent, old},
	} {
		if got := c.list(query); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: got %v, want %v", query, got, want)
		}
	}
	groups := c.get("vera", "/dead-letters/groups").body["items"].([]any)
	first := groups[0].(map[string]any)
	if len(groups) != 2 || first["fingerprint"] != cause || first["count"] != 2.0 || first["sample"].(map[string]any)["id"] != recent ||
		first["firstSeen"] != "2026-03-02T10:00:00Z" || first["lastSeen"] != "2026-03-02T11:00:00Z" {
		t.Errorf("the groups are %v", groups)
	}
	var causes []any
	for cursor := ""; ; {
		a := c.get("vera", "/dead-letters/groups?limit=1"+cursor)
		causes = append(causes, a.body["items"].([]any)[0].(map[string]any)["fingerprint"])
		next, more := a.body["next"].(string)
		if !more {
			break
		}
		cursor = "&cursor=" + next
	}
	if len(causes) != 2 || causes[0] != cause || causes[1] == cause {
		t.Errorf("page by page the causes are %v", causes)
	}
}
