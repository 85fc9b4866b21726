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

	"retry-worker/internal/app"
	"retry-worker/internal/config"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// ask asks the API and gives back status and body.
func (r *service) ask(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(wait.Context(t), method, "http://"+r.HTTPAddr()+path, strings.NewReader(body))
	testkit.Must(t, err)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	testkit.Must(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
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

// With tokens nobody is local, and a tokens file that is wrong is refused at the start as a wrong setting is.
func TestTokensFile(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	s := settings(t, g.Addr())
	s.AuthTokensFile = filepath.Join(t.TempDir(), "tokens")
	testkit.Must(t, os.WriteFile(s.AuthTokensFile, []byte("maria superuser - 00\n"), 0o600))
	_, err := app.New(s, buildInfo, log)
	problems, ok := errors.AsType[config.Problems](err)
	if !ok || len(problems) == 0 || !strings.HasPrefix(problems[0], "RETRY_WORKER_AUTH_TOKENS_FILE: ") {
		t.Errorf("a wrong file: %v", err)
	}
	testkit.Must(t, os.WriteFile(s.AuthTokensFile, []byte("maria operator - "+strings.Repeat("ab", 32)+"\n"), 0o600))
	r := serve(t, s)
	if status, body := r.ask(t, http.MethodGet, "/api/v1/dead-letters", ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", status, body)
	}
}
