package faults_test

import (
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
)

// soonGone bounds a stop that nothing holds up: polls under way take two seconds, a SHUTDOWN_TIMEOUT 25.
const soonGone = 15 * time.Second

// program is the built worker as a process of its own.
type program struct {
	*harness.Process
	t   *testing.T
	log *harness.Log
}

// program starts the built worker on the fixture's gateway, with nothing in its environment but what it is
// given, and waits until it serves.
func (f *fixture) program(name string, env ...string) *program {
	f.t.Helper()
	p := &program{t: f.t, log: &harness.Log{}}
	c := harness.Command{Path: harness.Binary(f.t), Args: []string{"serve"}, Screen: p.log, Env: append([]string{
		f.engineSetting(), "ZEEBE_INSECURE_CONNECTION=true",
		"RETRY_WORKER_OPS_ADDR=127.0.0.1:0", "RETRY_WORKER_HTTP_ADDR=127.0.0.1:0", "RETRY_WORKER_WORKER_NAME=" + name,
		"RETRY_WORKER_DATABASE_URL=sqlite:" + filepath.Join(f.t.TempDir(), "journal.db"),
	}, env...)}
	var err error
	p.Process, err = harness.Start(c)
	testkit.Must(f.t, err)
	f.t.Cleanup(func() {
		p.Kill()
		if f.t.Failed() {
			f.t.Logf("what %s printed:\n%s", name, strings.Join(p.Lines(), "\n"))
		}
	})
	p.logged("serving", 1)
	return p
}

// logged waits for n log lines with that message, and returns them.
func (p *program) logged(message string, n int) (found []harness.Line) {
	p.t.Helper()
	p.log.Await(p.t, "the log to say: "+message, func(lines []harness.Line) bool {
		found = slices.DeleteFunc(slices.Clone(lines), func(l harness.Line) bool {
			return !strings.Contains(l.Text("message"), message)
		})
		return len(found) >= n
	})
	return found
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	testkit.Must(p.t, p.Signal(s))
}

// ends waits for the process to end by itself, all done, and says how long that took; it fails the test
// where it takes longer than atMost.
func (p *program) ends(atMost time.Duration) time.Duration {
	p.t.Helper()
	took := p.gone(atMost)
	if err := p.Err(); err != nil {
		p.t.Errorf("the worker ended with %v, want success", err)
	}
	return took
}

// endsHard is ends for a worker that leaves jobs behind, and has to say so.
func (p *program) endsHard(atMost time.Duration) time.Duration {
	p.t.Helper()
	took := p.gone(atMost)
	if err := p.Err(); err == nil || err.Error() != "exit status 1" {
		p.t.Errorf("the worker ended with %v, want exit status 1", err)
	}
	p.logged("stopped hard", 1)
	return took
}

func (p *program) gone(atMost time.Duration) time.Duration {
	p.t.Helper()
	began := time.Now()
	select {
	case <-p.Done():
	case <-time.After(atMost):
		p.t.Fatalf("the worker has not ended after %s", atMost)
	}
	return time.Since(began)
}
