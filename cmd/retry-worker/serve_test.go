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

func TestServeOnTheConsole(t *testing.T) {
	p := start(t, map[string]string{"ZEEBE_ADDRESS": gateway.Nowhere(t), "RETRY_WORKER_LOG_FORMAT": "console"}, "serve")
	p.waitFor(t, "\tinfo\tserving\t")
}

// canaries are synthetic; each must never be seen.
var canaries = map[string]string{
	"CPF":           "529.982.247-25",
	"CPF in digits": "52998224725",
	"e-mail":        "maria.souza@example.com",
	"card":          "4111 1111 1111 1111",
}

// Nothing personal in output, metrics or incidents, wherever in a job it stands.
func TestServePrintsNothingPersonal(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	jobs := 0
	add := func(jobType, variables, headers string) {
		jobs++
		g.AddJob(gateway.Job{Type: jobType, Variables: variables, CustomHeaders: headers})
	}
	for kind, canary := range canaries {
		text := "of " + kind + " " + canary
		for _, jobType := range []string{"analyze-retry", "retry-submission-backoff"} {
			for _, v := range []map[string]any{
				{"claimId": "CLM-1-1", "submissionError": "TIMEOUT " + text},
				{"claimId": "CLM-1-1", "submissionError": "something " + text},
				{"claimId": "CLM-1-1", "submissionError": "DUPLICATE_CLAIM " + text},
				{"claimId": "CLM-1-1", "submissionError": "503 " + text, "retryCount": 5},
				{"claimId": text, "submissionError": "TIMEOUT"},
				{"claimId": "CLM-1-1", "submissionError": "TIMEOUT", "retryCount": text},
				{"claimId": "CLM-1-1", "submissionError": "TIMEOUT", "lastSubmissionTime": text},
				{"claimId": "CLM-1-1", "submissionError": map[string]any{"patient": text}},
			} {
				add(jobType, variables(t, v), "")
			}
			add(jobType, variables(t, map[string]any{"claimId": "CLM-1-1", "submissionError": "TIMEOUT"}), variables(t, map[string]any{"retryPolicy": text}))
		}
		add("record-retry-outcome", variables(t, map[string]any{"claimId": text}), "")
		add("record-retry-outcome", variables(t, map[string]any{"claimId": "CLM-1-1", "retryOutcome": text}), "")
	}
	p := serve(t, map[string]string{"ZEEBE_ADDRESS": g.Addr(), "RETRY_WORKER_LOG_LEVEL": "debug"}, "serve")
	testkit.Must(t, g.WaitFor(wait.Context(t), func(c gateway.Counts) bool { return c.Settled == jobs }))
	_, seen := p.get(t, "/metrics")
	testkit.Must(t, p.Signal(syscall.SIGTERM))
	p.ends(t, 10*time.Second)
	const atStart = 2 // the ledger's head, and the teams without an address
	// So many time-outs open a breaker, which is told apart.
	lines := strings.Count(p.stdout.Text(), `"event":`) - strings.Count(p.stdout.Text(), `"event":"destination_`)
	if lines != jobs+atStart {
		t.Errorf("%d log lines with an event, want one for each of %d jobs", lines, jobs)
	}
	seen += p.stdout.Text() + p.stderr.Text()
	for _, job := range g.Journal() {
		for _, a := range job.Answers {
			seen += a.Message + "\n"
		}
	}
	for kind, canary := range canaries {
		if i := strings.Index(seen, canary); i >= 0 {
			t.Errorf("the %s stands in: …%s…", kind, seen[max(0, i-200):min(len(seen), i+50)])
		}
	}
}

func variables(t *testing.T, v map[string]any) string {
	t.Helper()
	text, err := json.Marshal(v)
	testkit.Must(t, err)
	return string(text)
}
