package console_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/bulk"
	"retry-worker/internal/console"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/review"
)

// everything that a plan can be asked for.
const wholePlan = `{"action":"retry","filter":{"policy":"tiss-submission","team":"ti","reason":"INVALID_CREDENTIALS","fingerprint":"00000000000000f1",` +
	`"q":"login","since":"2026-03-01T00:00:00-03:00","until":"2026-03-02T09:00:00Z"},"forceRetry":true,"fresh":true,"when":"now","perMinute":120}`

func TestBulkPlan(t *testing.T) {
	c := openClinic(t)
	a := c.post("vera", "/bulk-runs/plan", wholePlan)
	want := bulk.Command{
		Action: journal.BulkRetry, Force: true, Fresh: true, When: review.Now, PerMinute: 120,
		Filter: journal.DeadLetterFilter{
			Policy: "tiss-submission", Team: "ti", Reason: "INVALID_CREDENTIALS", Fingerprint: "00000000000000f1", Query: "login",
			Since: time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC), Until: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC),
		},
	}
	got := c.herd.asked
	got.Filter.Since, got.Filter.Until = got.Filter.Since.UTC(), got.Filter.Until.UTC()
	if got != want {
		t.Errorf("asked for\n%+v, want\n%+v", got, want)
	}
	for name, want := range map[string]any{
		"token": herdToken, "action": "retry", "total": 10.0, "ready": 7.0, "perMinute": 120.0, "seconds": 7.0, "when": "now", "forceRetry": true, "fresh": true,
		"oldest": "2026-03-02T10:00:00Z", "newest": "2026-03-02T10:01:00Z",
	} {
		if a.status != http.StatusOK || a.body[name] != want {
			t.Errorf("%d: %s is %v, want %v", a.status, name, a.body[name], want)
		}
	}
	for name, want := range map[string]string{
		"filter":  "map[fingerprint:00000000000000f1 policy:tiss-submission q:login reason:INVALID_CREDENTIALS since:2026-03-01T03:00:00Z team:ti until:2026-03-02T09:00:00Z]",
		"refused": "[map[code:max_retries_exceeded count:2 message:the limit is reached] map[code:in_other_run count:1 message:another run has them]]",
		"tallies": "[map[count:7 policy:tiss-submission reason:INVALID_CREDENTIALS team:ti]]",
	} {
		if got := fmt.Sprint(a.body[name]); got != want {
			t.Errorf("%s is\n%s, want\n%s", name, got, want)
		}
	}
	if told := c.lines.Len(); told != 0 {
		t.Errorf("a plan writes %d lines in the log: it changes nothing", told)
	}
}

// What is left out, or null, is the default.
func TestBulkDefaults(t *testing.T) {
	c := openClinic(t)
	for _, body := range []string{
		`{"action":"discard","filter":{}}`,
		`{"action":"discard","filter":{"team":null,"since":null,"q":null,"reason":null},"forceRetry":null,"fresh":null,"when":null,"perMinute":null}`,
		`{"action":"discard","filter":{},"perMinute":60.0,"when":"backoff"}`,
	} {
		a := c.post("vera", "/bulk-runs/plan", body)
		if a.status != http.StatusOK || a.body["perMinute"] != 60.0 || a.body["when"] != "backoff" || a.body["forceRetry"] != false ||
			fmt.Sprint(a.body["filter"]) != "map[fingerprint:<nil> policy:<nil> q:<nil> reason:<nil> since:<nil> team:<nil> until:<nil>]" {
			t.Errorf("%s: got %d %s", body, a.status, a.text)
		}
	}
}

