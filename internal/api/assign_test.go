package api_test

import (
	"net/http"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/guard"
)

// TestWhoHasIt: who may decide on a dead letter takes it, gives it to somebody who may, too, and gives it back; lists and bulk
// runs find it by that, days are the hospital's, and an admin gives away all that somebody has.
func TestWhoHasIt(t *testing.T) {
	c := open(t, func(o *api.Options, _ *guard.Services) { o.Zone = time.FixedZone("America/Sao_Paulo", -3*3600) })
	c.Tokens.Teams = map[string]access.Teams{"beto": "cadastro", "fina": "faturamento"}
	c.Tokens.Publish(map[string]access.Role{"vera": access.Viewer, "otto": access.Operator, "ada": access.Admin,
		"beto": access.Operator, "fina": access.Operator}, time.Time{})
	mine, other := c.permanent("CLM-001-1"), c.permanent("CLM-002-1")
	put := func(who, path, body string) answer {
		return ask(t, http.MethodPut, c.url+path, body, header("Content-Type", "application/json"), c.as(who))
	}
	holds := func(who, filter string, want int) {
		t.Helper()
		items, _ := c.get(who, "/dead-letters?"+filter).body["items"].([]any)
		groups, _ := c.get(who, "/dead-letters/groups?"+filter).body["items"].([]any)
		if len(items) != want || (len(groups) > 0) != (want > 0) {
			t.Errorf("%s finds %d by %s in %d causes, want %d", who, len(items), filter, len(groups), want)
		}
	}
	for _, give := range []struct {
		who, body, assignee string
		until               any
	}{
		{"otto", `{"assignee":"me","note":"CPF 529.982.247-25"}`, "otto", nil},
		{"otto", `{"assignee":"fina","followUpAt":"2026-03-03"}`, "fina", "2026-03-03T03:00:00Z"},
		{"fina", `{"assignee":"ada","followUpAt":"2026-03-02T23:59:00-03:00"}`, "ada", "2026-03-03T02:59:00Z"},
		{"ada", `{"assignee":"fina","followUpAt":"2026-03-02"}`, "fina", "2026-03-02T03:00:00Z"},
	} {
		a := put(give.who, "/dead-letters/"+mine+"/assignment", give.body)
		has, _ := a.body["assignment"].(map[string]any)
		if a.status != http.StatusOK || has["assignee"] != give.assignee || has["followUpAt"] != give.until || has["by"] != give.who || has["note"] == "CPF 529.982.247-25" {
			t.Errorf("%s says %s: %d %v", give.who, give.body, a.status, has)
		}
	}
	before := c.Memory.End().Record
	put("otto", "/dead-letters/"+mine+"/assignment", `{"assignee":"fina","followUpAt":"2026-03-02"}`)
	if n := c.Memory.End().Record - before; n != 0 {
		t.Errorf("what is so already makes %d records", n)
	}
	holds("fina", "assignee=me", 1)
	holds("otto", "assignee=me", 0)
	holds("otto", "assignee=fina&followUp=today", 1)
	holds("otto", "assignee=nobody", 1)
	holds("otto", "followUp=2026-03-02", 0)
	put("otto", "/dead-letters/"+other+"/assignment", `{"assignee":"fina","note":"responde na quarta"}`)
	if plan := c.post("ada", "/bulk-runs/plan", `{"action":"discard","filter":{"assignee":"fina"}}`); plan.body["total"] != 2.0 {
		t.Errorf("the plan is %v", plan.body)
	}
	for _, to := range []struct {
		name        string
		given, left float64
	}{{"beto", 0, 2}, {"ada", 2, 0}, {"ada", 0, 0}} { // one who may not decide on them, and one who may
		if a := put("ada", "/assignees/fina", `{"assignee":"`+to.name+`"}`); a.body["given"] != to.given || a.body["left"] != to.left {
			t.Errorf("%+v gets %v", to, a.body)
		}
	}
	holds("ada", "assignee=me", 2)
	if note := c.get("ada", "/dead-letters/"+other).body["assignment"].(map[string]any)["note"]; note != "responde na quarta" {
		t.Errorf("the note that is handed over is %v", note)
	}
	holds("ada", "assignee=me&followUp=today", 1)
	put("ada", "/dead-letters/"+mine+"/assignment", `{}`)
	holds("ada", "assignee=nobody", 1)
}
