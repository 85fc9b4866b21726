package decision_test

import (
	"testing"

	"retry-worker/internal/classify"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// TestR25Presumption: what words of refusal speak for is tried again so often as the policy says, counted by what is
// remembered of the episode and without a memory by retryCount, and is permanent then.
func TestR25Presumption(t *testing.T) {
	remembers := func(presumed int64) decision.Past { return decision.Past{Presumed: presumed, Remembers: true} }
	for _, tt := range []struct {
		name            string
		presumedRetries int64
		count           string
		past            decision.Past
		unknown         decision.UnknownError
		outcome         decision.Outcome
		class           decision.ErrorClassification
	}{
		{"none", 0, "0", remembers(0), "", "PERMANENT_ERROR", "PERMANENT"},
		{"the first of one", 1, "0", remembers(0), "", "RETRY", "UNKNOWN"},
		{"the second of one", 1, "1", remembers(1), "", "PERMANENT_ERROR", "PERMANENT"},
		{"the first after other failures", 1, "3", remembers(0), "", "RETRY", "UNKNOWN"},
		{"the second of two", 2, "1", remembers(1), "", "RETRY", "UNKNOWN"},
		{"the third of two", 2, "2", remembers(2), "", "PERMANENT_ERROR", "PERMANENT"},
		{"without a memory the first", 1, "0", decision.Past{}, "", "RETRY", "UNKNOWN"},
		{"without a memory a later one", 1, "1", decision.Past{}, "", "PERMANENT_ERROR", "PERMANENT"},
		{"looks like something, so it is not unknown", 1, "0", remembers(0), decision.GiveUpUnknown, "RETRY", "UNKNOWN"},
		{"the limit comes first", 5, "5", remembers(0), "", "MAX_RETRIES_EXCEEDED", "UNKNOWN"},
	} {
		p := decisiontest.TISSSubmission()
		p.PresumedRetries, p.UnknownError = tt.presumedRetries, tt.unknown
		p.Rules = decisiontest.Rules(classify.Rule{Name: "patient", Class: decision.Permanent, Rank: classify.Refusal, Reason: "INVALID_PATIENT_DATA",
			Team: "cadastro", Phrases: []string{"cpf invalido"}})
		d := decideWith(p, claim(tt.count, "CPF inválido"), tt.past, analysed)
		if d.Outcome != tt.outcome || d.ErrorClassification != tt.class || d.MatchedRule != "patient" || d.Presumes() != (tt.class == "UNKNOWN") {
			t.Errorf("%s: %s, %s by %q, presumes %t", tt.name, d.Outcome, d.ErrorClassification, d.MatchedRule, d.Presumes())
		}
		switch {
		case d.Outcome == decision.PermanentError && (d.Team != "cadastro" || d.Reason != "INVALID_PATIENT_DATA"):
			t.Errorf("%s: for %q by reason %s", tt.name, d.Team, d.Reason)
		case d.ShouldRetry() && (d.Team != "" || d.RetryReason[:13] != "Unknown error"):
			t.Errorf("%s: retried, for %q: %s", tt.name, d.Team, d.RetryReason)
		}
	}
}
