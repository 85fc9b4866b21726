package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/journal"
)

// retryAll is the command that most tests do not look at.
const retryAll = `"action":"retry","filter":{}`

// What is left out, or null, is the default.
func TestBulkDefaults(t *testing.T) {
	c := open(t)
	for _, body := range []string{
		`{"action":"discard","filter":{}}`,
		`{"action":"discard","filter":{"team":null,"since":null,"q":null,"reason":null},"forceRetry":null,"fresh":null,"when":null,"perMinute":null}`,
		`{"action":"discard","filter":{},"perMinute":60.0,"when":"backoff"}`,
	} {
		a := c.post("vera", "/bulk-runs/plan", body)
		if a.status != http.StatusOK || a.body["perMinute"] != 60.0 || a.body["when"] != "backoff" || a.body["forceRetry"] != false ||
			fmt.Sprint(a.body["filter"]) != "map[context:<nil> fingerprint:<nil> ids:<nil> policy:<nil> q:<nil> reason:<nil> since:<nil> team:<nil> until:<nil>]" {
			t.Errorf("%s: got %d %s", body, a.status, a.text)
		}
	}
}

// Who did it comes from the log-in; it is told in the log, and shown from then on.
func TestBulkStart(t *testing.T) {
	c := open(t)
	c.permanent("CLM-001-1")
	const command = retryAll + `,"when":"now","perMinute":120`
	a := c.start(command, c.plan(command))
	id, _ := a.body["id"].(string)
	if a.status != http.StatusCreated || a.header.Get("Location") != "/api/v1/bulk-runs/"+id {
		t.Fatalf("got %d %q %s", a.status, a.header.Get("Location"), a.text)
	}
	for name, want := range map[string]any{
		"by": "ada", "reason": "x", "state": "preparing", "when": "now", "perMinute": 120.0, "hold": nil, "changedBy": nil, "startedAt": nil,
		"endedAt": nil, "total": 0.0, "createdAt": "2026-03-02T10:00:00Z",
	} {
		if a.body[name] != want {
			t.Errorf("%s is %v, want %v", name, a.body[name], want)
		}
	}
	if counts := a.body["counts"].(map[string]any); len(counts) != len(journal.BulkOutcomes()) {
		t.Errorf("counts are %v, want every outcome", counts)
	}
	if shown := c.get("vera", "/bulk-runs/"+strings.ToUpper(id)); shown.text != a.text {
		t.Errorf("the answer was\n%sit shows\n%s", a.text, shown.text)
	}
	if told := c.lines.FilterField(zap.String("event", "bulk_run_started")).FilterField(zap.String("by", "ada")).FilterField(zap.String("runId", id)).Len(); told != 1 {
		t.Errorf("%d lines in the log", told)
	}
}

func TestBulkSteps(t *testing.T) {
	c := open(t)
	run := c.run("DUPLICATE_CLAIM")
	if err := c.Journal.HoldBulkRun(t.Context(), run, "engine_down"); err != nil {
		t.Fatal(err)
	}
	if a := c.get("vera", "/bulk-runs/"+run); a.body["hold"] != "engine_down" || a.body["heldAt"] != "2026-03-02T10:00:01Z" || a.body["changedAt"] != nil {
		t.Errorf("while it is held: %s", a.text)
	}
	c.Set(now.Add(time.Hour))
	for _, tt := range []struct{ verb, state string }{{"pause", "paused"}, {"resume", "running"}, {"cancel", "cancelled"}} {
		a := c.post("ada", "/bulk-runs/"+run+"/"+tt.verb, `{}`)
		if a.status != http.StatusOK || a.body["state"] != tt.state || a.body["changedBy"] != "ada" || a.body["changedAt"] != "2026-03-02T11:00:00Z" || a.body["hold"] != nil {
			t.Errorf("%s: got %d %s", tt.verb, a.status, a.text)
		}
		if told := c.lines.FilterField(zap.String("event", "bulk_run_changed")).FilterField(zap.String("state", tt.state)).Len(); told != 1 {
			t.Errorf("%s: the log tells it %d times", tt.verb, told)
		}
	}
}

