package main

import (
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

// process is the built program serving in a process of its own.
type process struct {
	*harness.Process
	stdout, stderr harness.Log
	opsURL         string
	api            string // the address of its API
}

// serve starts the program with vars and args, and waits until it says that it serves.
func serve(t *testing.T, vars map[string]string, args ...string) *process {
	t.Helper()
	p := start(t, vars, args...)
	p.waitFor(t, `"message":"serving"`)
	p.stdout.Await(t, "its addresses", func(lines []harness.Line) bool {
		for _, l := range lines {
			if l.Text("message") == "serving" {
				p.opsURL, p.api = "http://"+l.Text("ops"), l.Text("api")
			}
		}
		return p.api != ""
	})
	return p
}

// start runs the program with vars, of which an empty one is not set, and args. It is killed with the test if it still runs.
func start(t *testing.T, vars map[string]string, args ...string) *process {
	t.Helper()
	testkit.Environment(t, map[string]string{
		"RETRY_WORKER_OPS_ADDR": "127.0.0.1:0", "RETRY_WORKER_HTTP_ADDR": "127.0.0.1:0", "ZEEBE_INSECURE_CONNECTION": "true",
		"RETRY_WORKER_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "journal.db"),
	})
	for name, value := range vars {
		if t.Setenv(name, value); value == "" {
			testkit.Must(t, os.Unsetenv(name))
		}
	}
	p := &process{}
	var err error
	p.Process, err = harness.Start(harness.Command{Path: harness.Binary(t), Args: args, Screen: &p.stdout, Output: &p.stderr})
	testkit.Must(t, err)
	t.Cleanup(p.Kill)
	return p
}

// waitFor waits until text stands in the output.
func (p *process) waitFor(t *testing.T, text string) {
	t.Helper()
	wait.Until(t, text+" in the output", func() bool {
		select {
		case <-p.Done():
			t.Fatalf("ended with %v:\n%s%s", p.Err(), p.stdout.Text(), p.stderr.Text())
		default:
		}
		return strings.Contains(p.stdout.Text(), text)
	}, p.stdout.Text)
}

// ends waits until the process has ended by itself, and returns its exit code.
func (p *process) ends(t *testing.T, atMost time.Duration) int {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(atMost):
		t.Fatalf("has not ended after %v:\n%s", atMost, p.stdout.Text())
	}
	if exit, is := errors.AsType[*exec.ExitError](p.Err()); is {
		return exit.ExitCode()
	}
	return exitDone
}

func (p *process) get(t *testing.T, path string) (status int, body string) {
	t.Helper()
	return testkit.Get(t, p.opsURL+path)
}

func analyze(variables string) gateway.Job {
	return gateway.Job{Type: "analyze-retry", Variables: variables}
}

func TestServeRefusesATakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	defer taken.Close()
	p := start(t, map[string]string{"RETRY_WORKER_OPS_ADDR": taken.Addr().String()}, "serve")
	code := p.ends(t, patience)
	result{p.stdout.Text(), p.stderr.Text(), code}.fails(t, exitFailed,
		"listen for metrics and probes: listen tcp "+taken.Addr().String()+": bind: address already in use; choose another RETRY_WORKER_OPS_ADDR")
}

func TestServeStopsAtASignal(t *testing.T) {
	for _, sent := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sent.String(), func(t *testing.T) {
			g := gateway.New(t, gateway.Options{})
			slow := g.Inject(gateway.Fault{Method: gateway.CompleteJob, Delay: 300 * time.Millisecond})
			key := g.AddJob(analyze(`{"claimId":"CLM-1-1","submissionError":"TIMEOUT"}`))
			p := serve(t, map[string]string{"ZEEBE_ADDRESS": g.Addr()}, "serve")
			testkit.Must(t, g.WaitFor(wait.Context(t), func(gateway.Counts) bool { return slow.Fired() > 0 }))
			testkit.Must(t, p.Signal(sent))
			if code := p.ends(t, 10*time.Second); code != exitDone { // a poll takes 2 s, a stop may take 25 s
				t.Errorf("exit %d, want 0: %s", code, p.stderr.Text())
			}
			if job, _ := g.Job(key); job.State != gateway.Completed {
				t.Errorf("the job that had begun is %v, want it completed", job.State)
			}
			if p.stderr.Text() != "" {
				t.Errorf("standard error: %s", p.stderr.Text())
			}
			for line := range strings.Lines(p.stdout.Text()) {
				if !json.Valid([]byte(line)) {
					t.Errorf("the log line %q is no JSON", line)
				}
			}
		})
	}
}

// TestServeEndsHard: answers that nobody takes hold a stop no longer than its time-out, nor beyond a second signal.
func TestServeEndsHard(t *testing.T) {
	for name, timeout := range map[string]string{"a second signal": "5m", "the shutdown's time-out": "3s"} {
		t.Run(name, func(t *testing.T) {
			g := gateway.New(t, gateway.Options{})
			hang := g.Inject(gateway.Fault{Method: gateway.CompleteJob, Hang: true})
			key := g.AddJob(analyze(`{"claimId":"CLM-1-1","submissionError":"TIMEOUT"}`))
			p := serve(t, map[string]string{"ZEEBE_ADDRESS": g.Addr(), "RETRY_WORKER_SHUTDOWN_TIMEOUT": timeout, "RETRY_WORKER_JOB_TIMEOUT": "10m"}, "serve")
			testkit.Must(t, g.WaitFor(wait.Context(t), func(gateway.Counts) bool { return hang.Fired() > 0 }))
			testkit.Must(t, p.Signal(syscall.SIGTERM))
			if timeout == "5m" {
				p.waitFor(t, `"stopping: `)
				testkit.Must(t, p.Signal(syscall.SIGTERM))
			}
			if code := p.ends(t, patience); code != exitFailed || !strings.Contains(p.stdout.Text(), "stopped hard") {
				t.Errorf("exit %d, want 1, and a line that says so: %s", code, p.stderr.Text())
			}
			if job, _ := g.Job(key); job.State != gateway.Activated {
				t.Errorf("the job that had begun is %v, want it left to its time-out", job.State)
			}
		})
	}
}

func TestServeOnTheConsole(t *testing.T) {
	p := start(t, map[string]string{"ZEEBE_ADDRESS": testkit.Nowhere(t), "RETRY_WORKER_LOG_FORMAT": "console"}, "serve")
	p.waitFor(t, "\tinfo\tserving\t")
}
