package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
)

var now = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// serve is an API over what store remembers, without tokens; nil: one that is still starting.
func serve(t *testing.T, reader api.Reader, at time.Time) string {
	t.Helper()
	return serveRecording(t, reader, nil, at, zap.NewNop())
}

// serveRecording is an API that records too.
func serveRecording(t *testing.T, reader api.Reader, recorder api.Recorder, at time.Time, log *zap.Logger) string {
	t.Helper()
	served := api.New(api.Options{Now: func() time.Time { return at }, Policies: decisiontest.Policies, Log: log})
	if reader != nil {
		served.Open(api.Journal{Reader: reader, Recorder: recorder})
	}
	return listen(t, served)
}

func listen(t *testing.T, served *api.API) string {
	t.Helper()
	server, err := served.Listen("127.0.0.1:0", nil)
	testkit.Must(t, err)
	t.Cleanup(func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return "http://" + server.Addr()
}

// remembering is a store that knows one failure of a claim with that id.
func remembering(t *testing.T, id, text string) *testkit.Memory {
	t.Helper()
	f := testkit.New(t, testkit.At(now), testkit.By(decisiontest.Policies()))
	f.Fail(decision.DefaultPolicy, id, text, -1)
	return f.Memory
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
	response, err := client.Do(request)
	testkit.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	a := answer{status: response.StatusCode, header: response.Header, text: string(text)}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") && method != http.MethodHead {
		if err := json.Unmarshal(text, &a.body); err != nil {
			t.Fatalf("no JSON object: %q", text)
		}
	}
	described(t).hold(t, request, body, &a)
	return a
}

func TestSubject(t *testing.T) {
	const claim = "CLM-001-1"
	store := remembering(t, claim, "TIMEOUT")
	for _, tt := range []struct {
		at            time.Time
		state, status string
	}{{now, "scheduled", "pendente"}, {now.Add(time.Hour), "due", "reenviando"}} {
		a := get(t, serve(t, store, tt.at)+"/api/v1/subjects/tiss-submission/"+claim)
		if a.status != http.StatusOK || a.body["policy"] != "tiss-submission" || a.body["id"] != claim || a.body["tenant"] != "<default>" ||
			a.body["state"] != tt.state || a.body["status"] != tt.status || a.body["retryCount"] != 1.0 || a.body["deadLetterId"] != nil {
			t.Errorf("at %s: got %d %v", tt.at, a.status, a.body)
		}
		next, err := time.Parse(time.RFC3339, a.body["nextRetryTime"].(string))
		if err != nil || next.Before(now.Add(5*time.Minute)) || next.After(now.Add(6*time.Minute)) {
			t.Errorf("nextRetryTime %v, want 5 to 6 minutes after %s", a.body["nextRetryTime"], now)
		}
		attempts, episodes := a.body["attempts"].([]any), a.body["episodes"].([]any)
		if len(attempts) != 1 || len(episodes) != 1 {
			t.Fatalf("%d attempts in %d episodes", len(attempts), len(episodes))
		}
		first := attempts[0].(map[string]any)
		for name, want := range map[string]any{
			"attemptNumber": 1.0, "timestamp": "2026-03-02T10:00:00Z", "error": "TIMEOUT", "errorClassification": "TRANSIENT",
			"retryCount": 1.0, "outcome": "RETRY", "matchedRule": "TIMEOUT", "retryReason": "Transient error, retry 1 of 5",
		} {
			if first[name] != want {
				t.Errorf("attempt: %s is %v, want %v", name, first[name], want)
			}
		}
		if first["nextRetryTime"] != a.body["nextRetryTime"] || first["backoffMinutes"].(float64) < 5 {
			t.Errorf("attempt: got %v", first)
		}
	}
}

func TestDeadSubject(t *testing.T) {
	const claim = "CLM-001-2"
	a := get(t, serve(t, remembering(t, claim, "DUPLICATE_CLAIM"), now)+"/api/v1/subjects/tiss-submission/"+claim)
	id, _ := a.body["deadLetterId"].(string)
	if a.body["state"] != "dead" || a.body["status"] != "falha" || a.body["nextRetryTime"] != nil || len(id) != 36 {
		t.Errorf("got %v", a.body)
	}
	first := a.body["attempts"].([]any)[0].(map[string]any)
	if first["outcome"] != "PERMANENT_ERROR" || first["responsibleTeam"] != "faturamento" || first["deadLetterId"] != id || first["backoffMinutes"] != nil {
		t.Errorf("got %v", first)
	}
}

