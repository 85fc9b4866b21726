package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
)

func TestDeadLetter(t *testing.T) {
	c := open(t)
	id := c.permanent("CLM-001-1")
	a := c.get("vera", "/dead-letters/"+id)
	for name, want := range map[string]any{
		"id": id, "state": "open", "outcome": "PERMANENT_ERROR", "reason": "DUPLICATE_CLAIM", "responsibleTeam": "faturamento",
		"errorClassification": "PERMANENT", "matchedRule": "DUPLICATE_CLAIM", "error": "DUPLICATE_CLAIM", "retryCount": 2.0, "maxRetries": 5.0,
		"forceNeeded": false, "process": "waiting", "delivery": "none", "review": nil, "reviewJobKey": "9007199254740995", "reviewSeen": "2026-03-02T10:00:00Z", "createdAt": "2026-03-02T10:00:00Z",
		"firstFailure": "2026-03-02T10:00:00Z", "processInstanceKey": "9007199255740994",
	} {
		if got, there := a.body[name]; a.status != http.StatusOK || !there || got != want {
			t.Errorf("%d: %s is %v, want %v", a.status, name, got, want)
		}
	}
	if got := fmt.Sprint(a.body["subject"]); got != "map[id:CLM-001-1 policy:tiss-submission tenant:<default>]" {
		t.Errorf("the subject is %s", got)
	}
	if upper := c.get("vera", "/dead-letters/"+strings.ToUpper(id)); upper.body["id"] != id {
		t.Errorf("in upper case: got %d %v", upper.status, upper.body)
	}
	if s := c.get("vera", "/subjects/tiss-submission/CLM-001-1"); s.body["deadLetterId"] != id || s.body["status"] != "falha" {
		t.Errorf("the subject shows %v", s.body)
	}
}

// Who did it comes from the log-in, the answer is the dead letter as it stands after, and so does the list.
func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		name, who, path, body   string
		exhausted               bool
		state, decision, status string
		next                    string // of the retry, "" none
		retries                 float64
	}{
		{"retry", "otto", "/retry", `{"reason":"cadastro corrigido"}`, false, "reprocessing", "reprocess", "reenviando", "later", 3},
		{"retry now", "otto", "/retry", `{"reason":"x","when":"now"}`, false, "reprocessing", "reprocess", "reenviando", "now", 3},
		{"retry with nulls", "otto", "/retry", `{"reason":"x","when":null,"forceRetry":null,"fresh":null}`, false, "reprocessing", "reprocess", "reenviando", "later", 3},
		{"forced", "ada", "/retry", `{"reason":"x","forceRetry":true}`, true, "reprocessing", "reprocess", "reenviando", "later", 6},
		{"fresh", "ada", "/retry", `{"reason":"x","forceRetry":true,"fresh":true,"when":"now"}`, true, "reprocessing", "reprocess", "reenviando", "now", 0},
		{"discard", "otto", "/discard", `{"reason":"paga à vista"}`, true, "discarded", "discard", "descartada", "", 5},
		{"retry-failed-job.md", "otto", "/jobs/retry", `{"jobId":"ID","reason":"Serviço externo indisponível","forceRetry":false}`, false, "reprocessing", "reprocess", "reenviando", "later", 3},
		{"retry-failed-job.md, forced", "ada", "/jobs/retry", `{"jobId":"ID","reason":"x","forceRetry":true}`, true, "reprocessing", "reprocess", "reenviando", "later", 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := open(t)
			id := c.permanent("CLM-001-1")
			if tt.exhausted {
				id = c.exhausted("CLM-002-1")
			}
			path := "/dead-letters/" + id + tt.path
			if strings.HasPrefix(tt.path, "/jobs") {
				path = tt.path
			}
			c.Set(now.Add(time.Minute))
			a := c.post(tt.who, path, strings.ReplaceAll(tt.body, "ID", id))
			r, _ := a.body["review"].(map[string]any)
			if a.status != http.StatusOK || a.body["id"] != id || a.body["state"] != tt.state || r["by"] != tt.who || r["decision"] != tt.decision || r["at"] != "2026-03-02T10:01:00Z" {
				t.Fatalf("got %d %s", a.status, a.text)
			}
			next, _ := r["nextRetryTime"].(string)
			if (next == "") != (tt.next == "") || (next == "2026-03-02T10:01:00Z") != (tt.next == "now") {
				t.Errorf("the next retry is %q, want %s", next, tt.next)
			}
			s := c.get("vera", "/subjects/tiss-submission/"+a.body["subject"].(map[string]any)["id"].(string))
			if s.body["status"] != tt.status || s.body["retryCount"] != tt.retries {
				t.Errorf("the subject is then %v with retryCount %v", s.body["status"], s.body["retryCount"])
			}
			if shown := c.get("vera", "/dead-letters/"+id); shown.text != a.text {
				t.Errorf("the answer was\n%sit shows\n%s", a.text, shown.text)
			}
			if told := c.lines.FilterField(zap.String("event", "dead_letter_reviewed")).FilterField(zap.String("by", tt.who)).Len(); told != 1 {
				t.Errorf("%d lines in the log", told)
			}
		})
	}
}

