package harness

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"retry-worker/internal/access"
	"retry-worker/internal/api"
	"retry-worker/internal/testkit"
)

const (
	// StopTime bounds the stop of a worker.
	StopTime = 30 * time.Second
	// loops is how many loops a worker has, each of which logs that the engine answers.
	loops = 5
)

// Settings returns the environment of a worker that a test starts: its engine, its journal in that folder, free
// ports, nothing of this process's, and more, which may override these.
func Settings(engine, folder string, more ...string) []string {
	return append([]string{
		"ZEEBE_ADDRESS=" + engine, "ZEEBE_INSECURE_CONNECTION=true",
		"RETRY_WORKER_OPS_ADDR=127.0.0.1:0", "RETRY_WORKER_HTTP_ADDR=127.0.0.1:0", "RETRY_WORKER_WORKER_NAME=e2e",
		"RETRY_WORKER_DATABASE_URL=" + Database(folder),
	}, more...)
}

// Database returns the address of a worker's journal in a folder.
func Database(folder string) string { return "sqlite:" + filepath.Join(folder, "journal.db") }

// Worker is a worker's process.
type Worker struct {
	*Process
	Log *Log
	// API and Ops are the addresses of its API and console, and of its metrics and probes.
	API, Ops string
}

// StartWorker starts a worker, and returns when the engine answers each of its loops. It is stopped when the test
// ends.
func StartWorker(t *testing.T, binary string, settings []string) *Worker {
	t.Helper()
	w := RunWorker(t, binary, settings)
	t.Cleanup(func() { _ = w.Stop(context.Background(), StopTime) }) // stopping twice does nothing
	return w
}

// RunWorker is StartWorker for a worker that may outlive the test; the caller stops it.
func RunWorker(t *testing.T, binary string, settings []string) *Worker {
	t.Helper()
	log := &Log{}
	p, err := Start(Command{Path: binary, Args: []string{"serve"}, Env: settings, Output: log})
	testkit.Must(t, err)
	w := &Worker{Process: p, Log: log}
	log.Await(t, "the worker to be served by the engine", func(lines []Line) bool {
		select {
		case <-p.Done():
			t.Fatalf("the worker ended: %q", p.Lines())
		default:
		}
		served := 0
		for _, l := range lines {
			switch l.Text("message") {
			case "serving":
				w.API, w.Ops = l.Text("api"), l.Text("ops")
			case "engine answers polls":
				served++
			}
		}
		return served >= loops
	})
	return w
}

// Ask calls the API of a worker at that URL and decodes the answer. It is a GET if body is nil; an empty token is not
// sent. The error is an *access.Refusal if the API refuses.
func Ask(ctx context.Context, url, token, path string, body, answer any) error {
	text, err := (&api.Client{Base: url, Token: token}).Ask(ctx, path, body)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

// Issue makes a tokens file with a token for each person and role, and returns the secrets by name.
func Issue(t *testing.T, file string, people map[string]access.Role) map[string]string {
	t.Helper()
	secrets := make(map[string]string)
	for name, role := range people {
		secret, token := access.NewToken(name, role, time.Time{})
		testkit.Must(t, access.Append(file, &token))
		secrets[name] = secret
	}
	return secrets
}

// Replace replaces a file that a worker watches, in one step.
func Replace(t *testing.T, file, content string) {
	t.Helper()
	fresh := file + ".new"
	err := os.WriteFile(fresh, []byte(content), 0o600)
	if err == nil {
		err = os.Rename(fresh, file)
	}
	testkit.Must(t, err)
}
