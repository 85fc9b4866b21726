package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/console"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/journal/journaltest"
)

var now = time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)

// serve is an API over what store remembers; nil: one that is not open yet.
func serve(t *testing.T, reader journal.Reader, at time.Time) string {
	t.Helper()
	api := console.New(func() time.Time { return at }, zap.NewNop())
	if reader != nil {
		api.Open(reader)
	}
	server, err := api.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return "http://" + server.Addr()
}

// remembering is a store that knows one failure of a claim with that id.
func remembering(t *testing.T, id, text string) *journaltest.Memory {
	t.Helper()
	store := journaltest.New()
	p := decision.TISSSubmission()
	f, rejection := p.Read(decision.Variables{ID: decision.Text(id), Error: decision.Text(text)})
	if rejection != nil {
		t.Fatal(rejection)
	}
	a := &journal.Analysis{
		Subject: journal.Subject{Tenant: journal.DefaultTenant, Policy: p.Name, ID: id}, JobKey: 1, ElementInstanceKey: 2,
		ProcessInstanceKey: 3, Rule: decision.RNBIL005, Policy: p, Failure: &f, Error: text, ReceivedAt: now,
	}
	a.Identity = journal.IdentityOf(a)
	if _, err := journaltest.Start(t, store, func() time.Time { return now }).Analyze(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	return store
}

type answer struct {
	status int
	header http.Header
	body   map[string]any
}

func get(t *testing.T, url string, change ...func(*http.Request)) answer {
	t.Helper()
	return ask(t, http.MethodGet, url, change...)
}

func ask(t *testing.T, method, url string, change ...func(*http.Request)) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(request)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	a := answer{status: response.StatusCode, header: response.Header}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(text, &a.body); err != nil {
			t.Fatalf("no JSON object: %q", text)
		}
	}
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
		"CLM-a/b-1":     "CLM-a%2Fb-1",
		"CLM-%2F-1":     "CLM-%252F-1",
		"CLM-'\"<é>-1":  "CLM-%27%22%3C%C3%A9%3E-1",
		"CLM-a..b?c#-1": "CLM-a..b%3Fc%23-1",
	} {
		a := get(t, serve(t, remembering(t, id, "TIMEOUT"), now)+"/api/v1/subjects/tiss-submission/"+path)
		if a.status != http.StatusOK || a.body["id"] != id {
			t.Errorf("%s: got %d %v", path, a.status, a.body)
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
	} {
		a := get(t, url+path)
		if message, _ := a.body["message"].(string); a.status != http.StatusNotFound || a.body["error"] != code || message == "" {
			t.Errorf("%s: got %d %v, want 404 %s", path, a.status, a.body, code)
		}
	}
}

// failing is a journal that cannot be read; its words are for the log.
type failing struct{ journal.Reader }

func (failing) Story(context.Context, journal.Subject) (journal.Story, bool, error) {
	return journal.Story{}, false, errors.New("secret words")
}

func TestUnavailable(t *testing.T) {
	for name, reader := range map[string]journal.Reader{"not open yet": nil, "cannot be read": failing{}} {
		a := get(t, serve(t, reader, now)+"/api/v1/subjects/tiss-submission/CLM-001-1")
		message, _ := a.body["message"].(string)
		if a.status != http.StatusServiceUnavailable || a.body["error"] != "journal_unavailable" || strings.Contains(message, "secret") {
			t.Errorf("%s: got %d %v", name, a.status, a.body)
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

func TestHeaders(t *testing.T) {
	a := get(t, serve(t, remembering(t, "CLM-001-1", "TIMEOUT"), now)+"/api/v1/subjects/tiss-submission/CLM-001-1")
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Content-Type": "application/json; charset=utf-8",
	} {
		if got := a.header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if a := ask(t, http.MethodPost, serve(t, nil, now)+"/api/v1/subjects/tiss-submission/CLM-001-1"); a.status != http.StatusMethodNotAllowed || a.body["error"] != "method_not_allowed" {
		t.Errorf("POST: got %d, want 405", a.status)
	}
}
