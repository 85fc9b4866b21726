package api_test

import (
	"net/http"
	"strings"
	"testing"

	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
)

// What is still to be done about a subject is said; once it is erased its name leads nowhere.
func TestErase(t *testing.T) {
	c := open(t)
	const claim, path, body = "CLM-001-1", "/subjects/tiss-submission/CLM-001-1/erase", `{"reason":"pedido de CLM-001-1, protocolo 4711"}`
	busy := func(says string) {
		t.Helper()
		a := c.post("ada", path, body)
		if a.refused(t, says, http.StatusConflict, "subject_busy"); !strings.Contains(a.text, says) {
			t.Errorf("got %s, want that %s", a.text, says)
		}
	}
	c.refuses("ada", path, body, http.StatusNotFound, "subject_not_found")
	c.Fail(decision.DefaultPolicy, claim, "TIMEOUT", -1)
	busy("a retry of it is under way")
	id := c.permanent(claim)
	busy("its dead letter " + id + " waits for a person")
	c.post("otto", "/dead-letters/"+id+"/discard", `{"reason":"x"}`)
	busy("the answer about its dead letter " + id + " is on its way")
	c.Deliver(true)
	for reason, code := range map[string]string{"": "reason_required", " ": "reason_required", strings.Repeat("x", 501): "reason_too_long"} {
		c.refuses("ada", path, `{"reason":"`+reason+`"}`, http.StatusUnprocessableEntity, code)
	}
	if a := c.post("ada", path, body); a.status != http.StatusOK || a.body["records"] != 5.0 || a.body["record"] != 6.0 {
		t.Fatalf("got %d %s", a.status, a.text)
	}
	c.refuses("ada", path, body, http.StatusNotFound, "subject_not_found")
	c.refuses("vera", "/subjects/tiss-submission/"+claim, "", http.StatusNotFound, "subject_not_found")
	if a := c.get("vera", "/dead-letters?state=all"); strings.Contains(a.text, claim) ||
		strings.Contains(a.text, id) {
		t.Errorf("the dead letters are %s", a.text)
	}
	var all strings.Builder
	_, err := audit.Export(t.Context(), c.Memory, &all, audit.Selection{}, audit.JSONLines, nil)
	if err != nil || strings.Contains(all.String(), claim) || strings.Contains(all.String(), `"figures"`) ||
		!strings.Contains(all.String(), `"kind":"erasure"`) || !strings.Contains(all.String(), "pedido de #1, protocolo 4711") {
		t.Errorf("the export shows %s (%v)", &all, err)
	}
	for _, line := range c.lines.All() {
		if strings.Contains(line.Message, claim) {
			t.Errorf("the log tells %s", line.Message)
		}
	}
	r, err := audit.Verify(t.Context(), c.Memory, audit.VerifyOptions{}, nil)
	if err != nil || r.Expunged != 5 {
		t.Errorf("verified %+v (%v)", r, err)
	}
}
