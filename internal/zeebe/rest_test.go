package zeebe_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

func dialREST(t *testing.T, address string, change ...func(*zeebe.Options)) *zeebe.Client {
	t.Helper()
	o := zeebe.Options{RESTAddress: address, KeepAlive: 45 * time.Second, Version: "v1"}
	for _, alter := range change {
		alter(&o)
	}
	return dial(t, o)
}

// answering returns a client of a server that gives every call this answer.
func answering(t *testing.T, code int, contentType, body string) *zeebe.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Location", "/login")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return dialREST(t, s.URL)
}

const (
	problemJSON = "application/problem+json"
	html        = "<html>Sign in</html>"
)

// TestProblems: what becomes of a job depends on who answered, and how.
func TestProblems(t *testing.T) {
	for _, tt := range []struct {
		name              string
		code              int
		contentType, body string
		want              worker.ErrorKind
		says              string
	}{
		{"unknown job", 404, problemJSON, `{"title":"NOT_FOUND","detail":"no such job"}`, worker.Gone, "404 NOT_FOUND: no such job"},
		{"problem by another type", 404, "text/plain", `{"title":"NOT_FOUND"}`, worker.Gone, "404 NOT_FOUND"},
		{"proxy that knows no way", 404, "text/html", html, worker.Ambiguous, "/v2/jobs/1/completion answered 404 Not Found with text/html, not as the engine does"},
		{"engine without the API", 404, "application/json", `{"status":404,"error":"Not Found"}`, worker.Ambiguous, "not as the engine does"},
		{"wrong state", 409, problemJSON, `{"title":"INVALID_STATE"}`, worker.Gone, "INVALID_STATE"},
		{"bad input", 400, problemJSON, `{"title":"INVALID_ARGUMENT"}`, worker.Refused, "INVALID_ARGUMENT"},
		{"too many", 429, "text/plain", "", worker.NotTaken, "429"},
		{"backpressure", 503, problemJSON, `{"title":"RESOURCE_EXHAUSTED"}`, worker.NotTaken, "RESOURCE_EXHAUSTED"},
		{"backpressure as an error", 500, problemJSON, `{"title":"x","detail":"code RESOURCE_EXHAUSTED"}`, worker.NotTaken, "RESOURCE_EXHAUSTED"},
		{"another 503", 503, problemJSON, `{"title":"PartitionNotFoundException","detail":"RESOURCE_EXHAUSTED"}`, worker.Ambiguous, "Partition"},
		{"error", 500, problemJSON, `{"title":"INTERNAL"}`, worker.Ambiguous, "INTERNAL"},
		{"no token", 401, "", "", worker.NotTaken, "401"},
		{"no right", 403, problemJSON, `{"title":"FORBIDDEN"}`, worker.NotTaken, "FORBIDDEN"},
		{"redirection", 302, "text/html", html, worker.Ambiguous, "302 Found with text/html"},
		{"page of a proxy", 200, "text/html", html, worker.Ambiguous, "200 OK with text/html"},
		{"gateway time-out", 504, "text/html", html, worker.Ambiguous, "504"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := answering(t, tt.code, tt.contentType, tt.body)
			err := c.Complete(wait.Context(t), &worker.Job{Key: 1}, "{}")
			wantKind(t, "Complete", err, tt.want)
			if !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %q, want one line that says %q", err, tt.says)
			}
		})
	}
}

// TestClosedConnection: a connection that ends without an answer is no empty answer to a poll.
func TestClosedConnection(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(s.Close)
	_, err := dialREST(t, s.URL).Activate(wait.Context(t), poll(1, time.Second))
	wantKind(t, "Activate", err, worker.Ambiguous)
}

// TestAnotherAPI: a server that answers every request with an object is not taken for the engine.
func TestAnotherAPI(t *testing.T) {
	c, ctx := answering(t, http.StatusOK, "application/json", "{}"), wait.Context(t)
	_, err := c.Activate(ctx, poll(1, time.Second))
	wantKind(t, "Activate", err, worker.Ambiguous)
	topology, err := c.Topology(ctx)
	if err == nil {
		t.Errorf("topology %+v", topology)
	}
	deployed, err := c.Deploy(ctx, "p.bpmn", nil, "")
	if err == nil {
		t.Errorf("deployed %+v", deployed)
	}
}

