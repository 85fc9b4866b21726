package api_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// The API answers what the command prints, word for word, and needs no journal for that.
func TestDecisions(t *testing.T) {
	url := starting(t) + "/decisions"
	for _, tt := range []struct {
		body, outcome string
		status        int
		variables     decision.Variables
	}{
		{`{"id":"CLM-001-1","error":"TIMEOUT"}`, "RETRY", 200, decision.Variables{ID: `"CLM-001-1"`, Error: `"TIMEOUT"`}},
		{`{"policy":"tiss-submission","id":"CLM-001-1","error":"HTTP 503 <é>","retryCount":2,"httpStatus":503}`, "RETRY", 200,
			decision.Variables{ID: `"CLM-001-1"`, Error: `"HTTP 503 <é>"`, RetryCount: "2"}},
		{`{"id":"CLM-001-1","error":"DUPLICATE_CLAIM","retryCount":null,"httpStatus":null,"policy":null}`, "PERMANENT_ERROR", 200,
			decision.Variables{ID: `"CLM-001-1"`, Error: `"DUPLICATE_CLAIM"`, RetryCount: "null"}},
		{`{"id":"CLM-001-1","error":"x","retryCount":5.0}`, "MAX_RETRIES_EXCEEDED", 200, decision.Variables{ID: `"CLM-001-1"`, Error: `"x"`, RetryCount: "5.0"}},
		{`{"id":"CLM-001-1","error":"x","retryCount":2.5}`, "REJECTED", 422, decision.Variables{ID: `"CLM-001-1"`, Error: `"x"`, RetryCount: "2.5"}},
		{`{"id":"CLM-001-1","error":"x","retryCount":"2"}`, "REJECTED", 422, decision.Variables{ID: `"CLM-001-1"`, Error: `"x"`, RetryCount: `"2"`}},
		{`{"id":"CLM-001","error":"x"}`, "REJECTED", 422, decision.Variables{ID: `"CLM-001"`, Error: `"x"`}},
		{`{"id":"CLM-001-1","error":" "}`, "REJECTED", 422, decision.Variables{ID: `"CLM-001-1"`, Error: `" "`}},
		{`{"id":"CLM-001-1"}`, "REJECTED", 422, decision.Variables{ID: `"CLM-001-1"`}},
		{`{}`, "REJECTED", 422, decision.Variables{}},
	} {
		a := post(t, url, tt.body)
		_, flat := worker.DryRun(decisiontest.Policies(), "", tt.variables, now, nil)
		if tt.status == http.StatusOK {
			flat = worker.WithEvidence(flat, worker.Explain(decisiontest.Policies(), "", tt.variables))
		}
		var want map[string]any
		testkit.Must(t, json.Unmarshal(flat, &want))
		if a.status != tt.status || a.body["outcome"] != tt.outcome || !reflect.DeepEqual(a.body, want) {
			t.Errorf("%s: got %d %v, want %d %v", tt.body, a.status, a.body, tt.status, want)
		}
	}
}

func TestDecisionsOfAnotherInstant(t *testing.T) {
	a := post(t, starting(t)+"/decisions", `{"id":"CLM-001-1","error":"TIMEOUT","now":"2025-01-12T07:40:00-03:00"}`)
	if next, _ := a.body["nextRetryTime"].(string); a.status != http.StatusOK || !strings.HasPrefix(next, "2025-01-12T10:4") {
		t.Errorf("got %d %v", a.status, a.body)
	}
}

// jobQueue is a policy that reads more than the others: a status, and what a job brings of its own.
func jobQueue() *decision.Policy {
	p := decisiontest.TISSSubmission()
	p.Name, p.IDVariable, p.ErrorVariable, p.HTTPStatusVariable, p.MaxRetries = "job-queue", "jobId", "jobError", "httpStatus", 0
	p.IDPattern, p.InvalidID, p.Catalogue = regexp.MustCompile(`^\S+$`), decision.InvalidID, "0123456789ab"
	p.Own = &decision.OwnVariables{MaxAttempts: "maxAttempts", Delay: "delayBetweenAttempts", NonRetryable: "nonRetryable"}
	p.Rules = decisiontest.Rules(
		classify.Rule{Name: "missing", Class: decision.Permanent, Reason: "NOT_FOUND", Team: "ti", Hint: "o destino mudou", Statuses: []string{"404"}},
		decisiontest.Transient("TIMEOUT"))
	return p
}

