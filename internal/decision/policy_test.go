package decision_test

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
)

// other is a policy that shares nothing with tiss-submission: the core must not know either's names.
func other() *decision.Policy {
	return &decision.Policy{
		Name: "whatsapp-message", IDVariable: "messageId", ErrorVariable: "sendError",
		IDPattern: regexp.MustCompile(`^[0-9a-f]+$`), InvalidID: decision.InvalidID, MaxRetries: 1,
		Backoff:    decision.BackoffRule{Base: 5 * time.Second, Min: time.Second, Max: time.Minute, Factor: 6},
		Rules:      decisiontest.Rules(decisiontest.Permanent("404", "ti"), decisiontest.Transient("429")),
		EmptyError: decision.AssumeTransient, LimitTeam: "ti",
	}
}

func TestFindPolicy(t *testing.T) {
	policies := decisiontest.Policies()
	policies["whatsapp-message"] = other()
	for asked, want := range map[string]string{
		"": "tiss-submission", "tiss-submission": "tiss-submission", "whatsapp-message": "whatsapp-message",
	} {
		if p, rejection := policies.Find(asked); rejection != nil || p.Name != want {
			t.Errorf("%q finds %v (%v), want %s", asked, p, rejection, want)
		}
	}
	for _, asked := range []string{"TISS-SUBMISSION", " tiss-submission", "no-such", "\n"} {
		p, rejection := policies.Find(asked)
		if p != nil || rejection == nil || rejection.Code != decision.UnknownPolicy {
			t.Errorf("%q finds %v (%v), want UNKNOWN_POLICY", asked, p, rejection)
		}
	}
	_, rejection := policies.Find("no-such")
	const want = `UNKNOWN_POLICY: retryPolicy is "no-such" (text), expected one of tiss-submission, whatsapp-message`
	if got := rejection.Error(); got != want {
		t.Errorf("message\n%s\nwant\n%s", got, want)
	}
}

// TestVariablesToFetch: each variable once, so that only what is needed is fetched.
func TestVariablesToFetch(t *testing.T) {
	policies := decisiontest.Policies()
	policies["whatsapp-message"], policies["another"] = other(), other()
	if got, want := policies.IDVariables(), []string{"claimId", "messageId"}; !slices.Equal(got, want) {
		t.Errorf("id variables %v, want %v", got, want)
	}
	policies["another"].Context = []decision.ContextField{{Variable: "amount"}}
	if got, want := policies.GateVariables(), []string{"amount", "claimId", "messageId", "operadora"}; !slices.Equal(got, want) {
		t.Errorf("variables of what waits for a destination %v, want %v", got, want)
	}
}
