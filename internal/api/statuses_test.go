package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/guard"
)

// call is one request of an operation.
type call struct{ method, path, body string }

// known is what calls ask for: an open dead letter of CLM-001-1, two bulk runs, the token of a plan for all that
// is open, and a cause that was taught.
type known struct{ dead, running, paused, token, cause string }

// prepare has all of it there, and CLM-002-1, which is through.
func (c *fixture) prepare() known {
	c.t.Helper()
	k := known{running: c.run("INSURANCE_EXPIRED"), paused: c.run("AUTHORIZATION_DENIED"), dead: c.permanent("CLM-001-1")}
	c.post("ada", "/bulk-runs/"+k.paused+"/pause", "{}")
	c.Fail(decision.DefaultPolicy, "CLM-002-1", "the lights went out", -1)
	c.Succeed(decision.DefaultPolicy, "CLM-002-1")
	k.token = c.plan(retryAll)
	c.portal(aPortal)
	k.cause = c.cause("UNKNOWN")
	c.post("ada", "/causes/"+k.cause+"/teach", `{"classification":"TRANSIENT","reason":"x"}`)
	return k
}

// calls are, by operation, the first request of testdata/who-may.txt.
func calls(t *testing.T, k known) map[string]call {
	t.Helper()
	all := map[string]call{}
	fill := strings.NewReplacer("LETTER", k.dead, "RUN", k.running, "PAUSED", k.paused, "TOKEN", k.token, "CAUSE", k.cause, "CLAIM", "CLM-001-1")
	_, requests := whoMay(t)
	for _, r := range requests {
		if name, _ := described(t).find(r.method, r.path); name != "" && all[name] == (call{}) {
			all[name] = call{r.method, fill.Replace(strings.TrimPrefix(r.path, "/api/v1")), fill.Replace(r.body)}
		}
	}
	return all
}

// to asks for it; change is done to the request last.
func (l call) to(t *testing.T, url string, change ...func(*http.Request)) answer {
	t.Helper()
	if l.method != http.MethodGet {
		change = append([]func(*http.Request){header("Content-Type", "application/json")}, change...)
	}
	return ask(t, l.method, url+l.path, l.body, change...)
}

// TestAMistakeOfOurs is answered with 500, in words that tell nothing of it; the log tells where, and the panic's type.
func TestAMistakeOfOurs(t *testing.T) {
	broken := open(t, func(o *api.Options, _ *guard.Services) {
		o.Gate.Tokens = func() *access.Tokens { panic("mistake is ours") }
	})
	if a := broken.get("ada", "/dead-letters"); a.status != http.StatusInternalServerError || strings.Contains(a.text, "mistake") {
		t.Errorf("a panic is answered with %d %s", a.status, a.text)
	}
	told := broken.lines.FilterMessageSnippet("broke its handler").All()
	if len(told) != 1 || told[0].ContextMap()["stack"] == "" || told[0].ContextMap()["panic"] != "string" {
		t.Errorf("the log tells %v", told)
	}
}

// TestWhatTheGateRefuses is answered as it is described; internal/access says when.
func TestWhatTheGateRefuses(t *testing.T) {
	c, local := open(t), starting(t)
	wrong := header("Authorization", "Bearer rwt_wrong")
	for range 6 {
		get(t, c.url+"/causes", wrong)
	}
	for what, a := range map[string]answer{
		"403 forbidden_host": get(t, local+"/causes", func(r *http.Request) { r.Host = "evil.example" }), "429 too_many_attempts": get(t, c.url+"/causes", wrong),
		"400 invalid_authorization":  get(t, c.url+"/causes", header("Authorization", "Basic YWRhOmFkYQ==")),
		"415 unsupported_media_type": post(t, c.url+"/outcomes", "{}", c.as("ada"), header("Content-Type", "text/plain")),
	} {
		if got := fmt.Sprint(a.status, " ", a.body["error"]); got != what {
			t.Errorf("got %s, want %s", got, what)
		}
	}
}
