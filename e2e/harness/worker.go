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
	// loops of one worker, each of which says when the engine answers it.
	loops = 5
)

// Settings of a worker that a test starts: its engine, its journal in that folder, ports that are free, and nothing of this
// process's environment. Later settings of the same name go before earlier ones.
func Settings(engine, folder string, more ...string) []string {
	return append([]string{
		"ZEEBE_ADDRESS=" + engine, "ZEEBE_INSECURE_CONNECTION=true",
		"RETRY_WORKER_OPS_ADDR=127.0.0.1:0", "RETRY_WORKER_HTTP_ADDR=127.0.0.1:0", "RETRY_WORKER_WORKER_NAME=e2e",
		"RETRY_WORKER_DATABASE_URL=" + Database(folder),
	}, more...)
}

// Database is the address of a worker's journal in a folder.
func Database(folder string) string { return "sqlite:" + filepath.Join(folder, "journal.db") }

// Worker is one life of a worker's process.
type Worker struct {
	*Process
	Log *Log
	// API and Ops are the addresses of its API and pages, and of its metrics and probes.
	API, Ops string
}

// StartWorker starts one, and returns when each of its loops is served by the engine. It is stopped at the latest when the
// test ends.
func StartWorker(t *testing.T, binary string, settings []string) *Worker {
	t.Helper()
	w := RunWorker(t, binary, settings)
	t.Cleanup(func() { _ = w.Stop(context.Background(), StopTime) }) // one that a test has ended is not stopped again
	return w
}

// RunWorker is StartWorker for one that outlives the test: who starts it stops it.
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

// Ask asks the API of a worker at that URL, to be answered into answer; an empty token is not shown, body nil asks by GET. The
// error is an *api.Refused where the API says no.
func Ask(ctx context.Context, url, token, path string, body, answer any) error {
	text, err := (&api.Client{Base: url, Token: token}).Ask(ctx, path, body)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, answer)
}

// Issue tokens to people with those roles, in a tokens file that is made, and return them by the names.
func Issue(t *testing.T, file string, people map[string]access.Role) map[string]string {
	t.Helper()
	secrets := make(map[string]string)
	for name, role := range people {
		secret, token, err := access.NewToken(name, role, time.Time{})
		if err == nil {
			err = access.Append(file, &token)
		}
		testkit.Must(t, err)
		secrets[name] = secret
	}
	return secrets
}

// Replace a file that a worker watches, whole.
func Replace(t *testing.T, file, content string) {
	t.Helper()
	fresh := file + ".new"
	err := os.WriteFile(fresh, []byte(content), 0o600)
	if err == nil {
		err = os.Rename(fresh, file)
	}
	testkit.Must(t, err)
}