// Ids are what the process has, whatever characters that is.
func TestSubjectOfOddNames(t *testing.T) {
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
		a := get(t, serve(t, remembering(t, id, "TIMEOUT"), now)+"/api/v1/subjects/tiss-submission/"+path)
		if a.status != http.StatusOK || a.body["id"] != id {
			t.Errorf("%s: got %d %v", path, a.status, a.body)
		}
		if a := get(t, serve(t, remembering(t, id, "TIMEOUT"), now)+"/api/v1/subjects/tiss-submission/"+path+"/audit"); a.status != http.StatusOK {
			t.Errorf("%s: got %d %v for the audit", path, a.status, a.body)
		}
	}
}

func TestSubjectNotFound(t *testing.T) {
	url := serve(t, remembering(t, "CLM-001-1", "TIMEOUT"), now)
	for path, code := range map[string]string{
		"/api/v1/subjects/tiss-submission/CLM-001-2":              "subject_not_found",
		"/api/v1/subjects/other/CLM-001-1":                        "subject_not_found",
		"/api/v1/subjects/tiss-submission/CLM-001-1?tenant=other": "subject_not_found",
		"/api/v1/subjects/tiss-submission/":                       "not_found",
		"/api/v1/subjects":                                        "not_found",
		"/":                                                       "not_found",
		"/api/v1/subjects/tiss-submission/CLM-%00-1":              "subject_not_found",
		"/api/v1/subjects/tiss-submission/CLM-%FF-1":              "subject_not_found",
		"/api/v1/subjects/%0A/CLM-001-1/audit":                    "subject_not_found",
		"/api/v1/subjects/tiss-submission/%2E%2E":                 "subject_not_found", // an id like any other
		// Paths that a router would tidy up, and go on with.
		"/api/v1//subjects/tiss-submission/CLM-001-1":            "not_found",
		"//api/v1/subjects/tiss-submission/CLM-001-1":            "not_found",
		"/api/v1/subjects/tiss-submission/CLM-001-1/":            "not_found",
		"/api/v1/subjects/tiss-submission/x/../CLM-001-1":        "not_found",
		"/api/v1/subjects/tiss-submission/./CLM-001-1":           "not_found",
		"/api/../api/v1/subjects/tiss-submission/CLM-001-1":      "not_found",
		"/x/../api/v1/subjects/tiss-submission/CLM-001-1":        "not_found",
		"/api%2Fv1%2Fsubjects%2Ftiss-submission%2FCLM-001-1":     "not_found",
		"/api/v1/subjects/tiss-submission%2FCLM-001-1":           "not_found",
		"/API/v1/subjects/tiss-submission/CLM-001-1":             "not_found",
		"/api/v1/subjects/tiss-submission/CLM-001-1/audit/audit": "not_found",
		"/api/v1/dead-letters/":                                  "not_found",
	} {
		a := get(t, url+path)
		a.refused(t, path, http.StatusNotFound, code)
	}
}

// failing is a journal that cannot be read or written; its words are for the log.
type failing struct{ api.Reader }

var errSecret = errors.New("secret words")

func (failing) Story(context.Context, journal.Subject) (journal.Story, bool, error) {
	return journal.Story{}, false, errSecret
}

func (failing) Records(context.Context, journal.RecordFilter, int64, int) ([]journal.Record, error) {
	return nil, errSecret
}

func (failing) Figures(context.Context, int64, ...journal.FigureName) ([]journal.Figure, error) {
	return nil, errSecret
}

func (failing) Conclude(context.Context, *journal.Outcome) (journal.Concluded, error) {
	return journal.Concluded{}, fmt.Errorf("%w: %w", journal.ErrUnavailable, errSecret)
}

