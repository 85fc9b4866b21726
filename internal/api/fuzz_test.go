package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/guard"
	"retry-worker/internal/testkit"
)

// FuzzRequest: whatever stands where an id, a parameter, a cursor, a plan's token or a body is expected, each address gives
// an answer that is described, and never 500.
func FuzzRequest(f *testing.F) {
	k := testkit.New(f, testkit.At(now), testkit.By(decisiontest.Policies()))
	served := api.New(api.Options{Gate: access.Options{Now: k.Now, Tokens: k.Tokens.Load}, Policies: k.Policies, Log: zap.NewNop()})
	served.Open(api.Journal{Reader: k.Memory, Guard: guard.New(k.Services())})
	handler, routes := served.Handler(), []string{}
	for _, o := range api.Description() {
		routes = append(routes, o.Method+" "+api.Root+o.Path)
	}
	letter := ""
	for _, claim := range []string{"CLM-1-1", "CLM-1-2", "CLM-1-3"} {
		letter = k.DieWaiting(decision.DefaultPolicy, claim, "DUPLICATE_CLAIM", 2)
	}
	ask := func(t testing.TB, route, id, query, body string) (*http.Request, answer) {
		method, path, _ := strings.Cut(route, " ")
		path = strings.Replace(path, "{policy}", decision.DefaultPolicy, 1)
		path = regexp.MustCompile(`\{\w+\}`).ReplaceAllLiteralString(path, strings.ReplaceAll(url.PathEscape(id), ".", "%2E"))
		r, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
		testkit.Must(t, err)
		r.URL.RawQuery = query
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+k.Tokens.Secret("ada"))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		a := answer{status: w.Code, header: w.Header(), text: w.Body.String()}
		_ = json.Unmarshal(w.Body.Bytes(), &a.body) // the description says where it is JSON
		return r, a
	}
	_, page := ask(f, "GET /api/v1/dead-letters", "", "limit=1", "")
	cursor, _ := page.body["next"].(string)
	const command = `{"action":"retry","filter":{"reason":"DUPLICATE_CLAIM"},"when":"now","perMinute":5`
	_, plan := ask(f, "POST /api/v1/bulk-runs/plan", "", "", command+"}")
	token, _ := plan.body["token"].(string)
	if cursor == "" || token == "" {
		f.Fatalf("no cursor or no token to begin with: %s %s", page.text, plan.text)
	}
	for i := range routes {
		for id, body := range map[string]string{
			"CLM-1-1": `{"id":"CLM-1-1","error":"TIMEOUT","now":"2026-03-01T08:00:00-03:00","variables":{"a":[1,{"b":null}]}}`,
			letter:    `{"reason":"portal voltou","forceRetry":true,"when":"now","fresh":false}`,
			"0":       command + `,"reason":"x","token":"` + token + `"}`,
			"\x00":    `{"reason":"a","reason":"b"}`,
		} {
			f.Add(uint8(i), id, "limit=1&cursor="+cursor, body)
		}
		f.Add(uint8(i), "a/../b", "tenant=%3Cdefault%3E&q=%00&since=2026-03-01T08:00:00Z&limit=-1", "[]")
	}
	f.Fuzz(func(t *testing.T, n uint8, id, query, body string) {
		r, a := ask(t, routes[int(n)%len(routes)], id, query, body)
		described(t).hold(t, r, body, &a)
		if a.status == http.StatusInternalServerError {
			t.Errorf("%s is answered %d %s", r.URL, a.status, a.text)
		}
	})
}