// What only some policies read reaches the decision as it would in a process.
func TestDecisionsWithWhatOnlySomePoliciesRead(t *testing.T) {
	queue := jobQueue()
	policies := decisiontest.Policies()
	policies[queue.Name] = queue
	url := listen(t, api.New(api.Options{Gate: access.Options{Now: func() time.Time { return now }, Hooks: access.NoHooks()}, Policies: func() decision.Policies { return policies }, Log: zap.NewNop()})) + "/api/v1/decisions"
	for _, tt := range []struct {
		fields string
		status int
		want   map[string]any
	}{
		{`"error":"x","httpStatus":404,"variables":{"maxAttempts":3}`, 200, map[string]any{"outcome": "PERMANENT_ERROR", "matchedRule": "missing", "reason": "NOT_FOUND", "matchedText": "404",
			"hint": "o destino mudou", "catalogue": "0123456789ab", "responsibleTeam": "ti"}},
		{`"error":"x","httpStatus":404.0`, 200, map[string]any{"matchedRule": "missing"}},
		{`"error":"TIMEOUT","httpStatus":0`, 200, map[string]any{"matchedRule": "TIMEOUT", "outcome": "MAX_RETRIES_EXCEEDED", "maxRetries": 0.0, "hint": nil}},
		{`"error":"x","httpStatus":99,"retryCount":2.5`, 422, map[string]any{"outcome": "REJECTED", "rejection": "INVALID_RETRY_COUNT"}},
		{`"error":"x","httpStatus":42`, 422, map[string]any{"outcome": "REJECTED", "rejection": "INVALID_HTTP_STATUS",
			"message": "INVALID_HTTP_STATUS: httpStatus is 42, expected a whole number from 100 to 599, or none"}},
		{`"error":"x","httpStatus":503.5`, 422, map[string]any{"rejection": "INVALID_HTTP_STATUS"}},
		{`"error":"x","httpStatus":"503"`, 422, map[string]any{"rejection": "INVALID_HTTP_STATUS"}},
		{`"error":"TIMEOUT","variables":{"maxAttempts":3,"delayBetweenAttempts":"PT30S"}`, 200,
			map[string]any{"outcome": "RETRY", "maxRetries": 2.0, "backoffDuration": "PT30S", "retryReason": "Transient error, retry 1 of 2"}},
		{`"error":"TIMEOUT","variables":{"maxAttempts":3,"delayBetweenAttempts":1500}`, 200, map[string]any{"backoffDuration": "PT1.5S"}},
		{`"error":"TIMEOUT","variables":{"maxAttempts":3,"nonRetryable":true}`, 200,
			map[string]any{"outcome": "PERMANENT_ERROR", "reason": "NON_RETRYABLE", "matchedRule": "nonRetryable", "matchedText": nil}},
		{`"error":"TIMEOUT","variables":{"maxAttempts":null}`, 200, map[string]any{"outcome": "MAX_RETRIES_EXCEEDED"}},
		{`"error":"TIMEOUT","variables":{}`, 200, map[string]any{"outcome": "MAX_RETRIES_EXCEEDED"}},
		{`"error":"TIMEOUT","variables":null`, 200, map[string]any{"outcome": "MAX_RETRIES_EXCEEDED"}},
		{`"error":"TIMEOUT","variables":{"maxAttempts":0}`, 422, map[string]any{"outcome": "REJECTED", "rejection": "INVALID_RETRY_POLICY"}},
		{`"error":"TIMEOUT","variables":{"maxAttempts":"3"}`, 422, map[string]any{"outcome": "REJECTED", "rejection": "INVALID_RETRY_POLICY"}},
		{`"error":"TIMEOUT","variables":{"maxAttempt":3}`, 422, map[string]any{"error": "unknown_variable",
			"message": `variables has "maxAttempt", which the policy job-queue does not read, expected one of maxAttempts, delayBetweenAttempts, nonRetryable`}},
		{`"error":"TIMEOUT","variables":{"":3}`, 422, map[string]any{"error": "unknown_variable"}},
		{`"error":"TIMEOUT","variables":{"httpStatus":404}`, 422, map[string]any{"error": "unknown_variable"}},
		{`"error":"TIMEOUT","variables":[3]`, 422, map[string]any{"error": "invalid_variables"}},
		{`"error":"TIMEOUT","variables":3`, 422, map[string]any{"error": "invalid_variables"}},
	} {
		a := post(t, url, `{"policy":"job-queue","id":"j-1",`+tt.fields+`}`)
		for name, want := range tt.want {
			if got, there := a.body[name]; a.status != tt.status || !there || got != want {
				t.Errorf("%s: got %d %v, want %s %v", tt.fields, a.status, a.body, name, want)
			}
		}
	}
	a := post(t, url, `{"id":"CLM-001-1","error":"TIMEOUT","variables":{"maxAttempts":3}}`)
	a.refused(t, "a policy that reads nothing more", http.StatusUnprocessableEntity, "unknown_variable")
}

// TestPoliciesInForce: the API follows a reload.
func TestPoliciesInForce(t *testing.T) {
	c := open(t)
	c.Fail(decision.DefaultPolicy, "CLM-001-1", "TIMEOUT", -1)
	const body = `{"policy":"job-queue","id":"j-1","error":"x"}`
	if a := c.post("vera", "/decisions", body); a.status != http.StatusUnprocessableEntity || a.body["rejection"] != "UNKNOWN_POLICY" {
		t.Errorf("before: got %v", a.body)
	}
	c.refuses("vera", "/kpis?policy=job-queue", "", http.StatusUnprocessableEntity, "unknown_policy")
	queue := jobQueue()
	c.SetPolicies(decision.Policies{queue.Name: queue})
	if a := c.post("vera", "/decisions", body); a.body["outcome"] != "MAX_RETRIES_EXCEEDED" || a.body["catalogue"] != "0123456789ab" {
		t.Errorf("after: got %v", a.body)
	}
	c.refuses("otto", "/outcomes", `{"policy":"job-queue","id":"j-1"}`, http.StatusNotFound, "subject_not_found")
	c.refuses("otto", "/outcomes", `{"policy":"job-queue","id":"j 1"}`, http.StatusUnprocessableEntity, "invalid_id")
	for _, policy := range []string{"job-queue", "tiss-submission"} { // the other is gone, but not what was recorded of it
		if a := c.get("vera", "/kpis?policy="+policy); a.status != http.StatusOK {
			t.Errorf("KPIs of %s after: got %d %v", policy, a.status, a.body)
		}
	}
}
