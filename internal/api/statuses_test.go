package api_test

import (
	"maps"
	"net/http"
	"slices"
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

// unknownIDs is the same request about what is not there.
func (l call) unknownIDs(k known) call {
	swap := strings.NewReplacer(k.dead, anID, k.running, anID, k.paused, anID, k.cause, "0123456789abcdef", aPortal, "nobody", "CLM-001-1", "CLM-009-9")
	return call{l.method, swap.Replace(l.path), swap.Replace(l.body)}
}

// wrong is the same request with a parameter, or a field, that there is not.
func (l call) wrong() call {
	if l.method == http.MethodGet {
		return call{l.method, l.path + "?nonsense=1", ""}
	}
	return call{l.method, l.path, strings.Replace(`{"nonsense":1,`+l.body[1:], ",}", "}", 1)}
}

// reads reports whether the operation changes nothing.
func (l call) reads(name string) bool {
	return l.method == http.MethodGet || strings.HasSuffix(name, "/decisions") || strings.HasSuffix(name, "/plan")
}

// TestEveryDescribedStatus asks each operation for each status that it is described with; ask holds each answer against
// its schema, and refuses what is not described.
func TestEveryDescribedStatus(t *testing.T) {
	d := described(t)
	d.mu.Lock()
	clear(d.produced)
	d.mu.Unlock()
	for name := range d.operations {
		if _, there := calls(t, known{})[name]; !there {
			t.Fatalf("no call of %s", name)
		}
	}
	c := open(t)
	k := c.prepare()
	for _, name := range slices.Sorted(maps.Keys(calls(t, k))) {
		l := calls(t, k)[name]
		if l.method != http.MethodGet {
			long := l
			long.body = strings.Repeat(" ", 1<<17)
			long.to(t, c.url, c.as("ada"))
			broken := l
			broken.body = "{"
			broken.to(t, c.url, c.as("ada"))
			broken.body = `{"reason":{"a":1,"\u0061":2}}`
			a := broken.to(t, c.url, c.as("ada"))
			a.refused(t, name+" with a field twice", http.StatusUnprocessableEntity, "duplicate_field")
			l.to(t, c.url, c.as("ada"), header("Content-Type", "application/json; charset=latin1")) // the gate takes care of other types
		} else {
			l.to(t, c.url, header("Authorization", "Basic YWRhOmFkYQ=="))
		}
		l.to(t, c.url)
		l.wrong().to(t, c.url, c.as("ada"))
		l.unknownIDs(k).to(t, c.url, c.as("ada"))
	}
	for name, l := range calls(t, k) {
		if l.reads(name) {
			l.to(t, c.url, c.as("ada"))
		}
	}
	for name, l := range calls(t, known{}) {
		if l.method != http.MethodGet {
			fresh := open(t)
			k := fresh.prepare()
			l = calls(t, k)[name]
			l.to(t, fresh.url, fresh.as("ada"))
			fresh.post("ada", "/dead-letters/"+k.dead+"/discard", `{"reason":"x"}`)
			l.to(t, fresh.url, fresh.as("ada")) // too late
		}
	}
	late := open(t)
	k = late.prepare()
	late.post("ada", "/subjects/tiss-submission/CLM-001-1/erase", `{"reason":"x"}`) // while a person is to decide
	late.post("ada", "/dead-letters/"+k.dead+"/discard", `{"reason":"x"}`)
	calls(t, k)["POST /api/v1/bulk-runs"].to(t, late.url, late.as("ada")) // a plan that is outdated
	statusesOfOtherServers(t)
	described := []string{"POST /api/v1/decisions 422"}
	for name := range d.operations {
		described = append(described, name+" 200")
	}
	described = slices.AppendSeq(described, maps.Keys(api.Refusals()))
	for _, key := range described {
		if !d.produced[key] {
			t.Errorf("%s is described, but nothing here is answered so", key)
		}
	}
}

// statusesOfOtherServers: without tokens, with a broken part, still starting, guessed at.
func statusesOfOtherServers(t *testing.T) {
	t.Helper()
	local := starting(t)
	broken := open(t, func(o *api.Options, _ *guard.Services) {
		o.Gate.Tokens = func() *access.Tokens { panic("mistake is ours") }
	})
	guessed := open(t)
	for range 10 {
		get(t, guessed.url+"/destinations", header("Authorization", "Bearer rwt_wrong"))
	}
	for _, l := range calls(t, known{anID, anID, anID, "x", anID}) {
		l.to(t, local) // 503, where it needs the journal
		l.to(t, local, func(r *http.Request) { r.Host = "evil.example" })
		if a := l.to(t, broken.url, broken.as("ada")); a.status != http.StatusInternalServerError {
			t.Errorf("%s: a panic is answered with %d", l.path, a.status)
		}
		a := l.to(t, guessed.url, header("Authorization", "Bearer rwt_wrong"))
		a.refused(t, "after many wrong tokens", http.StatusTooManyRequests, "too_many_attempts")
		if a.header.Get("Retry-After") == "" {
			t.Error("it does not say when to try again")
		}
	}
	told := broken.lines.FilterMessageSnippet("broke its handler").All()
	if len(told) == 0 || told[0].ContextMap()["stack"] == "" || told[0].ContextMap()["panic"] != "string" {
		t.Errorf("the log tells %v, expected where it panicked and the panic's type, not its text", told)
	}
}