// TestBadActivations: one clear error, and no more memory than the limit says.
func TestBadActivations(t *testing.T) {
	for name, tt := range map[string]struct {
		contentType, body string
		want              worker.ErrorKind
	}{
		"page":        {"text/html", html, worker.Ambiguous},
		"number":      {"application/json", `{"jobs":[{"key":1.5e3}]}`, worker.Ambiguous},
		"cut off":     {"application/json", `{"jobs":[{"key":1},`, worker.Ambiguous},
		"100 MB":      {"application/json", `{"jobs":"` + strings.Repeat("x", 100<<20), worker.TooLarge},
		"empty":       {"application/json", "", worker.Ambiguous},
		"no key":      {"application/json", `{"jobs":[{"type":"work","retries":3}]}`, worker.Ambiguous},
		"100 MB page": {"text/html", strings.Repeat("x", 100<<20), worker.TooLarge},
	} {
		c := answering(t, http.StatusOK, tt.contentType, tt.body)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := c.Activate(wait.Context(t), poll(1, time.Second))
		runtime.ReadMemStats(&after)
		wantKind(t, name, err, tt.want)
		if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
			t.Errorf("%s: %d MB were allocated for the answer", name, took>>20)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

// TestRESTJobs: what is asked for; keys are above what a float holds, as numbers and as text, and packed answers are read.
func TestRESTJobs(t *testing.T) {
	const asks = `{"type":"work","worker":"tester","timeout":60000,"maxJobsToActivate":1,"fetchVariable":["claimId"],"requestTimeout":1000,"tenantIds":["a"]}`
	const named = `"type":"work","tenantId":"a","retries":3,"customHeaders":{"h":"1"},"variables":{"claimId":"CLM-T-1"}`
	for name, job := range map[string]string{
		"8.6":  `{"key":9007199254740993,"processInstanceKey":9007199254740995,"elementInstanceKey":9007199254740997,` + named + `}`,
		"8.10": `{"jobKey":"9007199254740993","processInstanceKey":"9007199254740995","elementInstanceKey":"9007199254740997","priority":7,` + named + `}`,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked, _ := io.ReadAll(r.Body)
			if r.URL.Path != "/engine/v2/jobs/activation" || r.UserAgent() != "retry-worker/v1" || string(asked) != asks {
				t.Errorf("%s by %s: %s", r.URL.Path, r.UserAgent(), asked)
			}
			w.Header().Set("Content-Encoding", "gzip")
			packed := gzip.NewWriter(w)
			_, _ = io.WriteString(packed, `{"jobs":[`+job+`]}`)
			_ = packed.Close()
		}))
		defer s.Close()
		request := poll(1, time.Second)
		request.TenantIDs = []string{"a"}
		jobs, err := dialREST(t, s.URL+"/engine/").Activate(wait.Context(t), request)
		want := worker.Job{Key: 9007199254740993, ProcessInstanceKey: 9007199254740995, ElementInstanceKey: 9007199254740997,
			Type: "work", TenantID: "a", Retries: 3, Headers: `{"h":"1"}`, Variables: `{"claimId":"CLM-T-1"}`}
		if err != nil || len(jobs) != 1 || jobs[0] != want {
			t.Errorf("%s: got %+v and %v", name, jobs, err)
		}
	}
}

