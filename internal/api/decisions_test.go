package api_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"retry-worker/internal/api"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

// TestDecisions: what is decided, or refused as a process would have an incident, without a journal.
func TestDecisions(t *testing.T) {
	url := starting(t) + "/decisions"
	for body, want := range map[string]map[string]any{
		`{"id":"CLM-001-1","error":"TIMEOUT"}`: {"outcome": "RETRY", "shouldRetry": true, "retryCount": 1.0, "maxRetries": 5.0,
			"originalError": "TIMEOUT", "matchedRule": "TIMEOUT", "matchedText": "TIMEOUT", "hint": nil, "reason": "TIMEOUT", "evidence": nil,
			"retryReason": "Transient error, retry 1 of 5", "retryPolicy": "tiss-submission", "errorClassification": "TRANSIENT"},
		`{"policy":"tiss-submission","id":"CLM-001-1","error":"HTTP 503 <é>","retryCount":2,"httpStatus":503}`: {"outcome": "RETRY",
			"retryCount": 3.0, "originalError": "HTTP 503 <é>", "matchedRule": "503"},
		`{"id":"CLM-001-1","error":"DUPLICATE_CLAIM","retryCount":null,"httpStatus":null,"policy":null}`: {"outcome": "PERMANENT_ERROR",
			"shouldRetry": false, "retryCount": 0.0, "responsibleTeam": "faturamento", "backoffMinutes": nil, "nextRetryTime": nil},
		`{"id":"CLM-001-1","error":"x","retryCount":5.0}`:         {"outcome": "MAX_RETRIES_EXCEEDED", "retryCount": 5.0, "matchedRule": nil, "matchedText": nil},
		`{"id":"CLM-001-1","error":"TIMEOUT 503","explain":true}`: {"outcome": "RETRY"},
		`{"id":"CLM-001-1","error":"x","retryCount":2.5}`:         {"outcome": "REJECTED", "rejection": "INVALID_RETRY_COUNT", "matchedRule": nil},
		`{"id":"CLM-001-1","error":"x","retryCount":"2"}`:         {"outcome": "REJECTED", "rejection": "INVALID_RETRY_COUNT"},
		`{"id":"CLM-001","error":"x"}`:                            {"outcome": "REJECTED", "rejection": "INVALID_CLAIM_ID", "retryPolicy": "tiss-submission"},
		`{"id":"CLM-001-1","error":" "}`:                          {"outcome": "REJECTED", "rejection": "INVALID_ERROR_MESSAGE"},
		`{"id":"CLM-001-1"}`:                                      {"outcome": "REJECTED", "rejection": "INVALID_ERROR_MESSAGE"},
		`{}`:                                                      {"outcome": "REJECTED", "rejection": "INVALID_CLAIM_ID"},
	} {
		a, status := post(t, url, body), http.StatusOK
		if want["outcome"] == "REJECTED" {
			status = http.StatusUnprocessableEntity
		}
		for name, value := range want {
			if a.body[name] != value && (a.body[name] != nil || value != nil) {
				t.Errorf("%s: %s is %v, want %v", body, name, a.body[name], value)
			}
		}
		facts, _ := a.body["evidence"].([]any)
		if a.status != status || strings.Contains(body, "explain") != (len(facts) == 2) {
			t.Errorf("%s: got %d with %v, want %d", body, a.status, facts, status)
		}
	}
}

// jobQueue is a policy that reads more than the others: a status, and what a job brings of its own.
func jobQueue() *decision.Policy {
	p := decisiontest.TISSSubmission()
	p.Name, p.IDVariable, p.ErrorVariable, p.HTTPStatusVariable, p.MaxRetries = "job-queue", "jobId", "jobError", "httpStatus", 0
	p.IDPattern, p.InvalidID, p.Catalogue = regexp.MustCompile(`^\S+$`), decision.InvalidID, "0123456789ab"
	p.Own = &decision.OwnVariables{MaxAttempts: "maxAttempts", Delay: "delayBetweenAttempts", NonRetryable: "nonRetryable"}
	p.Rules = decisiontest.Rules(
		classify.Rule{Name: "missing", Class: decision.Permanent, Reason: "NOT_FOUND", Team: "ti", Hint: text.Translated{Portuguese: "o destino mudou"}, Statuses: []string{"404"}},
		decisiontest.Transient("TIMEOUT"))
	return p
}

// invalidOutcomes is a journal that cannot hold any outcome.
type invalidOutcomes struct{ guard.Recorder }

func (invalidOutcomes) Conclude(context.Context, *journal.Outcome) (journal.Concluded, error) {
	return journal.Concluded{}, journal.ErrInvalid
}

func TestUnrecordable(t *testing.T) {
	c := open(t, func(_ *api.Options, to *guard.Services) { to.Journal = invalidOutcomes{} })
	c.refuses("otto", "/outcomes", `{"id":"CLM-001-1"}`, http.StatusUnprocessableEntity, "unrecordable")
}

func TestRetryOfAPolicyThatIsGone(t *testing.T) {
	c := open(t)
	id := c.permanent("CLM-001-1")
	c.SetPolicies(decision.Policies{})
	a := c.post("otto", "/dead-letters/"+id+"/retry", `{"reason":"x"}`)
	a.refused(t, "without a backoff", http.StatusConflict, "policy_not_found")
}
