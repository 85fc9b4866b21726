package api_test

import (
	"context"
	"net/http"
	"regexp"
	"testing"

	"retry-worker/internal/api"
	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/text"
)

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
