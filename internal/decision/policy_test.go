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

func TestAnotherPolicyDecidesByItsOwn(t *testing.T) {
	tests := []struct {
		name    string
		v       decision.Variables
		outcome decision.Outcome
		code    decision.RejectionCode
		reason  decision.Reason
		team    decision.Team
		delay   time.Duration
	}{
		{"its own id", decision.Variables{ID: `"CLM-A-1"`, Error: `"429"`}, "REJECTED", "INVALID_ID", "", "", 0},
		{"its permanent rule", decision.Variables{ID: `"a1"`, Error: `"HTTP 404"`}, "PERMANENT_ERROR", "", "404", "ti", 0},
		{"its transient rule", decision.Variables{ID: `"a1"`, Error: `"HTTP 429"`}, "RETRY", "", "429", "", 5 * time.Second},
		{"no rule of another", decision.Variables{ID: `"a1"`, Error: `"DUPLICATE_CLAIM"`}, "RETRY", "", "UNKNOWN", "", 5 * time.Second},
		{"its empty error", decision.Variables{ID: `"a1"`, Error: "null"}, "RETRY", "", "EMPTY_ERROR", "", 5 * time.Second},
		{"its limit", decision.Variables{ID: `"a1"`, Error: `"HTTP 404"`, RetryCount: "1"}, "MAX_RETRIES_EXCEEDED", "", "MAX_RETRIES", "ti", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := decide(other(), tt.v)
			if d.Outcome != tt.outcome || d.Reason != tt.reason || d.Team != tt.team || d.Backoff.Delay != tt.delay {
				t.Errorf("got %s, reason %q, team %q, %s", d.Outcome, d.Reason, d.Team, d.Backoff.Delay)
			}
			if d.Policy != "whatsapp-message" || d.Rejection == nil && d.MaxRetries != 1 {
				t.Errorf("decided by %q with %d retries", d.Policy, d.MaxRetries)
			}
			if tt.code != "" && (d.Rejection == nil || d.Rejection.Code != tt.code || d.Rejection.Variable != "messageId") {
				t.Errorf("rejected as %v, want %s of messageId", d.Rejection, tt.code)
			}
		})
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
