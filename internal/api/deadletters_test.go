package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
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

// letters of the state, as many as the pages have, by ids.
func (c *fixture) list(query string) (ids []string) {
	c.t.Helper()
	cursor := ""
	for {
		a := c.get("vera", "/dead-letters?"+query+cursor)
		if a.status != http.StatusOK {
			c.t.Fatalf("%s: got %d %s", query, a.status, a.text)
		}
		for _, i := range a.body["items"].([]any) {
			ids = append(ids, i.(map[string]any)["id"].(string))
		}
		next, more := a.body["next"].(string)
		if !more {
			return ids
		}
		cursor = "&cursor=" + next
	}
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

// TestDeadLettersRefused is everything that the API must refuse, with the exact codes.
func TestDeadLettersRefused(t *testing.T) {
	c := open(t)
	permanent, exhausted, gone, going := c.permanent("CLM-001-1"), c.exhausted("CLM-002-1"), c.permanent("CLM-003-1"), c.permanent("CLM-004-1")
	c.Set(now.Add(time.Minute))
	c.post("otto", "/dead-letters/"+gone+"/discard", `{"reason":"x"}`)
	c.post("ada", "/dead-letters/"+going+"/retry", `{"reason":"x"}`)
	foreign := strings.TrimSuffix(strings.SplitAfter(c.get("vera", "/dead-letters?state=all&limit=1").text, `"next":"`)[1], "\"}\n")
	const nobody = "3fa85f64-5717-5562-b3fc-2c963f66afa6"
	for _, tt := range []struct {
		who, path, body string // no body: a GET
		status          int
		code            string
	}{
		{"vera", "/dead-letters/" + nobody, "", 404, "job_not_found"},
		{"vera", "/dead-letters/CLM-001-1", "", 404, "job_not_found"},
		{"vera", "/dead-letters/%00", "", 404, "job_not_found"},
		{"vera", "/dead-letters/..%2F..", "", 404, "job_not_found"},
		{"vera", "/dead-letters/' OR 1=1 --", "", 404, "job_not_found"},
		{"vera", "/dead-letters/" + strings.Repeat("a", 3000), "", 404, "job_not_found"},
		{"vera", "/dead-letters/" + permanent + "?x=1", "", 422, "unknown_parameter"},
		{"vera", "/dead-letters?sate=all", "", 422, "unknown_parameter"},
		{"vera", "/dead-letters?state=closed", "", 422, "invalid_state"},
		{"vera", "/dead-letters?state=OPEN", "", 422, "invalid_state"},
		{"vera", "/dead-letters?sort=price", "", 422, "invalid_sort"},
		{"vera", "/dead-letters?state=open&state=all", "", 422, "invalid_parameter"},
		{"vera", "/dead-letters?state=%zz", "", 422, "invalid_parameter"},
		{"vera", "/dead-letters?reason=BAD_LUCK", "", 422, "invalid_reason"},
		{"vera", "/dead-letters?limit=0", "", 422, "invalid_limit"},
		{"vera", "/dead-letters?limit=201", "", 422, "invalid_limit"},
		{"vera", "/dead-letters?limit=-1", "", 422, "invalid_limit"},
		{"vera", "/dead-letters?limit=ten", "", 422, "invalid_limit"},
		{"vera", "/dead-letters?limit=99999999999999999999", "", 422, "invalid_limit"},
		{"vera", "/dead-letters?cursor=x", "", 422, "invalid_cursor"},
		{"vera", "/dead-letters?cursor=" + foreign, "", 422, "invalid_cursor"}, // of another filter
		{"vera", "/dead-letters?cursor=-1", "", 422, "invalid_cursor"},
		{"vera", "/dead-letters?q=" + strings.Repeat("x", 201), "", 422, "invalid_query"},
		{"vera", "/dead-letters?q=%00", "", 422, "invalid_q"},
		{"vera", "/dead-letters?q=" + strings.Repeat("x", 1001), "", 422, "invalid_q"},
		{"vera", "/dead-letters?team=%FF", "", 422, "invalid_team"},
		{"vera", "/dead-letters?policy=%1b%5B2J", "", 422, "invalid_policy"},

		{"otto", "/dead-letters/" + nobody + "/retry", `{"reason":"x"}`, 404, "job_not_found"},
		{"otto", "/dead-letters/nonsense/retry", `{"reason":"x"}`, 404, "job_not_found"},
		{"otto", "/dead-letters/" + exhausted + "/retry", `{"reason":"x"}`, 409, "max_retries_exceeded"},
		{"otto", "/dead-letters/" + exhausted + "/retry", `{"reason":"x","when":"now"}`, 409, "max_retries_exceeded"},
		{"otto", "/dead-letters/" + gone + "/retry", `{"reason":"x"}`, 409, "invalid_retry_state"},
		{"ada", "/dead-letters/" + gone + "/retry", `{"reason":"x","forceRetry":true}`, 409, "invalid_retry_state"},
		{"otto", "/dead-letters/" + going + "/retry", `{"reason":"x"}`, 409, "invalid_retry_state"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{}`, 422, "reason_required"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{"reason":null}`, 422, "reason_required"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{"reason":""}`, 422, "reason_required"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{"reason":" \t\n"}`, 422, "reason_required"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{"reason":"\u200b\u202e\ufeff\u0000"}`, 422, "reason_required"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{"reason":["x"]}`, 422, "invalid_reason"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{"reason":"` + strings.Repeat("é", 501) + `"}`, 422, "reason_too_long"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{"reason":"x","when":"later"}`, 422, "invalid_when"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{"reason":"x","when":1}`, 422, "invalid_when"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{"reason":"x","forceRetry":"true"}`, 422, "invalid_force_retry"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{"reason":"x","fresh":1}`, 422, "invalid_fresh"},
		{"ada", "/dead-letters/" + permanent + "/retry", `{"reason":"x","fresh":true}`, 422, "force_required"},
		{"ada", "/dead-letters/" + permanent + "/retry", `{"reason":"x","by":"maria"}`, 422, "unknown_field"},
		{"ada", "/dead-letters/" + permanent + "/retry", `{"reason":"x","forceretry":true}`, 422, "unknown_field"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{"reason":"x"`, 400, "invalid_json"},
		{"otto", "/dead-letters/" + permanent + "/retry", `["x"]`, 400, "invalid_json"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{"reason":"x"}{}`, 400, "invalid_json"},
		{"otto", "/dead-letters/" + permanent + "/retry", strings.Repeat("[", 60_000), 400, "invalid_json"},
		{"otto", "/dead-letters/" + permanent + "/retry", `{"reason":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "body_too_large"},

		{"otto", "/dead-letters/" + nobody + "/discard", `{"reason":"x"}`, 404, "job_not_found"},
		{"otto", "/dead-letters/" + gone + "/discard", `{"reason":"x"}`, 409, "invalid_retry_state"},
		{"otto", "/dead-letters/" + going + "/discard", `{"reason":"x"}`, 409, "invalid_retry_state"},
		{"otto", "/dead-letters/" + permanent + "/discard", `{"reason":" "}`, 422, "reason_required"},
		{"otto", "/dead-letters/" + permanent + "/discard", `{"reason":"x","forceRetry":true}`, 422, "unknown_field"},
		{"otto", "/dead-letters/" + permanent + "/discard", `x`, 400, "invalid_json"},

		{"otto", "/jobs/retry", `{"jobId":"` + nobody + `","reason":"x"}`, 404, "job_not_found"},
		{"otto", "/jobs/retry", `{"jobId":"2251799813685001","reason":"x"}`, 404, "job_not_found"},
		{"otto", "/jobs/retry", `{"jobId":"` + exhausted + `","reason":"x","forceRetry":false}`, 409, "max_retries_exceeded"},
		{"otto", "/jobs/retry", `{"jobId":"` + gone + `","reason":"x"}`, 409, "invalid_retry_state"},
		{"otto", "/jobs/retry", `{"jobId":"` + permanent + `"}`, 422, "reason_required"},
		{"otto", "/jobs/retry", `{"reason":"x"}`, 422, "invalid_job_id"},
		{"otto", "/jobs/retry", `{"jobId":7,"reason":"x"}`, 422, "invalid_job_id"},
		{"otto", "/jobs/retry", `{"jobId":"` + permanent + `","reason":"x","when":"now"}`, 422, "unknown_field"},

		{"vera", "/dead-letters/" + permanent + "/retry", `{"reason":"x"}`, 403, "forbidden_role"},
		{"vera", "/dead-letters/" + permanent + "/discard", `{"reason":"x"}`, 403, "forbidden_role"},
		{"vera", "/jobs/retry", `{"jobId":"` + permanent + `","reason":"x"}`, 403, "forbidden_role"},
		{"vera", "/outcomes", `{"id":"CLM-001-1"}`, 403, "forbidden_role"},
		{"otto", "/dead-letters/" + exhausted + "/retry", `{"reason":"x","fresh":true}`, 403, "forbidden_role"},
	} {
		c.refuses(tt.who, tt.path, tt.body, tt.status, tt.code)
	}
	for id, want := range map[string]string{permanent: "open", exhausted: "open", gone: "discarded", going: "reprocessing"} {
		if a := c.get("vera", "/dead-letters/"+id); a.body["state"] != want {
			t.Errorf("one is then %v, want %s", a.body["state"], want)
		}
	}
	a := c.post("ada", "/dead-letters/"+gone+"/retry", `{"reason":"x"}`)
	if message := a.body["message"].(string); !strings.Contains(message, "otto") || !strings.Contains(message, "2026-03-02T10:01:00Z") {
		t.Errorf("it does not say who was faster, and when: %s", message)
	}
}

func TestRetryWhereNothingCouldCarryItOut(t *testing.T) {
	c := open(t)
	id := c.Die(decision.DefaultPolicy, "CLM-001-1", "DUPLICATE_CLAIM", 2)
	if a := c.get("vera", "/dead-letters/"+id); a.body["process"] != "expected" || a.body["reviewSeen"] != nil {
		t.Errorf("at first the process is %v", a.body["process"])
	}
	c.Set(now.Add(2 * time.Minute))
	if a := c.get("vera", "/dead-letters/"+id); a.body["process"] != "nobody" {
		t.Errorf("the process is %v", a.body["process"])
	}
	a := c.post("otto", "/dead-letters/"+id+"/retry", `{"reason":"x"}`)
	a.refused(t, "no process waits", http.StatusConflict, "invalid_retry_state")
	if a := c.post("otto", "/dead-letters/"+id+"/discard", `{"reason":"x"}`); a.body["state"] != "discarded" {
		t.Errorf("discard: got %d %s", a.status, a.text)
	}
}

func TestRetryOfAPolicyThatIsGone(t *testing.T) {
	c := open(t)
	id := c.permanent("CLM-001-1")
	c.SetPolicies(decision.Policies{})
	a := c.post("otto", "/dead-letters/"+id+"/retry", `{"reason":"x"}`)
	a.refused(t, "without a backoff", http.StatusConflict, "policy_not_found")
	if a := c.post("otto", "/dead-letters/"+id+"/retry", `{"reason":"x","when":"now"}`); a.status != http.StatusOK {
		t.Errorf("now: got %d %s", a.status, a.text)
	}
}

func closedSets() map[string][]string {
	texts := func(n int, of func(int) string) (all []string) {
		for i := range n {
			all = append(all, of(i))
		}
		return all
	}
	reasons := decision.Reasons()
	outcomes := journal.BulkOutcomes()
	return map[string][]string{
		"Reason":      texts(len(reasons), func(i int) string { return string(reasons[i]) }),
		"BulkOutcome": texts(len(outcomes), func(i int) string { return string(outcomes[i]) }),
	}
}
