package chaos_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// settings of one worker process.
type settings struct {
	name    string
	gateway string // host:port
	url     string // of the database
	env     []string
	clock   *harness.SharedClock // nil: this machine's
}

// program is the built worker as a process of its own.
type program struct {
	*harness.Process
	t         *testing.T
	name      string
	out       *harness.Log
	ops, http string // addresses
}

// launch starts a worker with nothing in its environment but what it is given; it may refuse.
func launch(t *testing.T, s settings) *program {
	t.Helper()
	p := &program{t: t, name: s.name, out: &harness.Log{}}
	binary := harness.Binary
	if s.clock != nil {
		binary, s.env = harness.BinaryWithClock, append(s.env, s.clock.Environment())
	}
	var err error
	p.Process, err = harness.Start(harness.Command{
		Path: binary(t), Args: []string{"serve"}, Screen: p.out, Output: p.out,
		Env: append([]string{
			"ZEEBE_ADDRESS=" + s.gateway, "ZEEBE_INSECURE_CONNECTION=true", "RETRY_WORKER_WORKER_NAME=" + s.name,
			"RETRY_WORKER_OPS_ADDR=127.0.0.1:0", "RETRY_WORKER_HTTP_ADDR=127.0.0.1:0", "RETRY_WORKER_DATABASE_URL=" + s.url,
		}, s.env...),
	})
	testkit.Must(t, err)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s printed last:\n%s", s.name, strings.Join(p.Lines(), "\n"))
		}
	})
	return p
}

// serve is launch for a worker that has to serve.
func serve(t *testing.T, s settings) *program {
	t.Helper()
	p := launch(t, s)
	serving := p.logged("serving")
	p.ops, p.http = serving.Text("ops"), serving.Text("api")
	return p
}

// logged waits for a log line with that message, and returns the last one.
func (p *program) logged(message string) (found harness.Line) {
	p.t.Helper()
	p.out.Await(p.t, fmt.Sprintf("%q in the log of %s", message, p.name), func(lines []harness.Line) bool {
		for _, line := range lines {
			if strings.Contains(line.Text("message"), message) {
				found = line
			}
		}
		return found != nil
	})
	return found
}

// stop ends the program in order.
func (p *program) stop() {
	p.t.Helper()
	testkit.Must(p.t, p.Stop(context.Background(), wait.Limit))
	if err := p.Err(); err != nil {
		p.t.Errorf("%s ended with %v, want success", p.name, err)
	}
}

func (p *program) readyz() (status int, body string) {
	return testkit.Get(p.t, "http://"+p.ops+"/readyz")
}

func (p *program) metrics() string {
	p.t.Helper()
	_, body := testkit.Get(p.t, "http://"+p.ops+"/metrics")
	return body
}

// unready waits until /readyz says why the journal cannot be written, and holds what goes with it.
func (p *program) unready() (reason string) {
	p.t.Helper()
	wait.Until(p.t, "/readyz of "+p.name+" answers 503", func() bool {
		var status int
		status, reason = p.readyz()
		return status == http.StatusServiceUnavailable
	})
	reason, rest, _ := strings.Cut(reason, "\n")
	if !strings.HasPrefix(reason, "the journal cannot be written") || strings.Contains(rest, "journal") {
		p.t.Errorf("/readyz says %q, then %q, want one line on the journal", reason, rest)
	}
	if !strings.Contains(p.metrics(), "\nretry_worker_journal_up 0\n") {
		p.t.Error("retry_worker_journal_up is not 0 while the journal cannot be written")
	}
	return strings.TrimSpace(reason)
}

// once runs a command on a journal to its end.
func once(t *testing.T, url string, args ...string) (output string, code int) {
	t.Helper()
	return harness.RunCommand(t, harness.Binary(t), []string{"RETRY_WORKER_DATABASE_URL=" + url}, args...)
}

// folder is one that every user may enter, removed when the test ends.
func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "chaos-")
	testkit.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	testkit.Must(t, os.Chmod(dir, 0o755))
	return dir
}

// pass lets a time pass that is itself what is tested.
func pass(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// counted is the sum of a counter over its labels.
func (p *program) counted(name string) (sum int) {
	p.t.Helper()
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\d+)$`).FindAllStringSubmatch(p.metrics(), -1) {
		n, err := strconv.Atoi(m[1])
		testkit.Must(p.t, err)
		sum += n
	}
	return sum
}
