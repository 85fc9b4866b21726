package api_test

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/testkit"
)

var now = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// starting is the address of an API without tokens whose journal is not open yet.
func starting(t *testing.T) string {
	t.Helper()
	return listen(t, api.New(api.Options{Gate: access.Options{Now: func() time.Time { return now }}, Policies: decisiontest.Policies, Log: zap.NewNop()})) + "/api/v1"
}

func listen(t *testing.T, served *api.API) string {
	t.Helper()
	server, err := served.Listen(net.Listen, "127.0.0.1:0", nil)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, server.Close(context.Background())) })
	return "http://" + server.Addr()
}

// refused checks that an answer is an error with that code, which says something.
func (a *answer) refused(t *testing.T, what string, status int, code string) {
	t.Helper()
	if message, _ := a.body["message"].(string); a.status != status || a.body["error"] != code || message == "" || len(a.body) != 2 {
		t.Errorf("%s: got %d %v, want %d %s", what, a.status, a.body, status, code)
	}
}

type answer struct {
	status int
	header http.Header
	text   string
	body   map[string]any
}

func get(t *testing.T, url string, change ...func(*http.Request)) answer {
	t.Helper()
	return ask(t, http.MethodGet, url, "", change...)
}

// post sends a JSON body.
func post(t *testing.T, url, body string, change ...func(*http.Request)) answer {
	t.Helper()
	return ask(t, http.MethodPost, url, body, append([]func(*http.Request){header("Content-Type", "application/json")}, change...)...)
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// ask asks, and holds the answer against the description of the API.
func ask(t *testing.T, method, url, body string, change ...func(*http.Request)) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	testkit.Must(t, err)
	for _, f := range change {
		f(request)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	a := answer{}
	a.status, a.header, a.text = testkit.Send(t, &client, request)
	if strings.HasPrefix(a.header.Get("Content-Type"), "application/json") && method != http.MethodHead {
		if err := json.Unmarshal([]byte(a.text), &a.body); err != nil {
			t.Fatalf("no JSON object: %q", a.text)
		}
	}
	described(t).hold(t, request, body, &a)
	return a
}

// Ids are what the process has, whatever characters that is.
func TestSubjectOfOddNames(t *testing.T) {
	c := open(t)
	for id, path := range map[string]string{
		"CLM-a/b-1":         "CLM-a%2Fb-1",
		"CLM-%2F-1":         "CLM-%252F-1",
		"CLM-'\"<é>-1":      "CLM-%27%22%3C%C3%A9%3E-1",
		"CLM-a..b?c#-1":     "CLM-a..b%3Fc%23-1",
		"CLM-//-1":          "CLM-%2F%2F-1",
		"CLM-/../-1":        "CLM-%2F..%2F-1",
		"CLM-/./x-1":        "CLM-%2F.%2Fx-1",
		`CLM-\-1`:           "CLM-%5C-1",
		"CLM- +&=;-1":       "CLM-%20+&=;-1",
		"CLM-%-1":           "CLM-%25-1",
		"CLM-日本🩺-1":         "CLM-%E6%97%A5%E6%9C%AC%F0%9F%A9%BA-1",
		"CLM-audit/audit-1": "CLM-audit%2Faudit-1",
	} {
		c.Fail(decision.DefaultPolicy, id, "TIMEOUT", -1)
		a := c.get("vera", "/subjects/tiss-submission/"+path)
		if a.status != http.StatusOK || a.body["id"] != id || a.body["policy"] != decision.DefaultPolicy {
			t.Errorf("%s: got %d %v", path, a.status, a.body)
		}
		if a := c.get("vera", "/subjects/tiss-submission/"+path+"/audit"); a.status != http.StatusOK {
			t.Errorf("%s: got %d %v for the audit", path, a.status, a.body)
		}
	}
}

// TestUnavailable: while the journal is not open, or cannot be read, what needs it is refused in words of our own.
func TestUnavailable(t *testing.T) {
	c, closed := open(t), starting(t)
	all := calls(t, c.prepare())
	c.Memory.SetDown(true)
	for name, l := range all {
		if strings.HasSuffix(name, "/openapi.json") || strings.HasSuffix(name, "/decisions") {
			continue
		}
		for what, a := range map[string]answer{"is not open": l.to(t, closed), "cannot be read": l.to(t, c.url, c.as("ada"))} {
			if strings.HasPrefix(name, "GET /api/v1/destinations") && a.status == http.StatusOK {
				continue // what the gates know
			}
			if a.refused(t, name+": it "+what, http.StatusServiceUnavailable, "journal_unavailable"); strings.Contains(a.text, "the store is down") {
				t.Errorf("%s tells the store's own words: %s", name, a.text)
			}
		}
	}
	if c.lines.FilterMessageSnippet("could not").Len() == 0 {
		t.Error("the log does not say why")
	}
}

// TestMethods: an address takes the methods that it is described with, and no others.
func TestMethods(t *testing.T) {
	url, takes := starting(t), map[string][]string{}
	for name := range described(t).operations {
		method, path, _ := strings.Cut(name, " ")
		takes[path] = append(takes[path], strings.Replace(method, http.MethodGet, "GET, HEAD", 1))
	}
	takes["/api/v1/bulk-runs/plan"] = append(takes["/api/v1/bulk-runs/plan"], "GET, HEAD") // as an {id}
	for path, methods := range takes {
		allowed := strings.Join(slices.Sorted(slices.Values(methods)), ", ")
		path = strings.TrimPrefix(regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "x"), "/api/v1")
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "BREW"} {
			if strings.Contains(allowed, method) {
				continue
			}
			a := ask(t, method, url+path, "", header("Content-Type", "application/json"))
			a.refused(t, method+" "+path, http.StatusMethodNotAllowed, "method_not_allowed")
			if got := a.header.Get("Allow"); got != allowed || a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s: Allow is %q, want %q, and nothing for other sites", method, path, got, allowed)
			}
		}
		if a := ask(t, http.MethodHead, url+path, ""); a.text != "" || (a.status == http.StatusMethodNotAllowed) == strings.Contains(allowed, "HEAD") {
			t.Errorf("HEAD %s: got %d %q", path, a.status, a.text)
		}
	}
}

// Without tokens nothing is served where other machines reach it, whatever the settings were.
func TestListensOnLoopbackWithoutTokens(t *testing.T) {
	served := api.New(api.Options{Gate: access.Options{Now: time.Now}, Policies: decisiontest.Policies, Log: zap.NewNop()})
	if _, err := served.Listen(net.Listen, "0.0.0.0:0", nil); err == nil || !strings.Contains(err.Error(), "RETRY_WORKER_AUTH_TOKENS_FILE") {
		t.Errorf("got %v", err)
	}
}
