package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"testing"

	"retry-worker/internal/api"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/text"
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
		_, flat := worker.DryRun(decisiontest.Policies(), decision.DefaultPolicy, tt.variables, now, nil)
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
