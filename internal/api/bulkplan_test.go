package api_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
)

func TestBulkPlan(t *testing.T) {
	c := open(t)
	cause := c.Item(c.permanent("CLM-001-1")).Fingerprint
	c.Advance(time.Minute)
	c.permanent("CLM-002-1")
	c.Die("tiss-submission", "CLM-003-1", "DUPLICATE_CLAIM", 2)
	a := c.post("vera", "/bulk-runs/plan", `{"action":"retry","filter":{"policy":"tiss-submission","team":"faturamento","reason":"DUPLICATE_CLAIM",`+
		`"fingerprint":"`+cause+`","q":"duplicate","since":"2026-03-01T00:00:00-03:00","until":"2026-03-02T12:00:00Z"},"when":"now","perMinute":120}`)
	for name, want := range map[string]string{
		"action": "retry", "total": "3", "ready": "2", "perMinute": "120", "seconds": "1", "when": "now", "forceRetry": "false", "fresh": "false",
		"oldest": "2026-03-02T10:00:00Z", "newest": "2026-03-02T10:01:00Z",
		"filter":  "map[context:<nil> fingerprint:" + cause + " ids:<nil> policy:tiss-submission q:duplicate reason:DUPLICATE_CLAIM since:2026-03-01T03:00:00Z team:faturamento until:2026-03-02T12:00:00Z]",
		"refused": "[map[code:invalid_retry_state count:1 message:the process has not come to its review task yet, so nothing would carry a retry out; plan again in a minute]]",
		"tallies": "[map[count:2 policy:tiss-submission reason:DUPLICATE_CLAIM team:faturamento]]",
	} {
		if got := fmt.Sprint(a.body[name]); a.status != http.StatusOK || got != want {
			t.Errorf("%d: %s is\n%s, want\n%s", a.status, name, got, want)
		}
	}
	if told := c.lines.Len(); told != 0 {
		t.Errorf("a plan writes %d lines in the log: it changes nothing", told)
	}
	forced := c.post("vera", "/bulk-runs/plan", "{"+retryAll+`,"forceRetry":true,"fresh":true}`)
	if forced.body["ready"] != 2.0 || forced.body["forceRetry"] != true || forced.body["fresh"] != true {
		t.Errorf("forced: %s", forced.text)
	}
}

// A plan's token that has started a run starts nothing else, and is not answered as if it had: another reason, or another
// person, is refused. What was redacted of the reason does not make it another.
func TestUsedTokenForAnotherStart(t *testing.T) {
	c := open(t)
	c.permanent("CLM-001-1")
	token := c.plan(retryAll)
	start := func(who, reason string) answer {
		return c.post(who, "/bulk-runs", "{"+retryAll+`,"reason":"`+reason+`","token":"`+token+`"}`)
	}
	const first = "portal voltou, CPF 529.982.247-25"
	run := start("ada", first)
	if again := start("ada", first); run.status != http.StatusCreated || again.status != http.StatusOK || again.body["id"] != run.body["id"] {
		t.Errorf("the very same start: %d %s, then %d %s", run.status, run.text, again.status, again.text)
	}
	other := start("ada", "outro motivo")
	other.refused(t, "another reason", http.StatusConflict, "plan_outdated")
	c.Tokens.Publish(map[string]access.Role{"ada": access.Admin, "eva": access.Admin, "vera": access.Viewer}, time.Time{})
	other = start("eva", first)
	other.refused(t, "another person", http.StatusConflict, "plan_outdated")
}

// A plan's token starts one run, however often and fast it is used, and answers with that run from then on.
func TestPlanStartsOnce(t *testing.T) {
	c := open(t)
	c.permanent("CLM-001-1")
	token := c.plan(retryAll)
	answers := make([]answer, 9)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() { answers[i] = c.start(retryAll, token) })
	}
	all.Wait()
	c.post("ada", "/bulk-runs/"+answers[0].body["id"].(string)+"/cancel", "{}")
	answers = append(answers, c.start(retryAll, token))
	statuses := map[int]int{}
	for _, a := range answers {
		statuses[a.status]++
		if a.body["id"] != answers[0].body["id"] || a.header.Get("Location") != "/api/v1/bulk-runs/"+a.body["id"].(string) {
			t.Errorf("got %d %s", a.status, a.text)
		}
	}
	if statuses[http.StatusCreated] != 1 || statuses[http.StatusOK] != 9 {
		t.Errorf("statuses %v, want 201 once and 200 nine times", statuses)
	}
	if a := c.get("vera", "/bulk-runs"); len(a.body["items"].([]any)) != 1 || answers[9].body["state"] != "cancelled" {
		t.Errorf("runs: %s; the last answer is %s", a.text, answers[9].text)
	}
	if n := c.lines.FilterField(zap.String("event", "bulk_run_started")).Len(); n != 1 {
		t.Errorf("the log says %d times that a run was started", n)
	}
}
