package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"retry-worker/internal/app"
	"retry-worker/internal/config"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// ask asks the API and gives back status and body.
func (r *service) ask(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(wait.Context(t), method, "http://"+r.HTTPAddr()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// dead makes a dead letter by a job of the engine and brings its process to the review task.
func (r *service) dead(t *testing.T, g *gateway.Gateway, claim string) (letter string, review int64) {
	t.Helper()
	failed := g.AddJob(analyze(claim, "DUPLICATE_CLAIM", 2))
	wait.Until(t, "an end", func() bool {
		j, _ := g.Job(failed)
		return j.State == gateway.ErrorThrown
	})
	j, _ := g.Job(failed)
	var thrown struct{ DeadLetterID string }
	if err := json.Unmarshal([]byte(j.Answers[len(j.Answers)-1].Variables), &thrown); err != nil || thrown.DeadLetterID == "" {
		t.Fatalf("no dead letter in %+v (%v)", j.Answers, err)
	}
	review = g.AddJob(gateway.Job{Type: worker.RetryReview, ProcessInstanceKey: j.ProcessInstanceKey,
		Variables: fmt.Sprintf(`{"claimId":%q,"deadLetterId":%q}`, claim, thrown.DeadLetterID)})
	wait.Until(t, "its process waits", func() bool {
		return strings.Contains(second(r.ask(t, http.MethodGet, "/api/v1/dead-letters/"+thrown.DeadLetterID, "")), `"process":"waiting"`)
	})
	return thrown.DeadLetterID, review
}

func second(_ int, s string) string { return s }

// A person's decision goes from the API to the process, and a stop in between leaves the job where it is.
func TestReviewOverHTTP(t *testing.T) {
	leavesNothing(t)
	g := gateway.New(t, gateway.Options{})
	s := settings(t, g.Addr())
	r := serve(t, s)
	letter, review := r.dead(t, g, "CLM-1-1")
	wait.Until(t, "the gauges", func() bool {
		return r.metric(t, `retry_worker_dead_letters{policy="tiss-submission",state="open"} 0`) // read every 15 s
	})
	r.stop()
	r.returned(t, 5*time.Second)
	if j, _ := g.Job(review); j.State != gateway.Activated || len(j.Activations) != 1 || time.Until(j.Activations[0].Deadline) < 23*time.Hour {
		t.Fatalf("after a stop the review job is %+v, want it kept for a day", j)
	}
	r = serve(t, s)
	wait.Until(t, "the gauges", func() bool {
		return r.metric(t, `retry_worker_dead_letters{policy="tiss-submission",state="open"} 1`)
	})
	if _, text := r.get(t, "/metrics"); !strings.Contains(text, `retry_worker_dead_letters_oldest_seconds{policy="tiss-submission"} `) {
		t.Error("the oldest dead letter's age is not there")
	}
	status, body := r.ask(t, http.MethodPost, "/api/v1/dead-letters/"+letter+"/retry", `{"reason":"portal de volta"}`)
	if status >= 300 {
		t.Fatalf("retry: %d %s", status, body)
	}
	wait.Until(t, "the process has it", func() bool {
		j, _ := g.Job(review)
		return j.State == gateway.Completed
	})
	j, _ := g.Job(review)
	var got map[string]any
	if err := json.Unmarshal([]byte(j.Answers[len(j.Answers)-1].Variables), &got); err != nil || got["reviewDecision"] != "reprocess" || got["reviewedBy"] != "local" || got["retryCount"] != 3.0 {
		t.Errorf("completed with %v (%v)", got, err)
	}
	wait.Until(t, "it is recorded", func() bool {
		return strings.Contains(second(r.ask(t, http.MethodGet, "/api/v1/dead-letters/"+letter, "")), `"delivery":"taken"`)
	})
	status, body = r.ask(t, http.MethodPost, "/api/v1/dead-letters/"+letter+"/discard", `{"reason":"outra vez"}`)
	if status != http.StatusConflict || !strings.Contains(body, "invalid_retry_state") || !strings.Contains(body, "local") {
		t.Errorf("decided twice: %d %s", status, body)
	}
	if !r.metric(t, `retry_worker_jobs_total{action="completed",job_type="retry-review"} 1`) {
		t.Error("the review job is not counted as completed")
	}
}

// What is decided while the engine is away arrives when it is back; the outbox's gauge says what waits.
func TestReviewWhileTheEngineIsDown(t *testing.T) {
	skipIfShort(t, "waits for an engine that is away")
	g := gateway.New(t, gateway.Options{})
	r := serve(t, settings(t, g.Addr()))
	again, first := r.dead(t, g, "CLM-1-1")
	away, second := r.dead(t, g, "CLM-2-1")
	g.Down()
	for path, body := range map[string]string{
		"/api/v1/dead-letters/" + again + "/retry": `{"reason":"r","when":"now"}`, "/api/v1/dead-letters/" + away + "/discard": `{"reason":"r"}`,
	} {
		if status, answer := r.ask(t, http.MethodPost, path, body); status >= 300 {
			t.Fatalf("%s: %d %s", path, status, answer)
		}
	}
	wait.Until(t, "two wait", func() bool { return r.metric(t, "retry_worker_outbox_pending 2") })
	g.Up()
	wait.Until(t, "both have arrived", func() bool {
		one, _ := g.Job(first)
		other, _ := g.Job(second)
		return one.State == gateway.Completed && other.State == gateway.Completed
	})
	wait.Until(t, "none waits", func() bool { return r.metric(t, "retry_worker_outbox_pending 0") })
}

// An instance that was cancelled takes nothing: its dead letter is open again, and says that nobody waits.
func TestReviewOfACancelledInstance(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	r := serve(t, settings(t, g.Addr()))
	letter, review := r.dead(t, g, "CLM-1-1")
	j, _ := g.Job(review)
	g.Cancel(j.ProcessInstanceKey)
	if status, body := r.ask(t, http.MethodPost, "/api/v1/dead-letters/"+letter+"/retry", `{"reason":"r"}`); status >= 300 {
		t.Fatalf("retry: %d %s", status, body)
	}
	wait.Until(t, "it says so", func() bool {
		_, body := r.ask(t, http.MethodGet, "/api/v1/dead-letters/"+letter, "")
		return strings.Contains(body, `"state":"open"`) && strings.Contains(body, `"process":"nobody"`)
	})
}

// The pages are served beside the API; without a journal they say so.
func TestPagesAreServed(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	r := serve(t, settings(t, g.Addr()))
	wait.Until(t, "the overview", func() bool {
		status, body := r.ask(t, http.MethodGet, "/", "")
		return status == http.StatusOK && strings.Contains(body, "<html")
	})
	if status, body := r.ask(t, http.MethodGet, "/dead-letters", ""); status != http.StatusOK || !strings.Contains(body, "<html") {
		t.Errorf("the list: %d", status)
	}
}

// With tokens nobody is local, and a tokens file that is wrong is refused at the start as a wrong setting is.
func TestTokensFile(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	s := settings(t, g.Addr())
	s.AuthTokensFile = filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(s.AuthTokensFile, []byte("maria superuser - 00\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := app.New(s, buildInfo, log)
	problems, ok := errors.AsType[config.Problems](err)
	if !ok || len(problems) == 0 || !strings.HasPrefix(problems[0], "RETRY_WORKER_AUTH_TOKENS_FILE: ") {
		t.Errorf("a wrong file: %v", err)
	}
	if err := os.WriteFile(s.AuthTokensFile, []byte("maria operator - "+strings.Repeat("ab", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := serve(t, s)
	if status, body := r.ask(t, http.MethodGet, "/api/v1/dead-letters", ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", status, body)
	}
}