// Who did it comes from the log-in; it is told in the log, and shown from then on.
func TestBulkStart(t *testing.T) {
	c := openClinic(t)
	start := strings.Replace(wholePlan, "{", `{"reason":"senha corrigida","token":"`+herdToken+`",`, 1)
	a := c.post("ada", "/bulk-runs", start)
	id, _ := a.body["id"].(string)
	if a.status != http.StatusCreated || a.header.Get("Location") != "/api/v1/bulk-runs/"+id {
		t.Fatalf("got %d %q %s", a.status, a.header.Get("Location"), a.text)
	}
	for name, want := range map[string]any{
		"by": "ada", "reason": "senha corrigida", "state": "preparing", "when": "now", "perMinute": 120.0, "hold": nil, "changedBy": nil, "startedAt": nil,
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
	c := openClinic(t)
	c.now = now.Add(time.Hour)
	for _, tt := range []struct{ path, state string }{
		{aRun + "/pause", "paused"}, {aRun + "/resume", "running"}, {aRun + "/cancel", "cancelled"}, {aPaused + "/cancel", "cancelled"},
	} {
		a := c.post("ada", "/bulk-runs/"+tt.path, `{}`)
		if a.status != http.StatusOK || a.body["state"] != tt.state || a.body["changedBy"] != "ada" || a.body["changedAt"] != "2026-03-02T11:00:00Z" || a.body["hold"] != nil {
			t.Errorf("%s: got %d %s", tt.path, a.status, a.text)
		}
		if told := c.lines.FilterField(zap.String("event", "bulk_run_changed")).FilterField(zap.String("state", tt.state)).Len(); told < 1 {
			t.Errorf("%s: the log does not tell it", tt.path)
		}
	}
}

func TestBulkRunsAreListed(t *testing.T) {
	c := openClinic(t)
	var ids []string
	for path := "/bulk-runs?limit=2"; path != ""; {
		a := c.get("vera", path)
		for _, i := range a.body["items"].([]any) {
			ids = append(ids, i.(map[string]any)["id"].(string))
		}
		path = ""
		if next, more := a.body["next"].(string); more {
			path = "/bulk-runs?limit=2&cursor=" + next
		}
	}
	if fmt.Sprint(ids) != fmt.Sprint([]string{aDone, aPaused, aRun}) {
		t.Errorf("got %v", ids)
	}
	a := c.get("vera", "/bulk-runs")
	if len(a.body["items"].([]any)) != 3 || c.herd.listed.limit != review.DefaultItems {
		t.Errorf("got %s for at most %d", a.text, c.herd.listed.limit)
	}
	if a := c.get("vera", "/bulk-runs/"+aRun); a.body["hold"] != "engine_down" || a.body["heldAt"] != "2026-03-02T10:01:00Z" || a.body["changedAt"] != nil {
		t.Errorf("got %s", a.text)
	}
}

func TestBulkItems(t *testing.T) {
	c := openClinic(t)
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
		a := c.get("vera", "/bulk-runs/"+aRun+"/items"+query)
		items := a.body["items"].([]any)
		var first any
		if len(items) > 0 {
			first = items[0].(map[string]any)["number"]
		}
		if a.status != http.StatusOK || first != want.first || len(items) != want.n || a.body["next"] != want.next {
			t.Errorf("%q: got %d from %v, then %v, want %v", query, len(items), first, a.body["next"], want)
		}
	}
	refused := c.get("vera", "/bulk-runs/"+aRun+"/items?outcome=refused&limit=1").body["items"].([]any)[0].(map[string]any)
	if refused["code"] != "max_retries_exceeded" || refused["deadLetterId"] != anID || refused["decidedAt"] != nil ||
		fmt.Sprint(refused["subject"]) != "map[id:CLM-008-1 policy:tiss-submission tenant:<default>]" {
		t.Errorf("got %v", refused)
	}
}

func TestDeadLetterGroups(t *testing.T) {
	c := openClinic(t)
	id := c.permanent("CLM-001-1")
	c.sample(id)
	a := c.get("vera", "/dead-letters/groups?state=all&policy=p&team=ti&reason=TIMEOUT&fingerprint=f&q=login")
	if want := (journal.DeadLetterFilter{State: "all", Policy: "p", Team: "ti", Reason: "TIMEOUT", Fingerprint: "f", Query: "login"}); c.herd.asked.Filter != want {
		t.Errorf("asked for %+v", c.herd.asked.Filter)
	}
	g := a.body["items"].([]any)[0].(map[string]any)
	for name, want := range map[string]any{
		"fingerprint": "00000000000000f1", "policy": "tiss-submission", "reason": "DUPLICATE_CLAIM", "matchedRule": "DUPLICATE_CLAIM", "classification": "PERMANENT", "pattern": "login refused", // the sample's reason
		"count": 10.0, "firstSeen": "2026-03-02T10:00:00Z", "lastSeen": "2026-03-02T10:01:00Z",
	} {
		if a.status != http.StatusOK || g[name] != want {
			t.Errorf("%d: %s is %v, want %v", a.status, name, g[name], want)
		}
	}
	shown := c.get("vera", "/dead-letters/"+id)
	if fmt.Sprint(g["teams"]) != "[ti]" || fmt.Sprint(g["sample"]) != fmt.Sprint(shown.body) || a.body["next"] != "more" {
		t.Errorf("got %v, then %v", g, a.body["next"])
	}
	if c.get("vera", "/dead-letters/groups?limit=7&cursor=more"); c.herd.listed.limit != 7 || c.herd.listed.cursor != "more" {
		t.Errorf("asked for %+v", c.herd.listed)
	}
}

