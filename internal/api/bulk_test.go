package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
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
		"by": "ada", "reason": "x", "state": "running", "when": "now", "perMinute": 120.0, "hold": nil, "changedBy": nil,
		"endedAt": nil, "total": 1.0, "createdAt": "2026-03-02T10:00:00Z",
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
	testkit.Must(t, c.Journal.HoldBulkRun(t.Context(), run, "engine_down"))
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
	slices.Reverse(want)
	ids := c.values("/bulk-runs?limit=2", "id")
	if fmt.Sprint(ids) != fmt.Sprint(want) {
		t.Errorf("from the newest on there are %v, want %v", ids, want)
	}
}

func TestBulkItems(t *testing.T) {
	c := open(t)
	run := c.run("DUPLICATE_CLAIM")
	for n := range int64(3) {
		testkit.Must(t, c.Journal.RefuseBulkItem(t.Context(), run, 8+n, "max_retries_exceeded"))
	}
	for query, want := range map[string]struct {
		first, n, next any
	}{
		"":                                  {1.0, 10, nil},
		"?limit=4":                          {1.0, 4, "4"},
		"?limit=4&cursor=4":                 {5.0, 4, "8"},
		"?limit=4&cursor=8":                 {9.0, 2, nil},
		"?outcome=refused":                  {8.0, 3, nil},
		"?outcome=refused&cursor=8":         {9.0, 2, nil},
		"?outcome=recovered":                {nil, 0, nil},
		"?cursor=9223372036854775806":       {nil, 0, nil},
		"?outcome=&cursor=&limit=":          {1.0, 10, nil},
		"?outcome=planned&limit=7":          {1.0, 7, "7"},
		"?outcome=planned&limit=7&cursor=7": {nil, 0, nil}, // the last page may be empty
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
	causes := c.values("/dead-letters/groups?limit=1", "fingerprint")
	if len(causes) != 2 || causes[0] != cause || causes[1] == cause {
		t.Errorf("page by page the causes are %v", causes)
	}
	if narrow := c.get("vera", "/dead-letters/groups?state=open&policy=tiss-submission&team=cadastro&reason=INVALID_PATIENT_DATA&q=name"); len(narrow.body["items"].([]any)) != 1 {
		t.Errorf("filtered there are %s", narrow.text)
	}
}
