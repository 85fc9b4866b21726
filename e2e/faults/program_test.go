package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

// soonGone bounds a stop that nothing holds up: polls under way take two seconds, a SHUTDOWN_TIMEOUT 25.
const soonGone = 15 * time.Second

// program is the built worker as a process of its own.
type program struct {
	*harness.Process
	t   *testing.T
	out *transcript
	ops string // address of metrics and probes
}

// program starts the built worker on the scene's gateway, with nothing in its environment but what it is
// given, and waits until it serves.
func (s *scene) program(name string, env ...string) *program {
	s.t.Helper()
	return s.programBy(name, harness.Command{Path: harness.Binary(s.t)}, env...)
}

// programBy is program where another command starts the worker.
func (s *scene) programBy(name string, c harness.Command, env ...string) *program {
	s.t.Helper()
	p := &program{t: s.t, out: newTranscript()}
	c.Screen = p.out
	c.Env = append([]string{
		"ZEEBE_ADDRESS=" + s.Addr(), "ZEEBE_INSECURE_CONNECTION=true",
		"RETRY_WORKER_OPS_ADDR=127.0.0.1:0", "RETRY_WORKER_HTTP_ADDR=127.0.0.1:0", "RETRY_WORKER_WORKER_NAME=" + name,
		"RETRY_WORKER_DATABASE_URL=sqlite:" + filepath.Join(s.t.TempDir(), "journal.db"),
	}, env...)
	var err error
	if p.Process, err = harness.Start(c); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		p.Kill()
		if s.t.Failed() {
			s.t.Logf("what %s printed:\n%s", name, strings.Join(p.Lines(), "\n"))
		}
	})
	line := p.logged("serving")
	p.ops, _ = line["ops"].(string)
	return p
}

// logged waits for a log line with that message.
func (p *program) logged(message string) map[string]any {
	p.t.Helper()
	line, err := p.out.waitFor(within(p.t), message)
	if err != nil {
		p.t.Fatal(err)
	}
	return line
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// stopped stops the process dead and waits until the kernel says so.
func (p *program) stopped() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	p.eventually("the process stands still", func() bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
		if err != nil {
			p.t.Fatal(err)
		}
		after := text[bytes.LastIndexByte(text, ')')+1:] // behind the program's name
		return len(after) > 1 && after[1] == 'T'
	})
}

func (p *program) eventually(what string, holds func() bool) {
	p.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := within(p.t); !holds(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			p.t.Fatalf("not seen: %s", what)
		}
	}
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
	p.logged("stopped hard")
	return took
}

// endsAnyhow is for a stop that has to give up calls: whether that leaves jobs behind is not known.
func (p *program) endsAnyhow(atMost time.Duration) time.Duration {
	p.t.Helper()
	took := p.gone(atMost)
	if err := p.Err(); err != nil {
		p.logged("stopped hard")
	}
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

// transcript keeps what a program prints and lets tests wait for it.
type transcript struct {
	mu      sync.Mutex
	text    []byte
	changed chan struct{}
}

func newTranscript() *transcript { return &transcript{changed: make(chan struct{})} }

func (o *transcript) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	close(o.changed)
	o.changed = make(chan struct{})
	return len(b), nil
}

func (o *transcript) all() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// lines are the log lines with that message; each line must be a JSON object.
func (o *transcript) lines(message string) (found []map[string]any, changed chan struct{}, err error) {
	o.mu.Lock()
	text, changed := slices.Clone(o.text), o.changed
	o.mu.Unlock()
	whole := text[:bytes.LastIndexByte(text, '\n')+1]
	for raw := range bytes.Lines(whole) {
		var line map[string]any
		if err := json.Unmarshal(raw, &line); err != nil {
			return nil, nil, fmt.Errorf("the worker printed %q, want JSON log lines only", raw)
		}
		if strings.Contains(fmt.Sprint(line["message"]), message) {
			found = append(found, line)
		}
	}
	return found, changed, nil
}

func (o *transcript) waitFor(ctx context.Context, message string) (map[string]any, error) {
	for {
		found, changed, err := o.lines(message)
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			return found[0], nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("not in the log: %q; %w", message, ctx.Err())
		}
	}
}
