package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"retry-worker/internal/api"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
)

// What is exported loads, with every rule that can stand, where a policy of the hospital's own is among the causes too.
func TestCausesExportLoads(t *testing.T) {
	team := "faturamento"
	taught := func(id, policy, pattern string) api.Cause {
		return api.Cause{ID: id, Policy: policy, Reason: "CLAIM_DENIED", Pattern: pattern,
			Taught: &api.Teaching{Classification: decision.Permanent, Team: &team, Reason: "x", By: "ada"}}
	}
	causes := []api.Cause{
		taught("0a1b2c3d4e5f6071", "laudos-do-hospital", "o laudo # foi recusado pela auditoria"),
		taught("1a1b2c3d4e5f6071", decision.DefaultPolicy, "o convênio recusou a guia # por falta de laudo"),
		taught("2a1b2c3d4e5f6071", decision.DefaultPolicy, "a senha de autorização # venceu"),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		body := any(api.Page[api.DeadLetter]{Items: []api.DeadLetter{}})
		if r.URL.Path == "/api/v1/causes" {
			body = api.Page[api.Cause]{Items: causes}
		}
		testkit.Must(t, json.NewEncoder(w).Encode(body))
	}))
	defer server.Close()
	testkit.Environment(t, nil)
	said := retryWorker("causes", "export", "--server", server.URL).done(t).stdout
	loaded, err := catalogue.Parse("taught.yaml", []byte(said))
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	for _, id := range []string{"1a1b2c3d4e5f6071", "2a1b2c3d4e5f6071"} {
		if !strings.Contains(said, "name: taught-"+id) {
			t.Errorf("no rule of %s in\n%s", id, said)
		}
	}
	if loaded.Policies["laudos-do-hospital"] != nil || !strings.Contains(said, "# 0a1b2c3d4e5f6071 of laudos-do-hospital makes no rule") {
		t.Errorf("nothing is said of the own policy's cause:\n%s", said)
	}
}
