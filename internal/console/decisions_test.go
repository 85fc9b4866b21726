package console_test

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/worker"
)

// The API answers what the command prints, word for word, and needs no journal for that.
func TestDecisions(t *testing.T) {
	url := serve(t, nil, now) + "/api/v1/decisions"
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
		_, flat := worker.DryRun(decisiontest.Policies(), "", tt.variables, now)
		var want map[string]any
		if err := json.Unmarshal(flat, &want); err != nil {
			t.Fatal(err)
		}
		if a.status != tt.status || a.body["outcome"] != tt.outcome || !reflect.DeepEqual(a.body, want) {
			t.Errorf("%s: got %d %v, want %d %v", tt.body, a.status, a.body, tt.status, want)
		}
	}
}

func TestDecisionsOfAnotherPolicyOrInstant(t *testing.T) {
	url := serve(t, nil, now) + "/api/v1/decisions"
	a := post(t, url, `{"policy":"none","id":"x","error":"y"}`)
	if a.status != http.StatusUnprocessableEntity || a.body["outcome"] != "REJECTED" || a.body["rejection"] != "UNKNOWN_POLICY" {
		t.Errorf("got %d %v", a.status, a.body)
	}
	a = post(t, url, `{"id":"CLM-001-1","error":"TIMEOUT","now":"2025-01-12T07:40:00-03:00"}`)
	if next, _ := a.body["nextRetryTime"].(string); a.status != http.StatusOK || !strings.HasPrefix(next, "2025-01-12T10:4") {
		t.Errorf("got %d %v", a.status, a.body)
	}
}

func TestDecisionsRefused(t *testing.T) {
	url := serve(t, nil, now) + "/api/v1/decisions"
	for body, want := range map[string]struct {
		status int
		code   string
	}{
		`{"id":"CLM-001-1","error":"x","now":"yesterday"}`:                {422, "invalid_now"},
		`{"id":"CLM-001-1","error":"x","now":"9999-12-31T00:00:00Z"}`:     {422, "invalid_now"},
		`{"id":"CLM-001-1","error":"x","httpStatus":"503"}`:               {422, "invalid_http_status"},
		`{"id":"CLM-001-1","error":"x","httpStatus":503.5}`:               {422, "invalid_http_status"},
		`{"id":"CLM-001-1","error":"x","httpStatus":42}`:                  {422, "invalid_http_status"},
		`{"id":"CLM-001-1","error":"x","policy":{}}`:                      {422, "invalid_policy"},
		`{"id":"CLM-001-1","error":"x","retry_count":1}`:                  {422, "unknown_field"},
		`{"id":"CLM-001-1","error":"x"`:                                   {400, "invalid_json"},
		`{"id":"CLM-001-1","error":"` + strings.Repeat("x", 1<<16) + `"}`: {413, "body_too_large"},
	} {
		a := post(t, url, body)
		a.refused(t, short(body), want.status, want.code)
	}
}
