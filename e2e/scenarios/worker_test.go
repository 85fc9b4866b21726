package scenarios

import (
	"net/http"
	"regexp"
	"testing"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
)

// process is a running worker.
type process struct {
	*harness.Worker
	name string
}

// reach is the environment by which workers and commands take the fixture's protocol.
func (f *fixture) reach() []string {
	if f.protocol == byREST {
		return []string{"RETRY_WORKER_ENGINE=rest", "ZEEBE_REST_ADDRESS=" + f.RESTAddress()}
	}
	return nil
}

// settings of a worker that goes by the fixture's clock; what follows goes before them.
func (f *fixture) settings(name string, more ...string) []string {
	more = append(more, f.reach()...)
	return harness.Settings(f.GatewayAddress(), f.dir, append([]string{"RETRY_WORKER_WORKER_NAME=" + name, f.clock.Environment()}, more...)...)
}

// serve starts a worker with a journal of its own. It is stopped at the latest when the test ends.
func (s *scenario) serve(name string, settings ...string) *process {
	s.t.Helper()
	own := "RETRY_WORKER_DATABASE_URL=" + harness.Database(s.t.TempDir())
	return &process{harness.StartWorker(s.t, harness.BinaryWithClock(s.t), s.settings(name, append([]string{own}, settings...)...)), name}
}

// get is what a URL of the worker says.
func get(t *testing.T, url string) string {
	t.Helper()
	status, text := testkit.Get(t, "http://"+url)
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d", url, status)
	}
	return text
}

var jobsTotal = regexp.MustCompile(`(?m)^retry_worker_jobs_total\{action="(\w+)",job_type="([\w-]+)"\} (\d+)$`)

// engine is the environment of a command that asks the engine.
func (f *fixture) engine() []string {
	return append(f.reach(), "ZEEBE_ADDRESS="+f.GatewayAddress(), "ZEEBE_INSECURE_CONNECTION=true")
}

// run runs a command that reads a journal, and fails where it does not end well.
func (s *scenario) run(database string, args ...string) string {
	s.t.Helper()
	out, code := harness.RunCommand(s.t, harness.Binary(s.t), []string{"RETRY_WORKER_DATABASE_URL=" + database}, args...)
	if code != 0 {
		s.t.Fatalf("retry-worker %v: exit status %d\n%s", args, code, out)
	}
	return out
}