// pages are the items of a list, page by page.
func (c *fixture) pages(path string) (pages [][]map[string]any) {
	c.t.Helper()
	for cursor := ""; ; {
		a := c.get("vera", path+cursor)
		if a.status != http.StatusOK || len(pages) > 50 {
			c.t.Fatalf("%s: got %d %s", path, a.status, a.text)
		}
		var page []map[string]any
		for _, i := range a.body["items"].([]any) {
			page = append(page, i.(map[string]any))
		}
		pages = append(pages, page)
		next, more := a.body["next"].(string)
		if !more {
			return pages
		}
		cursor = "&cursor=" + next
	}
}

// values of a field of all items of a list.
func (c *fixture) values(path, field string) (all []string) {
	c.t.Helper()
	for _, item := range slices.Concat(c.pages(path)...) {
		all = append(all, item[field].(string))
	}
	return all
}

// list is the ids of the dead letters that a query finds.
func (c *fixture) list(query string) []string {
	c.t.Helper()
	return c.values("/dead-letters?"+query, "id")
}

func TestDeadLetterList(t *testing.T) {
	c := open(t)
	if a := c.get("vera", "/dead-letters"); a.text != `{"items":[],"next":null}`+"\n" {
		t.Errorf("an empty list is %s", a.text)
	}
	permanent, exhausted, wrong := c.permanent("CLM-001-1"), c.exhausted("CLM-002-1"), c.letter("CLM-003-1", "INVALID_PATIENT_DATA: no name", 0)
	c.post("otto", "/dead-letters/"+permanent+"/discard", `{"reason":"x"}`)
	c.post("otto", "/dead-letters/"+wrong+"/retry", `{"reason":"x"}`)
	for query, want := range map[string][]string{
		"":                             {exhausted},
		"state=open":                   {exhausted},
		"state=discarded":              {permanent},
		"state=reprocessing":           {wrong},
		"state=recovered":              nil,
		"state=all":                    {wrong, exhausted, permanent},
		"state=all&limit=1":            {wrong, exhausted, permanent},
		"state=all&limit=2":            {wrong, exhausted, permanent},
		"state=all&limit=200":          {wrong, exhausted, permanent},
		"state=all&team=cadastro":      {wrong},
		"state=all&reason=MAX_RETRIES": {exhausted},
		"state=all&policy=none":        nil,
		"state=all&q=CLM-001":          {permanent},
		"state=all&q=" + exhausted:     {exhausted},
		"state=&policy=&team=&reason=&q=&cursor=&limit=": {exhausted},
	} {
		if got := c.list(query); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: got %v, want %v", query, got, want)
		}
	}
}

// A list is bounded whatever is asked for.
func TestDeadLetterListIsBounded(t *testing.T) {
	c := open(t)
	for n := range 205 {
		c.permanent(fmt.Sprintf("CLM-%03d-1", n))
	}
	for query, want := range map[string]int{"": 50, "limit=200": 200, "limit=7": 7} {
		a := c.get("vera", "/dead-letters?"+query)
		if n := len(a.body["items"].([]any)); n != want || a.body["next"] == nil {
			t.Errorf("%q: %d items, want %d and a next page", query, n, want)
		}
	}
	if n := len(c.list("limit=100")); n != 205 {
		t.Errorf("%d in all pages", n)
	}
}

func TestRetryOfAPolicyThatIsGone(t *testing.T) {
	c := open(t)
	id := c.permanent("CLM-001-1")
	c.SetPolicies(decision.Policies{})
	a := c.post("otto", "/dead-letters/"+id+"/retry", `{"reason":"x"}`)
	a.refused(t, "without a backoff", http.StatusConflict, "policy_not_found")
}