func (failing) Erase(context.Context, journal.Eraser, journal.Erasure) (journal.Erased, error) {
	return journal.Erased{}, fmt.Errorf("%w: %w", journal.ErrUnavailable, errSecret)
}

func TestUnavailable(t *testing.T) {
	for name, reader := range map[string]api.Reader{"still starting": nil, "cannot be read": failing{}} {
		url := serveRecording(t, reader, failing{}, now, zap.NewNop())
		for what, a := range map[string]answer{
			"subject": get(t, url+"/api/v1/subjects/tiss-submission/CLM-001-1"),
			"audit":   get(t, url+"/api/v1/subjects/tiss-submission/CLM-001-1/audit"),
			"kpis":    get(t, url+"/api/v1/kpis"),
			"outcome": post(t, url+"/api/v1/outcomes", `{"id":"CLM-001-1"}`),
			"erasure": post(t, url+"/api/v1/subjects/tiss-submission/CLM-001-1/erase", `{"reason":"x"}`),
		} {
			a.refused(t, name+", "+what, http.StatusServiceUnavailable, "journal_unavailable")
			if strings.Contains(a.body["message"].(string), "secret") {
				t.Errorf("%s, %s: got %v", name, what, a.body)
			}
		}
	}
}

// TestOnlyThisMachine: a web page that resolves its own name to 127.0.0.1 gets nothing.
func TestOnlyThisMachine(t *testing.T) {
	url := serve(t, remembering(t, "CLM-001-1", "TIMEOUT"), now) + "/api/v1/subjects/tiss-submission/CLM-001-1"
	for host, want := range map[string]int{
		"127.0.0.1": 200, "127.0.0.1:8095": 200, "localhost:8095": 200, "[::1]:8095": 200,
		"evil.example": 403, "evil.example:8095": 403, "127.0.0.1.evil.example": 403, "10.0.0.1:8095": 403, "localhost.evil": 403,
	} {
		a := get(t, url, func(r *http.Request) { r.Host = host })
		if a.status != want {
			t.Errorf("Host %s: got %d, want %d", host, a.status, want)
		}
		if want == 403 && a.body["error"] != "forbidden_host" {
			t.Errorf("Host %s: got %v", host, a.body)
		}
	}
}

func TestMethods(t *testing.T) {
	url := serve(t, nil, now)
	const id = "3fa85f64-5717-5562-b3fc-2c963f66afa6"
	for path, allowed := range map[string]string{
		"/subjects/tiss-submission/CLM-001-1": "GET, HEAD", "/subjects/tiss-submission/CLM-001-1/audit": "GET, HEAD", "/kpis": "GET, HEAD",
		"/outcomes": "POST", "/decisions": "POST", "/dead-letters": "GET, HEAD", "/dead-letters/" + id: "GET, HEAD", "/openapi.yaml": "GET, HEAD",
		"/dead-letters/" + id + "/retry": "POST", "/dead-letters/" + id + "/discard": "POST", "/jobs/retry": "POST",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, "BREW"} {
			if strings.Contains(allowed, method) {
				continue
			}
			a := ask(t, method, url+"/api/v1"+path, "", header("Content-Type", "application/json"))
			a.refused(t, method+" "+path, http.StatusMethodNotAllowed, "method_not_allowed")
			if got := a.header.Get("Allow"); got != allowed || a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s: Allow is %q, want %q, and nothing for other sites", method, path, got, allowed)
			}
		}
		if a := ask(t, http.MethodHead, url+"/api/v1"+path, ""); a.text != "" || (a.status == http.StatusMethodNotAllowed) != (allowed == "POST") {
			t.Errorf("HEAD %s: got %d %q", path, a.status, a.text)
		}
	}
}

// Without tokens nothing is served where other machines reach it, whatever the settings were.
func TestListensOnLoopbackWithoutTokens(t *testing.T) {
	served := api.New(api.Options{Now: time.Now, Policies: decisiontest.Policies, Log: zap.NewNop()})
	if _, err := served.Listen("0.0.0.0:0", nil); err == nil || !strings.Contains(err.Error(), "RETRY_WORKER_AUTH_TOKENS_FILE") {
		t.Errorf("got %v", err)
	}
}