// TestBasicAuthentication is shown with each call, and the password is never told.
func TestBasicAuthentication(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "worker" || password != "canary" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"gatewayVersion":"8.8.1","partitionsCount":1,"brokers":[{"partitions":[{"role":"leader"}]}]}`)
	}))
	defer s.Close()
	for password, works := range map[string]bool{"canary": true, "canary-wrong": false} {
		c := dialREST(t, s.URL, func(o *zeebe.Options) { o.Username, o.Password = "worker", password })
		for range 2 {
			_, err := c.Topology(wait.Context(t))
			if (err == nil) != works || err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("with %s: %v", password, err)
			}
		}
	}
}

// TestCommandsOverREST holds the other commands against the description of the API.
func TestCommandsOverREST(t *testing.T) {
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if f, part, err := r.FormFile("resources"); err == nil {
			body, _ = io.ReadAll(f)
			body = append([]byte(part.Filename+" "), body...)
		}
		got = append(got, r.Method+" "+r.URL.Path+" "+string(body))
		switch r.URL.Path {
		case "/v2/deployments":
			_, _ = io.WriteString(w, `{"deployments":[{"processDefinition":{"processDefinitionId":"P","processDefinitionVersion":2,"processDefinitionKey":"9007199254740993"}},{"form":{}}]}`)
		case "/v2/process-instances":
			_, _ = io.WriteString(w, `{"processInstanceKey":"9007199254740993"}`)
		case "/v2/messages/publication":
			_, _ = io.WriteString(w, `{"messageKey":"1"}`)
		case "/v2/topology":
			_, _ = io.WriteString(w, `{"gatewayVersion":"8.9.0","partitionsCount":1,"brokers":[{"partitions":[{"role":"leader"},{"role":"follower"}]}]}`)
		default:
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer s.Close()
	c, ctx := dialREST(t, s.URL), wait.Context(t)
	j := &worker.Job{Key: 9007199254740993, ElementInstanceKey: 5}
	deployed, err := c.Deploy(ctx, "p.bpmn", []byte("<x/>"), "")
	if err != nil || len(deployed) != 1 || deployed[0] != (zeebe.Deployment{Process: "P", Version: 2, Key: 9007199254740993, File: "p.bpmn", Tenant: "<default>"}) {
		t.Errorf("deployed %+v, %v", deployed, err)
	}
	if key, err := c.Create(ctx, "P", `{"a":1}`); err != nil || key != 9007199254740993 {
		t.Errorf("created %d, %v", key, err)
	}
	topology, err := c.Topology(ctx)
	if err != nil || topology != "gateway 8.9.0, brokers: 1, partitions: 1, with a leader: 1" {
		t.Errorf("topology %s, %v", topology, err)
	}
	runs, err := c.Runs(ctx, 7)
	if err != nil || !runs {
		t.Errorf("runs: %t, %v", runs, err)
	}
	for _, err := range []error{
		c.Publish(ctx, "m", "k", time.Second), c.Hold(ctx, j, time.Minute), c.Complete(ctx, j, `{"a":"<"}`),
		c.Fail(ctx, j, worker.Failure{Retries: 0, Backoff: time.Second, Message: "why"}),
		c.Throw(ctx, j, worker.BPMNError{Code: "E", Message: "why", Variables: `{"a":1}`}),
	} {
		testkit.Must(t, err)
	}
	const job = "/v2/jobs/9007199254740993"
	want := []string{
		`POST /v2/deployments p.bpmn <x/>`,
		`POST /v2/process-instances {"processDefinitionId":"P","variables":{"a":1}}`,
		`GET /v2/topology `,
		`POST /v2/process-instances/7/modification {}`,
		`POST /v2/messages/publication {"correlationKey":"k","name":"m","timeToLive":1000}`,
		`PATCH ` + job + ` {"changeset":{"timeout":60000}}`,
		`POST ` + job + `/completion {"variables":{"a":"\u003c"}}`,
		`POST ` + job + `/failure {"errorMessage":"why","retries":0,"retryBackOff":1000}`,
		`PUT /v2/element-instances/5/variables {"local":false,"variables":{"a":1}}`,
		`POST ` + job + `/error {"errorCode":"E","errorMessage":"why","variables":{"a":1}}`,
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Errorf("call %d of %d:\ngot  %q\nwant %q", i, len(got), append(got, "")[min(i, len(got))], append(want, "")[min(i, len(want))])
		}
	}
}