func TestBulkRunsAreListed(t *testing.T) {
	c := open(t)
	want := []string{c.run("DUPLICATE_CLAIM"), c.run("INSURANCE_EXPIRED"), c.run("AUTHORIZATION_DENIED")}
	var ids []string
	for path := "/bulk-runs?limit=2"; path != ""; {
		a := c.get("vera", path)
		for _, i := range a.body["items"].([]any) {
			ids = append([]string{i.(map[string]any)["id"].(string)}, ids...)
		}
		path = ""
		if next, more := a.body["next"].(string); more {
			path = "/bulk-runs?limit=2&cursor=" + next
		}
	}
	if fmt.Sprint(ids) != fmt.Sprint(want) {
		t.Errorf("from the newest on there are %v, want %v", ids, want)
	}
}

func TestBulkItems(t *testing.T) {
	c := open(t)
	run := c.run("DUPLICATE_CLAIM")
	for n := range int64(3) {
		if err := c.Journal.RefuseBulkItem(t.Context(), run, 8+n, "max_retries_exceeded"); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]struct {
		first, n, next any
	}{
		"":                                 {1.0, 10, nil},
		"?limit=4":                         {1.0, 4, 4.0},
		"?limit=4&after=4":                 {5.0, 4, 8.0},
		"?limit=4&after=8":                 {9.0, 2, nil},
		"?outcome=refused":                 {8.0, 3, nil},
		"?outcome=refused&after=8":         {9.0, 2, nil},
		"?outcome=recovered":               {nil, 0, nil},
		"?after=9223372036854775806":       {nil, 0, nil},
		"?outcome=&after=&limit=":          {1.0, 10, nil},
		"?outcome=planned&limit=7":         {1.0, 7, 7.0},
		"?outcome=planned&limit=7&after=7": {nil, 0, nil}, // the last page may be empty
	} {
		a := c.get("vera", "/bulk-runs/"+run+"/items"+query)
		items := a.body["items"].([]any)
		var first any
		if len(items) > 0 {
			first = items[0].(map[string]any)["number"]
		}
		if a.status != http.StatusOK || first != want.first || len(items) != want.n || a.body["next"] != want.next {
			t.Errorf("%q: got %d from %v, then %v, want %v", query, len(items), first, a.body["next"], want)
		}
	}
	refused := c.get("vera", "/bulk-runs/"+run+"/items?outcome=refused&limit=1").body["items"].([]any)[0].(map[string]any)
	if refused["code"] != "max_retries_exceeded" || len(refused["deadLetterId"].(string)) != 36 || refused["decidedAt"] != nil ||
		fmt.Sprint(refused["subject"]) != "map[id:CLM-DUPLICATE_CLAIM-7 policy:tiss-submission tenant:<default>]" {
		t.Errorf("got %v", refused)
	}
}

// A dead letter that a bulk run decided says which.
func TestDeadLetterOfABulkRun(t *testing.T) {
	c := open(t)
	id := c.permanent("CLM-001-1")
	a := c.start(retryAll, c.plan(retryAll))
	run := a.body["id"].(string)
	c.Gather(run)
	c.RunBulk()
	for shown := c.get("vera", "/dead-letters/"+id); shown.body["bulkRun"] != run; shown = c.get("vera", "/dead-letters/"+id) {
		if t.Context().Err() != nil {
			t.Fatal("the dead letter does not name its run")
		}
	}
}

// bulkCalls are all calls that need bulk runs.
func bulkCalls(k known) map[string]call {
	all := calls(k)
	for name := range all {
		if !strings.Contains(name, "bulk-runs") && !strings.HasSuffix(name, "/groups") {
			delete(all, name)
		}
	}
	return all
}