// A dead letter that a bulk run decided says which.
func TestDeadLetterOfABulkRun(t *testing.T) {
	item := review.Item{DeadLetterItem: journal.DeadLetterItem{DeadLetter: journal.DeadLetter{
		ID: anID, State: journal.DeadLetterReprocessing, Episode: 1, Outcome: decision.PermanentError, Reason: decision.ReasonUnknown, Run: aRun,
	}}}
	c := openClinic(t, func(_ *console.Options, m *console.Journal) { m.DeadLetters = shows{item: item} })
	if a := c.get("vera", "/dead-letters/"+anID); a.body["bulkRun"] != aRun || a.body["process"] != "answered" {
		t.Errorf("got %s", a.text)
	}
}

// bulkCalls are all of them; all but the second and the last three read.
func bulkCalls() map[string]call {
	all := calls(anID)
	for name := range all {
		if !strings.Contains(name, "bulk-runs") && !strings.HasSuffix(name, "/groups") {
			delete(all, name)
		}
	}
	return all
}

func TestBulkUnavailable(t *testing.T) {
	for name, err := range map[string]error{
		"store": &journal.StoreError{Kind: journal.Unavailable, Err: errSecret}, "journal": fmt.Errorf("%w: %w", journal.ErrUnavailable, errSecret),
		"time": context.DeadlineExceeded,
	} {
		c := openClinic(t)
		c.herd.err = err
		for what, l := range bulkCalls() {
			a := l.to(t, c.url, c.as("ada"))
			a.refused(t, name+", "+what, http.StatusServiceUnavailable, "journal_unavailable")
			if strings.Contains(a.text, "secret") {
				t.Errorf("%s, %s: got %s", name, what, a.text)
			}
		}
		if c.lines.FilterMessageSnippet("could not").Len() == 0 {
			t.Errorf("%s: the log does not say why", name)
		}
	}
}

// Before bulk runs are open, all else works.
func TestBulkNotOpen(t *testing.T) {
	c := openClinic(t, func(_ *console.Options, m *console.Journal) { m.Bulk, m.Groups = nil, nil })
	for what, l := range bulkCalls() {
		a := l.to(t, c.url, c.as("ada"))
		a.refused(t, what, http.StatusServiceUnavailable, "journal_unavailable")
	}
	if a := c.get("vera", "/dead-letters"); a.status != http.StatusOK {
		t.Errorf("the list is answered with %d", a.status)
	}
}

// What a person wrote, and what came from outside, is inert in a run as well.
func TestHostileBulkRun(t *testing.T) {
	c := openClinic(t)
	run := c.herd.runs[aRun]
	run.Reason, run.By, run.Filter.Query, run.Hold = hostile, hostile, hostile, hostile
	for _, path := range []string{"/bulk-runs", "/bulk-runs/" + aRun} {
		a := c.get("vera", path)
		if at := strings.IndexFunc(a.text, func(r rune) bool {
			return r < ' ' && r != '\n' || r >= 0x7f && r < 0xa0 || strings.ContainsRune("<>&\u202e\u2066\ufeff\u2028", r)
		}); a.status != http.StatusOK || at >= 0 {
			t.Errorf("%s: %d, something acts at %d: %s", path, a.status, at, short(a.text))
		}
	}
}

var _ console.Bulk = (*herd)(nil)
