package chaos_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
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
	user    *syscall.Credential  // nil: this process's
}

// program is the built worker as a process of its own.
type program struct {
	*harness.Process
	t         *testing.T
	name      string
	out       *transcript
	ops, http string // addresses
}

// launch starts a worker with nothing in its environment but what it is given; it may refuse.
func launch(t *testing.T, s settings) *program {
	t.Helper()
	ports, err := harness.FreePorts(1) // the address of the API is in no log
	testkit.Must(t, err)
	p := &program{t: t, name: s.name, out: &transcript{}, http: harness.Address(ports[0])}
	binary := harness.Binary
	if s.clock != nil {
		binary, s.env = harness.BinaryWithClock, append(s.env, s.clock.Environment())
	}
	p.Process, err = harness.Start(harness.Command{
		Path: binary(t), Args: []string{"serve"}, Screen: p.out, Output: p.out, User: s.user,
		Env: append([]string{
			"ZEEBE_ADDRESS=" + s.gateway, "ZEEBE_INSECURE_CONNECTION=true", "RETRY_WORKER_WORKER_NAME=" + s.name,
			"RETRY_WORKER_OPS_ADDR=127.0.0.1:0", "RETRY_WORKER_HTTP_ADDR=" + p.http, "RETRY_WORKER_DATABASE_URL=" + s.url,
		}, s.env...),
	})
	testkit.Must(t, err)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s printed last:\n%s", s.name, p.out.tail(2000))
		}
	})
	return p
}

// serve is launch for a worker that has to serve.
func serve(t *testing.T, s settings) *program {
	t.Helper()
	p := launch(t, s)
	line := p.logged("serving")
	p.ops, _ = line["ops"].(string)
	return p
}

// logged waits for a log line with that message; the program must not end before.
func (p *program) logged(message string) map[string]any {
	p.t.Helper()
	var found map[string]any
	wait.Until(p.t, fmt.Sprintf("%q in the log of %s", message, p.name), func() bool {
		if found = p.out.line(message); found != nil {
			return true
		}
		select {
		case <-p.Done():
			if found = p.out.line(message); found == nil {
				p.t.Fatalf("%s ended (%v) without having said %q", p.name, p.Err(), message)
			}
			return true
		default:
			return false
		}
	})
	return found
}

// refuses waits for the program to end by itself, with exit status 1 and one line on standard error, and
// returns that line.
func (p *program) refuses() string {
	p.t.Helper()
	select {
	case <-p.Done():
	case <-wait.Context(p.t).Done():
		p.t.Fatalf("%s has not ended", p.name)
	}
	if err := p.Err(); err == nil || err.Error() != "exit status 1" {
		p.t.Errorf("%s ended with %v, want exit status 1", p.name, err)
	}
	said := p.out.plain()
	if len(said) != 1 {
		p.t.Fatalf("%s said %q on standard error, want one line", p.name, said)
	}
	return said[0]
}

// stop ends the program in order.
func (p *program) stop() {
	p.t.Helper()
	testkit.Must(p.t, p.Stop(context.Background(), 30*time.Second))
	if err := p.Err(); err != nil {
		p.t.Errorf("%s ended with %v, want success", p.name, err)
	}
}

// get asks one of the program's addresses.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	response, err := http.Get(url)
	testkit.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	return response.StatusCode, string(text)
}

func (p *program) readyz() (status int, body string) { return get(p.t, "http://"+p.ops+"/readyz") }

func (p *program) metrics() string {
	p.t.Helper()
	_, body := get(p.t, "http://"+p.ops+"/metrics")
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

// ready waits until the journal can be written again.
func (p *program) ready() {
	p.t.Helper()
	wait.Until(p.t, "/readyz of "+p.name+" answers 200", func() bool {
		status, _ := p.readyz()
		return status == http.StatusOK
	})
	if !strings.Contains(p.metrics(), "\nretry_worker_journal_up 1\n") {
		p.t.Error("retry_worker_journal_up is not 1 although the journal can be written")
	}
}

// once runs a command on a journal to its end.
func once(t *testing.T, url string, args ...string) (output string, code int) {
	t.Helper()
	return harness.RunCommand(t, harness.Binary(t), []string{"RETRY_WORKER_DATABASE_URL=" + url}, args...)
}

// transcript keeps what a program prints.
type transcript struct {
	mu   sync.Mutex
	text []byte
}

func (o *transcript) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	return len(b), nil
}

func (o *transcript) all() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

func (o *transcript) tail(n int) string {
	text := o.all()
	return text[max(0, len(text)-n):]
}

// line is the last log line whose message holds some words; nil where there is none.
func (o *transcript) line(message string) map[string]any {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := bytes.LastIndex(o.text, []byte(message))
	if at < 0 {
		return nil
	}
	begin := bytes.LastIndexByte(o.text[:at], '\n') + 1
	end := bytes.IndexByte(o.text[at:], '\n')
	var fields map[string]any
	if end < 0 || json.Unmarshal(o.text[begin:at+end], &fields) != nil {
		return nil
	}
	return fields
}

// plain are the lines that are no JSON: what the program said on standard error.
func (o *transcript) plain() (lines []string) {
	for line := range strings.Lines(o.all()) {
		if !strings.HasPrefix(line, "{") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
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
