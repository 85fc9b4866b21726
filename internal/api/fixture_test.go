package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/guard"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// fixture is an API with tokens over a journal and its services.
type fixture struct {
	*testkit.Fixture
	t     *testing.T
	root  string
	url   string // with /api/v1
	lines *observer.ObservedLogs
}

func open(t *testing.T, change ...func(*api.Options, *guard.Services)) *fixture {
	t.Helper()
	core, lines := observer.New(zapcore.InfoLevel)
	c := &fixture{Fixture: testkit.New(t, testkit.At(now), testkit.By(decisiontest.Policies())), t: t, lines: lines}
	o := api.Options{Gate: access.Options{Now: c.Now, Tokens: c.Tokens.Load}, Policies: c.Policies, Log: zap.New(core)}
	to := c.Services()
	to.Log = o.Log
	for _, f := range change {
		f(&o, &to)
	}
	served := api.New(o)
	to.Accounts = served.Accounts
	served.Open(api.Journal{Reader: c.Memory, Guard: guard.New(to), Sessions: c.Memory})
	c.root = listen(t, served)
	c.url = c.root + "/api/v1"
	return c
}

// as sets the header with somebody's token.
func (c *fixture) as(name string) func(*http.Request) {
	return header("Authorization", "Bearer "+c.Tokens.Secret(name))
}

func (c *fixture) get(who, path string) answer {
	c.t.Helper()
	return get(c.t, c.url+path, c.as(who))
}

func (c *fixture) post(who, path, body string) answer {
	c.t.Helper()
	return post(c.t, c.url+path, body, c.as(who))
}

// letter returns the id of a new dead letter, for which a process waits: a claim failed with that error after so many
// retries.
func (c *fixture) letter(claim, text string, retries int) string {
	c.t.Helper()
	return c.DieWaiting(decision.DefaultPolicy, claim, text, retries)
}

// permanent returns a dead letter below the limit, exhausted one at the limit.
func (c *fixture) permanent(claim string) string { return c.letter(claim, "DUPLICATE_CLAIM", 2) }
func (c *fixture) exhausted(claim string) string { return c.letter(claim, "TIMEOUT", 5) }

// aPortal is where claims are submitted.
const aPortal = "unimed-sp"

// portal takes a destination down, with a claim that waits for it, and returns once its gate knows.
func (c *fixture) portal(name string) {
	c.t.Helper()
	p := testkit.NewPortal(name, c.Journal, c.Now().Add(-7*time.Hour))
	p.Recovers(c.t, c.Now().Add(-6*time.Hour), 5)
	p.Fails(c.t, c.Now())
	p.Hold(c.t, "CLM-007-1", 7000, c.Now().Add(5*time.Hour))
	wait.Until(c.t, "the claim that waits", func() bool {
		d, _, err := c.Gates().Destination(name)
		return err == nil && d.Held == 1
	})
}

// run starts a bulk run by ada on ten new dead letters of that error.
func (c *fixture) run(text string) (id string) {
	c.t.Helper()
	for n := range 10 {
		c.letter("CLM-"+text+"-"+string(rune('0'+n)), text, 2)
	}
	f := journal.DeadLetterFilter{Reason: decision.Reason(text)}
	id = c.StartBulk(journal.BulkCommand{Action: journal.BulkRetry, Filter: f, Reason: "portal voltou", By: "ada"})
	c.Advance(time.Second)
	return id
}

// plan returns the token of the plan of a command, given as JSON fields.
func (c *fixture) plan(fields string) string {
	c.t.Helper()
	a := c.post("vera", "/bulk-runs/plan", "{"+fields+"}")
	token, _ := a.body["token"].(string)
	if a.status != http.StatusOK || token == "" {
		c.t.Fatalf("%s: got %d %s", fields, a.status, a.text)
	}
	return token
}

// start returns the answer to a start with that token.
func (c *fixture) start(fields, token string) answer {
	c.t.Helper()
	return c.post("ada", "/bulk-runs", "{"+fields+`,"reason":"x","token":"`+token+`"}`)
}

// refuses fails unless somebody's request is refused with that code. Without a body it is a GET.
func (c *fixture) refuses(who, path, body string, status int, code string) {
	c.t.Helper()
	path = strings.ReplaceAll(path, " ", "%20")
	a := answer{}
	if body == "" {
		a = c.get(who, path)
	} else {
		a = c.post(who, path, body)
	}
	a.refused(c.t, who+" "+short(path)+" "+short(body), status, code)
}

// retryAll is the command of most tests.
const retryAll = `"action":"retry","filter":{}`

// cause returns the id of the only cause with that reason.
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

func short(s string) string { return s[:min(len(s), 80)] }
