package api_test

import (
	"net/http"
	"sync"
	"testing"

	"go.uber.org/zap"
)

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
	for _, a := range answers {
		if a.body["id"] != answers[0].body["id"] || a.status != http.StatusOK {
			t.Errorf("got %d %s", a.status, a.text)
		}
	}
	if a := c.get("vera", "/bulk-runs"); len(a.body["items"].([]any)) != 1 || answers[9].body["state"] != "cancelled" {
		t.Errorf("runs: %s; the last answer is %s", a.text, answers[9].text)
	}
	if n := c.lines.FilterField(zap.String("event", "bulk_run_started")).Len(); n != 1 {
		t.Errorf("the log says %d times that a run was started", n)
	}
}
