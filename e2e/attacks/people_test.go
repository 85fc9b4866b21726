package attacks_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	analysis "retry-worker/internal/worker"
)

// fail has claims fail for good, with those errors, and waits until all are dead letters.
func (w *worker) fail(c *http.Client, errors ...string) {
	w.t.Helper()
	for i, text := range errors {
		variables, err := json.Marshal(map[string]any{"claimId": fmt.Sprintf("CLM-ATTACK-%d", i+1), "submissionError": "INSURANCE_EXPIRED " + text, "retryCount": 0})
		testkit.Must(w.t, err)
		w.engine.AddJobs(gateway.Job{Type: analysis.AnalyzeRetry, Variables: string(variables)})
	}
	wait.Until(w.t, "all to be dead letters", func() bool {
		_, text := w.ask(c, http.MethodGet, "/api/v1/dead-letters?limit=200", "", "")
		return strings.Count(text, `"deadLetterId"`)+strings.Count(text, `"id":"CLM-ATTACK`) >= len(errors)
	})
}

// A copy of a cookie is of no use after a log-out, or a second log-in of its browser, and a restart changes nothing of that.
func TestLogOutOutlivesARestart(t *testing.T) {
	w := start(t)
	jar, err := cookiejar.New(nil)
	testkit.Must(t, err)
	browser, thief := w.client(other), w.client(attacker)
	browser.Jar = jar
	at := &url.URL{Scheme: "http", Host: "127.0.0.1", Path: "/"}
	var copies []*http.Cookie
	for range 2 { // the second begins where the first is
		if status := w.logIn(browser, w.secret); status != http.StatusSeeOther {
			t.Fatalf("the log-in is answered %d", status)
		}
		copies = append(copies, jar.Cookies(at)[0])
	}
	steals := func(what string, copy *http.Cookie, in bool) {
		t.Helper()
		r := w.request(http.MethodGet, "/api/v1/kpis", "", "")
		r.AddCookie(copy)
		if status, _ := w.send(thief, r); (status == http.StatusOK) != in {
			t.Errorf("a copy of %s is answered %d, expected that it lets in: %t", what, status, in)
		}
	}
	steals("the first session", copies[0], false)
	steals("the second session", copies[1], true)
	_, page := w.send(browser, w.request(http.MethodGet, "/policies", "", ""))
	token := regexp.MustCompile(`name="form_token" value="([^"]+)"`).FindStringSubmatch(page)
	if token == nil {
		t.Fatalf("no form token in %.300s", page)
	}
	if status, text := w.send(browser, w.request(http.MethodPost, "/logout", form, url.Values{"form_token": token[1:]}.Encode())); status != http.StatusSeeOther {
		t.Fatalf("the log-out is answered %d %.200s", status, text)
	}
	steals("the session that was ended", copies[1], false)
	w.Kill()
	w.begin(harness.Binary(t))
	wait.Until(t, "the journal is open", func() bool {
		status, _ := w.ask(browser, http.MethodGet, "/api/v1/kpis", "", "")
		return status == http.StatusOK
	})
	steals("the first session, after a restart", copies[0], false)
	steals("the session that was ended, after a restart", copies[1], false)
}

// Twenty starts by one plan, at once, are one run.
func TestOnePlanIsOneRun(t *testing.T) {
	w := start(t)
	c := w.client(other)
	w.fail(c, "a", "b", "c")
	const command = `"action":"discard","filter":{"reason":"INSURANCE_EXPIRED"}`
	var plan, run struct{ Token, ID string }
	status, text := w.ask(c, http.MethodPost, "/api/v1/bulk-runs/plan", "application/json", "{"+command+"}")
	if json.Unmarshal([]byte(text), &plan) != nil || plan.Token == "" {
		t.Fatalf("the plan is answered %d %s", status, text)
	}
	var mu sync.Mutex
	answers := map[string]int{}
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			status, text := w.ask(c, http.MethodPost, "/api/v1/bulk-runs", "application/json", "{"+command+`,"reason":"x","token":"`+plan.Token+`"}`)
			mu.Lock()
			defer mu.Unlock()
			run.ID = ""
			_ = json.Unmarshal([]byte(text), &run)
			answers[fmt.Sprint(status, " ", run.ID != "")]++
			answers[run.ID]++
		})
	}
	all.Wait()
	if len(answers) != 3 || answers["201 true"] != 1 || answers["200 true"] != 19 {
		t.Errorf("the answers are %v, expected one run, and 201 once", answers)
	}
}

// What an insurer's portal writes into an error is no formula in what Excel opens, wherever it splits.
func TestFormulasInErrors(t *testing.T) {
	w := start(t)
	c := w.client(other)
	w.fail(c, ";=cmd|' /C calc'!A0", ",=cmd", "\n@SUM(A1)", `";=cmd`, "\t+1")
	_, export := w.ask(c, http.MethodGet, "/audit/export?format=csv", "", "")
	for _, separator := range ";,\t" {
		from := csv.NewReader(strings.NewReader(strings.TrimPrefix(export, "\ufeff")))
		from.Comma, from.LazyQuotes, from.FieldsPerRecord = separator, true, -1
		rows, err := from.ReadAll()
		testkit.Must(t, err)
		if len(rows) < 6 {
			t.Errorf("%d rows are exported", len(rows))
		}
		for _, row := range rows {
			for _, cell := range row {
				if strings.IndexAny(strings.TrimSpace(cell), "=+-@") == 0 {
					t.Errorf("read with %q a cell of the export is the formula %q", separator, cell)
				}
			}
		}
	}
}

// No secret that an error holds is told, to whoever asks and in the log.
func TestSecretsInErrors(t *testing.T) {
	w := start(t)
	c := w.client(other)
	w.fail(c, "<senhaPrestador>canary-a</senhaPrestador>", "Authorization: Basic Y2FuYXJ5LWI6Y2FuYXJ5LWI=", "Authorization: Bearer canary-c",
		"client_secret=canary-d", "x-api-key: canary-e", "senha=canary-f", "https://user:canary-h@portal.example/x",
		"token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.canaryGZ1bWFBc3NpbmF0dXJhUXVlTmFvVmFsZQ")
	_, list := w.ask(c, http.MethodGet, "/api/v1/dead-letters?limit=200", "", "")
	_, page := w.ask(c, http.MethodGet, "/dead-letters", "", "")
	_, export := w.ask(c, http.MethodGet, "/audit/export?format=csv", "", "")
	for what, text := range map[string]string{"the API": list, "a page": page, "the export": export, "the log": w.Log.Text()} {
		if found := regexp.MustCompile(`canary-?\w|Y2FuYXJ5`).FindAllString(text, -1); found != nil || text == "" {
			t.Errorf("%s tells the secrets %q, in %d bytes", what, found, len(text))
		}
	}
}
