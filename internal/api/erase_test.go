package api_test

import (
	"strings"
	"testing"

	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
)

// TestErase: what is exported after a subject was erased names it nowhere, and is whole.
func TestErase(t *testing.T) {
	c := open(t)
	const claim = "CLM-001-1"
	c.Fail(decision.DefaultPolicy, claim, "TIMEOUT", -1)
	c.post("otto", "/dead-letters/"+c.permanent(claim)+"/discard", `{"reason":"x"}`)
	c.Deliver(true)
	c.post("ada", "/subjects/tiss-submission/"+claim+"/erase", `{"reason":"pedido de CLM-001-1, protocolo 4711"}`)
	var all strings.Builder
	_, err := audit.Export(t.Context(), c.Memory, &all, audit.Selection{}, audit.JSONLines, nil)
	if err != nil || strings.Contains(all.String(), claim) || strings.Contains(all.String(), `"figures"`) ||
		!strings.Contains(all.String(), `"kind":"erasure"`) || !strings.Contains(all.String(), "pedido de #1, protocolo 4711") {
		t.Errorf("the export shows %s (%v)", &all, err)
	}
	r, err := audit.Verify(t.Context(), c.Memory, audit.VerifyOptions{}, nil)
	if err != nil || r.Expunged != 5 {
		t.Errorf("verified %+v (%v)", r, err)
	}
}
