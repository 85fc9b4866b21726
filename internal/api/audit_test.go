package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/kpi"
)

func TestAudit(t *testing.T) {
	const claim = "CLM-001-1"
	c := open(t)
	c.Fail(decision.DefaultPolicy, claim, "TIMEOUT", -1)
	c.Advance(time.Hour)
	c.Succeed(decision.DefaultPolicy, claim)
	a := c.get("vera", "/subjects/tiss-submission/"+claim+"/audit")
	items, _ := a.body["items"].([]any)
	if a.status != http.StatusOK || len(items) != 2 || a.body["next"] != nil || len(a.body) != 2 {
		t.Fatalf("got %d %v", a.status, a.body)
	}
	first, second := items[0].(map[string]any), items[1].(map[string]any) // whose fields internal/audit has
	if first["kind"] != "attempt" || first["claimId"] != claim || first["jobKey"] != "9007199254740994" || len(first["events"].([]any)) != 6 {
		t.Errorf("the failure's entry is %v", first)
	}
	if body, _ := second["body"].(map[string]any); second["kind"] != "outcome" || body["outcome"] != "success" {
		t.Errorf("the outcome's entry is %v", second)
	}
}

func TestAuditPages(t *testing.T) {
	const claim, all = "CLM-001-1", 205
	c := open(t)
	for n := range all {
		id := claim
		if n%40 == 3 {
			id = "CLM-002-1" // somebody else's between them
		}
		c.Fail(decision.DefaultPolicy, id, "TIMEOUT", -1)
	}
	const path = "/subjects/tiss-submission/" + claim + "/audit"
	var sizes []int
	last := 0.0
	for _, page := range c.pages(path + "?tenant=") {
		sizes = append(sizes, len(page))
		for _, item := range page {
			if item["claimId"] != claim || item["record"].(float64) <= last {
				t.Errorf("after record %v: got %v of %v", last, item["record"], item["claimId"])
			}
			last = item["record"].(float64)
		}
	}
	if fmt.Sprint(sizes) != "[100 99]" {
		t.Errorf("the pages have %v records, want 100 and 99", sizes)
	}
	if a := c.get("vera", path+fmt.Sprintf("?cursor=%d", all+1)); a.status != http.StatusOK || len(a.body["items"].([]any)) != 0 || a.body["next"] != nil {
		t.Errorf("behind the last: got %d %v", a.status, a.body)
	}
}

func TestKPIs(t *testing.T) {
	c := open(t)
	c.Fail(decision.DefaultPolicy, "CLM-001-1", "TIMEOUT", -1)
	c.Advance(time.Hour)
	c.Succeed(decision.DefaultPolicy, "CLM-001-1")
	for _, path := range []string{"/kpis", "/kpis?policy=tiss-submission"} {
		a := c.get("vera", path)
		all, _ := a.body["kpis"].([]any)
		if a.status != http.StatusOK || len(all) != 10 || len(a.body) != 2 {
			t.Fatalf("%s: got %d %v", path, a.status, a.body)
		}
		var rate kpi.KPI
		text, err := json.Marshal(all[0])
		if err == nil {
			err = json.Unmarshal(text, &rate)
		}
		if err != nil || rate.Name != kpi.SuccessRate || rate.Policy != "tiss-submission" || rate.Value == nil || *rate.Value != 1 ||
			rate.Samples != 1 || rate.Window != 24 || !*rate.Goals[0].Holds {
			t.Errorf("%s: the success rate is %s, %v", path, text, err)
		}
	}
}