func TestBulkUnavailable(t *testing.T) {
	c := open(t)
	k := c.prepare()
	c.Memory.SetDown(true)
	for what, l := range bulkCalls(k) {
		a := l.to(t, c.url, c.as("ada"))
		a.refused(t, what, http.StatusServiceUnavailable, "journal_unavailable")
		if strings.Contains(a.text, "the store is down") {
			t.Errorf("%s tells the store's own words: %s", what, a.text)
		}
	}
	if c.lines.FilterMessageSnippet("could not").Len() == 0 {
		t.Error("the log does not say why")
	}
}

// Filters of the list, and of groups.
func TestDeadLettersByCauseAndAge(t *testing.T) {
	c := open(t)
	old := c.permanent("CLM-001-1")
	c.Set(now.Add(time.Hour))
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
	for name, want := range map[string]any{
		"fingerprint": cause, "policy": "tiss-submission", "reason": "DUPLICATE_CLAIM", "matchedRule": "DUPLICATE_CLAIM", "classification": "PERMANENT",
		"pattern": "duplicate_claim", "count": 2.0, "firstSeen": "2026-03-02T10:00:00Z", "lastSeen": "2026-03-02T11:00:00Z",
	} {
		if len(groups) != 2 || first[name] != want {
			t.Errorf("of %d groups the first: %s is %v, want %v", len(groups), name, first[name], want)
		}
	}
	if shown := c.get("vera", "/dead-letters/"+recent); fmt.Sprint(first["teams"]) != "[faturamento]" || fmt.Sprint(first["sample"]) != fmt.Sprint(shown.body) {
		t.Errorf("got %v", first)
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
	if narrow := c.get("vera", "/dead-letters/groups?state=open&policy=tiss-submission&team=cadastro&reason=INVALID_PATIENT_DATA&q=name"); len(narrow.body["items"].([]any)) != 1 {
		t.Errorf("filtered there are %s", narrow.text)
	}
}

// TestBulkRefused is everything that the API must refuse, with the exact codes; nothing is started by it.
func TestBulkRefused(t *testing.T) {
	c := open(t)
	c.permanent("CLM-001-1")
	token, unforced := c.plan(retryAll), ""
	c.post("ada", "/dead-letters/"+c.permanent("CLM-001-2")+"/discard", `{"reason":"x"}`)
	run := c.run("INSURANCE_EXPIRED")
	c.exhausted("CLM-002-1")
	unforced = c.plan(`"action":"retry","filter":{"reason":"MAX_RETRIES"}`)
	plan := func(fields string) string { return "{" + retryAll + "," + fields + "}" }
	start := func(fields string) string {
		return "{" + retryAll + `,"reason":"x","token":"` + token + `"` + fields + `}`
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
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"fingerprint":"' OR 1=1"}}`, 422, "invalid_fingerprint"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"q":"` + strings.Repeat("x", 201) + `"}}`, 422, "invalid_query"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"q":"` + strings.Repeat("x", 1001) + `"}}`, 422, "invalid_q"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"reason":1}}`, 422, "invalid_reason"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"reason":"LUCK"}}`, 422, "invalid_reason"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"since":"yesterday"}}`, 422, "invalid_since"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"since":"2026-03-01"}}`, 422, "invalid_since"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"until":"9999-12-31T23:59:59Z"}}`, 422, "invalid_until"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"until":1772438400}}`, 422, "invalid_until"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{"since":"2026-03-02T00:00:00Z","until":"2026-03-01T00:00:00Z"}}`, 422, "invalid_period"},
		{"vera", "/bulk-runs/plan", `{"filter":{}}`, 422, "invalid_action"},
		{"vera", "/bulk-runs/plan", `{"action":"delete","filter":{}}`, 422, "invalid_action"},
		{"vera", "/bulk-runs/plan", `{"action":7,"filter":{}}`, 422, "invalid_action"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":0`), 422, "invalid_pace"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":6001`), 422, "invalid_pace"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":1e999`), 422, "invalid_pace"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":59.5`), 422, "invalid_pace"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":"60"`), 422, "invalid_pace"},
		{"vera", "/bulk-runs/plan", plan(`"perMinute":NaN`), 400, "invalid_json"},
		{"vera", "/bulk-runs/plan", plan(`"forceRetry":1`), 422, "invalid_force_retry"},
		{"vera", "/bulk-runs/plan", plan(`"fresh":true`), 422, "force_required"},
		{"vera", "/bulk-runs/plan", plan(`"when":1`), 422, "invalid_when"},
		{"vera", "/bulk-runs/plan", plan(`"when":"later"`), 422, "invalid_when"},
		{"vera", "/bulk-runs/plan", plan(`"reason":"x"`), 422, "unknown_field"},
		{"vera", "/bulk-runs/plan", plan(`"token":"x"`), 422, "unknown_field"},
		{"vera", "/bulk-runs/plan", `{"action":"retry","filter":{`, 400, "invalid_json"},
		{"vera", "/bulk-runs/plan", `null`, 400, "invalid_json"},
		{"vera", "/bulk-runs/plan", plan(`"when":"` + strings.Repeat("x", 1<<17) + `"`), 413, "body_too_large"},

		{"ada", "/bulk-runs", plan(`"reason":"x"`), 422, "invalid_plan"},
		{"ada", "/bulk-runs", plan(`"reason":"x","token":7`), 422, "invalid_plan"},
		{"ada", "/bulk-runs", plan(`"reason":"x","token":"` + strings.Repeat("a", 60_000) + `"`), 422, "invalid_plan"},
		{"ada", "/bulk-runs", plan(`"reason":"\u200b","token":"` + token + `"`), 422, "reason_required"},
		{"ada", "/bulk-runs", plan(`"token":"` + token + `"`), 422, "reason_required"},
		{"ada", "/bulk-runs", plan(`"reason":"` + strings.Repeat("é", 501) + `","token":"` + token + `"`), 422, "reason_too_long"},
		{"ada", "/bulk-runs", `{"action":"retry","filter":{"reason":"MAX_RETRIES"},"reason":"x","token":"` + unforced + `"}`, 422, "nothing_to_do"},
		{"ada", "/bulk-runs", start(`,"by":"maria"`), 422, "unknown_field"},
		{"ada", "/bulk-runs", start(`,"perMinute":1e9`), 422, "invalid_pace"},
		{"ada", "/bulk-runs", start(`,"when":"` + strings.Repeat("x", 1<<17) + `"`), 413, "body_too_large"},

		{"vera", "/bulk-runs?limit=0", "", 422, "invalid_limit"},
		{"vera", "/bulk-runs?limit=201", "", 422, "invalid_limit"},
		{"vera", "/bulk-runs?cursor=x", "", 422, "invalid_cursor"},
		{"vera", "/bulk-runs?cursor=" + strings.Repeat("A", 900), "", 422, "invalid_cursor"},
		{"vera", "/bulk-runs?state=done", "", 422, "unknown_parameter"},
		{"vera", "/bulk-runs/" + anID, "", 404, "run_not_found"},
		{"vera", "/bulk-runs/..%2F..", "", 404, "run_not_found"},
		{"vera", "/bulk-runs/%00", "", 404, "run_not_found"},
		{"vera", "/bulk-runs/' OR 1=1 --", "", 404, "run_not_found"},
		{"vera", "/bulk-runs/" + anID + "/items", "", 404, "run_not_found"},
		{"vera", "/bulk-runs/" + run + "/items?outcome=REFUSED", "", 422, "invalid_outcome"},
		{"vera", "/bulk-runs/" + run + "/items?after=-1", "", 422, "invalid_after"},
		{"vera", "/bulk-runs/" + run + "/items?after=1e3", "", 422, "invalid_after"},
		{"vera", "/bulk-runs/" + run + "/items?after=9223372036854775808", "", 422, "invalid_after"},
		{"vera", "/bulk-runs/" + run + "/items?cursor=x", "", 422, "unknown_parameter"},
		{"vera", "/bulk-runs/" + run + "/items?limit=1&limit=2", "", 422, "invalid_parameter"},

		{"ada", "/bulk-runs/" + anID + "/pause", `{}`, 404, "run_not_found"},
		{"ada", "/bulk-runs/x/cancel", `{}`, 404, "run_not_found"},
		{"ada", "/bulk-runs/" + run + "/resume", `{}`, 409, "invalid_run_state"},
		{"ada", "/bulk-runs/" + run + "/cancel", `{"reason":"x"}`, 422, "unknown_field"},
		{"ada", "/bulk-runs/" + run + "/cancel", `x`, 400, "invalid_json"},

		{"vera", "/dead-letters/groups?since=2026-03-01T00:00:00Z", "", 422, "unknown_parameter"},
		{"vera", "/dead-letters/groups?state=closed", "", 422, "invalid_state"},
		{"vera", "/dead-letters/groups?cursor=x", "", 422, "invalid_cursor"},
		{"vera", "/dead-letters/groups?limit=0", "", 422, "invalid_limit"},
		{"vera", "/dead-letters/groups?fingerprint=%00", "", 422, "invalid_fingerprint"},
		{"vera", "/dead-letters/groups?fingerprint=zz", "", 422, "invalid_fingerprint"},
		{"vera", "/dead-letters?context=Unimed", "", 422, "invalid_context"},
		{"vera", "/dead-letters?ids=1,2", "", 422, "invalid_ids"},
		{"vera", "/dead-letters?fingerprint=F1", "", 422, "invalid_fingerprint"},
		{"vera", "/dead-letters?since=2026-03-01", "", 422, "invalid_since"},
		{"vera", "/dead-letters?since=2026-03-01T00:00:00+03:00", "", 422, "invalid_since"}, // + is a blank here
		{"vera", "/dead-letters?until=now", "", 422, "invalid_until"},
		{"vera", "/dead-letters?since=2026-03-02T00:00:00Z&until=2026-03-01T00:00:00Z", "", 422, "invalid_period"},

		{"vera", "/bulk-runs", start(""), 403, "forbidden_role"},
		{"otto", "/bulk-runs", start(""), 403, "forbidden_role"},
		{"otto", "/bulk-runs/" + run + "/pause", `{}`, 403, "forbidden_role"},
		{"otto", "/bulk-runs/" + run + "/resume", `{}`, 403, "forbidden_role"},
		{"otto", "/bulk-runs/" + run + "/cancel", `{}`, 403, "forbidden_role"},
		{"vera", "/bulk-runs/" + run + "/cancel", `{}`, 403, "forbidden_role"},
	} {
		c.refuses(tt.who, tt.path, tt.body, tt.status, tt.code)
	}
	runs := c.get("vera", "/bulk-runs").body["items"].([]any)
	if len(runs) != 1 || runs[0].(map[string]any)["state"] != "running" {
		t.Errorf("then there are the runs %v", runs)
	}
}

// An address that is spelled out is not taken for another's {id}, whatever the method.
func TestBulkMethods(t *testing.T) {
	c := open(t)
	for _, tt := range []struct{ method, path, allowed string }{
		{"GET", "/bulk-runs/plan", "POST"}, {"DELETE", "/bulk-runs/plan", "POST"}, {"PUT", "/bulk-runs", "GET, HEAD, POST"}, {"POST", "/bulk-runs/" + anID, "GET, HEAD"},
		{"POST", "/dead-letters/groups", "GET, HEAD"}, {"GET", "/bulk-runs/" + anID + "/cancel", "POST"}, {"DELETE", "/bulk-runs/" + anID, "GET, HEAD"},
	} {
		a := ask(t, tt.method, c.url+tt.path, "{}", c.as("ada"), header("Content-Type", "application/json"))
		a.refused(t, tt.method+" "+tt.path, http.StatusMethodNotAllowed, "method_not_allowed")
		if got := a.header.Get("Allow"); got != tt.allowed {
			t.Errorf("%s %s: Allow is %q, want %q", tt.method, tt.path, got, tt.allowed)
		}
	}
}
