package decision_test

import (
	"strings"
	"testing"

	"retry-worker/internal/decision"
)

// TestReasonsAreClosed: what a rule may give and what decisions give themselves, each once, fit to label a metric.
func TestReasonsAreClosed(t *testing.T) {
	seen := map[decision.Reason]bool{}
	for _, r := range decision.Reasons() {
		if seen[r] || r == "" || strings.ToUpper(string(r)) != string(r) {
			t.Errorf("reason %q", r)
		}
		seen[r] = true
	}
	for _, r := range decision.RuleReasons() {
		if !seen[r] {
			t.Errorf("%s is no reason", r)
		}
	}
}
