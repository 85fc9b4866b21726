package decision_test

import (
	"testing"

	"retry-worker/internal/decision"
)

// TestR01Order where an empty error is transient: malformed input, the limit, a permanent error, a transient one. The whole
// order, where it is refused, is TestDecideEqualsOracle's.
func TestR01Order(t *testing.T) {
	p := assumingTransient()
	tests := []struct {
		name    string
		count   string
		text    string
		outcome decision.Outcome
		// code of the rejection, or what matched.
		code  string
		class decision.ErrorClassification
	}{
		{"1 comes first where empty errors are transient too", "-1", "", "REJECTED", "INVALID_RETRY_COUNT", ""},
		{"2 before 3: no error at the limit, assumed transient below it", "5", "", "MAX_RETRIES_EXCEEDED", "", "UNKNOWN"},
		{"3 by the policy: an empty error is transient", "0", "", "RETRY", "", "TRANSIENT"},
		{"3 by the policy: so is white space", "4", "\u00a0", "RETRY", "", "TRANSIENT"},
		{"4 is no less final where empty errors are transient", "0", "DUPLICATE_CLAIM", "PERMANENT_ERROR", "DUPLICATE_CLAIM", "PERMANENT"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := decide(p, claim(tt.count, tt.text))
			code := d.MatchedRule
			if d.Rejection != nil {
				code = string(d.Rejection.Code)
			}
			if d.Outcome != tt.outcome || code != tt.code || d.ErrorClassification != tt.class {
				t.Errorf("got %s %q %q, want %s %q %q", d.Outcome, code, d.ErrorClassification, tt.outcome, tt.code, tt.class)
			}
		})
	}
}

// TestR08RetryReason: the sentences where the limit is another, and of an empty error.
func TestR08RetryReason(t *testing.T) {
	none := patient(0)
	tests := []struct {
		policy      *decision.Policy
		count, text string
		want        string
	}{
		{assumingTransient(), "1", " ", "Transient error, retry 2 of 5"},
		{none, "0", "TIMEOUT", "Maximum of 0 retries reached"},
		{patient(1<<63 - 1), "9223372036854775806", "TIMEOUT", "Transient error, retry 9223372036854775807 of 9223372036854775807"},
	}
	for _, tt := range tests {
		if got := decide(tt.policy, claim(tt.count, tt.text)).RetryReason; got != tt.want {
			t.Errorf("retryCount %s, %q: %q, want %q", tt.count, tt.text, got, tt.want)
		}
	}
}
