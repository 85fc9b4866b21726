package api_test

import (
	"net/http"
	"strings"
	"testing"

	"retry-worker/internal/audit"
	"retry-worker/internal/decision"
)

// cause returns the id of the one cause of that reason.
func (c *fixture) cause(reason string) string {
	c.t.Helper()
	for _, of := range c.get("vera", "/causes").body["items"].([]any) {
		if f := of.(map[string]any); f["reason"] == reason {
			return f["id"].(string)
		}
	}
	c.t.Fatalf("no cause has the reason %s", reason)
	return ""
}

// What an admin teaches of a cause holds for what comes next, until it is taken back; it is in the audit, in dry runs, and
// below evidence of rank 1 to 3 (R26).
func TestTeach(t *testing.T) {
	c := open(t)
	const odd, specified = "portal diz: lote 4711 fora do leiaute", "TIMEOUT"
	decided := func(id, text, outcome, reason string) {
		t.Helper()
		dry := c.post("vera", "/decisions", `{"id":"CLM-100-1","error":"`+text+`"}`)
		if dry.body["outcome"] != outcome || dry.body["retryReason"] != reason {
			t.Errorf("%q would come to %v: %v, want %s: %s", text, dry.body["outcome"], dry.body["retryReason"], outcome, reason)
		}
		d := c.Fail(decision.DefaultPolicy, id, text, -1).Decision
		if string(d.Outcome) != outcome || d.RetryReason != reason || (d.Taught > 0) != strings.Contains(reason, "taught") {
			t.Errorf("%q came to %s: %s (%d), want %s: %s", text, d.Outcome, d.RetryReason, d.Taught, outcome, reason)
		}
	}
	const retried = "Unknown error, retry 1 of 5"
	decided("CLM-001-1", odd, "RETRY", retried)
	decided("CLM-002-1", specified, "RETRY", "Transient error, retry 1 of 5")
	id, other := c.cause("UNKNOWN"), c.cause("TIMEOUT")
	at := "/causes/" + id
	forget := call{http.MethodDelete, at + "/teach", `{"reason":"foi engano"}`}
	teach := func(of, body string) map[string]any {
		t.Helper()
		a := c.post("ada", "/causes/"+of+"/teach", body)
		if a.status != http.StatusOK {
			t.Fatalf("got %d %s", a.status, a.text)
		}
		return a.body["taught"].(map[string]any)
	}
	taught := teach(id, `{"classification":"PERMANENT","team":"cadastro","reason":"leiaute da Ana Souza, CPF 529.982.247-25"}`)
	if taught["team"] != "cadastro" || taught["by"] != "ada" || strings.Contains(taught["reason"].(string), "529") {
		t.Errorf("taught is %v", taught)
	}
	teach(other, `{"classification":"PERMANENT","team":"cadastro","reason":"x"}`)
	decided("CLM-003-1", strings.Replace(odd, "4711", "4712", 1), "PERMANENT_ERROR", "Permanent error, not retried; taught of its cause")
	decided("CLM-004-1", specified, "RETRY", "Transient error, retry 1 of 5")
	if items := c.get("vera", "/dead-letters?team=cadastro").body["items"].([]any); len(items) != 1 {
		t.Errorf("cadastro has %d dead letters, want the one that it was taught to act on", len(items))
	}
	if a := c.get("vera", "/causes?taught=true&limit=1"); len(a.body["items"].([]any)) != 1 || a.body["next"] == nil {
		t.Errorf("the first page of what was taught is %s", a.text)
	} else if a := c.get("vera", "/causes?taught=true&limit=1&cursor="+a.body["next"].(string)); len(a.body["items"].([]any)) != 1 || a.body["next"] != nil {
		t.Errorf("the second page of what was taught is %s", a.text)
	}
	teach(id, `{"classification":"TRANSIENT","reason":"passa sozinho"}`)
	decided("CLM-005-1", odd, "RETRY", "Transient error, retry 1 of 5; taught of its cause")
	if a := forget.to(t, c.url, c.as("ada")); a.status != http.StatusOK || a.body["taught"] != nil {
		t.Errorf("forgotten, it is %s", a.text)
	}
	decided("CLM-006-1", odd, "RETRY", retried)
	var all strings.Builder
	if _, err := audit.Export(t.Context(), c.Memory, &all, audit.Selection{}, audit.JSONLines, nil); err != nil ||
		strings.Count(all.String(), `"kind":"teaching"`) != 4 || !strings.Contains(all.String(), "foi engano") {
		t.Errorf("the export shows %s (%v)", &all, err)
	}
	if _, err := audit.Verify(t.Context(), c.Memory, audit.VerifyOptions{}, nil); err != nil {
		t.Error(err)
	}
}
