package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/kpi"
	"retry-worker/internal/testkit"
)

func TestAudit(t *testing.T) {
	const claim = "CLM-001-1"
	url, _, _ := recording(t, claim, time.Hour)
	post(t, url+"/outcomes", `{"id":"CLM-001-1"}`)
	a := get(t, url+"/subjects/tiss-submission/"+claim+"/audit")
	items, _ := a.body["items"].([]any)
	if a.status != http.StatusOK || len(items) != 2 || a.body["next"] != nil || len(a.body) != 2 {
		t.Fatalf("got %d %v", a.status, a.body)
	}
	first, second := items[0].(map[string]any), items[1].(map[string]any)
	for name, want := range map[string]any{
		"record": 1.0, "kind": "attempt", "timestamp": "2026-03-02T10:00:00Z", "claimId": claim, "submissionError": "TIMEOUT",
		"errorClassification": "TRANSIENT", "retryCount": 1.0, "maxRetries": 5.0, "shouldRetry": true, "retryReason": "Transient error, retry 1 of 5",
		"jobKey": "9007199254740994", "outcome": "RETRY",
	} {
		if first[name] != want {
			t.Errorf("%s is %v, want %v", name, first[name], want)
		}
	}
	if len(first["events"].([]any)) != 6 {
		t.Errorf("the events are %v", first["events"])
	}
	if body, _ := second["body"].(map[string]any); second["kind"] != "outcome" || body["outcome"] != "success" {
		t.Errorf("the outcome's entry is %v", second)
	}
}

func TestAuditPages(t *testing.T) {
	const claim, all = "CLM-001-1", 205
	f := testkit.New(t, testkit.At(now), testkit.By(decisiontest.Policies()))
	for n := range all {
		id := claim
		if n%40 == 3 {
			id = "CLM-002-1" // somebody else's between them
		}
		f.Fail(decision.DefaultPolicy, id, "TIMEOUT", -1)
	}
	url := serve(t, f.Memory, now) + "/api/v1/subjects/tiss-submission/" + claim + "/audit"
	var sizes []int
	last, cursor := 0.0, ""
	for cursor != "end" {
		a := get(t, url+"?cursor="+cursor)
		items := a.body["items"].([]any)
		sizes = append(sizes, len(items))
		for _, i := range items {
			item := i.(map[string]any)
			if item["claimId"] != claim || item["record"].(float64) <= last {
				t.Errorf("after record %v: got %v of %v", last, item["record"], item["claimId"])
			}
			last = item["record"].(float64)
		}
		cursor = "end"
		if next, more := a.body["next"].(string); more {
			cursor = next
		}
	}
	if fmt.Sprint(sizes) != "[100 99]" {
		t.Errorf("the pages have %v records, want 100 and 99", sizes)
	}
	if a := get(t, url+fmt.Sprintf("?cursor=%d", all+1)); a.status != http.StatusOK || len(a.body["items"].([]any)) != 0 || a.body["next"] != nil {
		t.Errorf("behind the last: got %d %v", a.status, a.body)
	}
}

func TestAuditRefused(t *testing.T) {
	url, _, _ := recording(t, "CLM-001-1", time.Hour)
	for path, want := range map[string]struct {
		status int
		code   string
	}{
		"CLM-001-2/audit":                             {404, "subject_not_found"},
		"CLM-001-1/audit?tenant=other":                {404, "subject_not_found"},
		"CLM-001-1/audit?cursor=x":                    {422, "invalid_cursor"},
		"CLM-001-1/audit?cursor=-1":                   {422, "invalid_cursor"},
		"CLM-001-1/audit?cursor=0":                    {422, "invalid_cursor"},
		"CLM-001-1/audit?cursor=99999999999999999999": {422, "invalid_cursor"},
		"CLM-001-1/audit/more":                        {404, "not_found"},
	} {
		a := get(t, url+"/subjects/tiss-submission/"+path)
		a.refused(t, path, want.status, want.code)
	}
}

func TestKPIs(t *testing.T) {
	url, _, _ := recording(t, "CLM-001-1", time.Hour)
	post(t, url+"/outcomes", `{"id":"CLM-001-1"}`)
	for _, path := range []string{"/kpis", "/kpis?policy=tiss-submission"} {
		a := get(t, url+path)
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
	a := get(t, url+"/kpis?policy=none")
	a.refused(t, "a policy that nobody knows", http.StatusUnprocessableEntity, "unknown_policy")
}
