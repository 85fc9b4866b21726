package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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
	*exec.Cmd
	stderr bytes.Buffer
	opsURL string
	api    string        // the address of its API
	done   chan struct{} // closed when it has ended and all its output is read

	mu     sync.Mutex
	stdout bytes.Buffer
	news   chan struct{} // a token for each line
}

// serve starts the program with vars and args, and waits until it says that it serves. It is killed
// with the test if it still runs.
func serve(t *testing.T, vars map[string]string, args ...string) *process {
	t.Helper()
	p := prepare(t, vars, args...)
	p.serves(t)
	return p
}

func (p *process) serves(t *testing.T) {
	t.Helper()
	p.start(t)
	p.waitFor(t, `"message":"serving"`)
	var line struct{ Ops, API string }
	for text := range strings.Lines(p.output()) {
		if strings.Contains(text, `"message":"serving"`) {
			testkit.Must(t, json.Unmarshal([]byte(text), &line))
		}
	}
	p.opsURL, p.api = "http://"+line.Ops, line.API
}

func prepare(t *testing.T, vars map[string]string, args ...string) *process {
	t.Helper()
	testkit.Environment(t, map[string]string{
		"RETRY_WORKER_OPS_ADDR": "127.0.0.1:0", "RETRY_WORKER_HTTP_ADDR": "127.0.0.1:0", "ZEEBE_INSECURE_CONNECTION": "true",
		"RETRY_WORKER_DATABASE_URL": "sqlite:" + filepath.Join(t.TempDir(), "journal.db"),
	})
	for name, value := range vars {
		t.Setenv(name, value)
	}
	p := &process{Cmd: exec.Command(harness.Binary(t), args...), done: make(chan struct{}), news: make(chan struct{}, 1)}
	p.Stderr = &p.stderr
	return p
}

func (p *process) start(t *testing.T) {
	t.Helper()
	out, err := p.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, p.Start())
	go func() {
		defer close(p.done)
		p.follow(out)
		_ = p.Wait() // its exit code is in ProcessState
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill() // an error means that it has ended
		<-p.done
	})
}

func (p *process) follow(out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		p.mu.Lock()
		p.stdout.Write(line)
		p.mu.Unlock()
		select {
		case p.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stdout.String()
}

// waitFor waits until text stands in the output.
func (p *process) waitFor(t *testing.T, text string) {
	t.Helper()
	deadline := time.After(patience)
	for !strings.Contains(p.output(), text) {
		select {
		case <-p.news:
		case <-p.done:
			if !strings.Contains(p.output(), text) {
				t.Fatalf("ended with %v and without %q:\n%s%s", p.ProcessState, text, p.output(), p.stderr.String())
			}
		case <-deadline:
			t.Fatalf("after %v still no %q:\n%s", patience, text, p.output())
		}
	}
}

// ends waits until the process has ended by itself, and returns its exit code.
func (p *process) ends(t *testing.T, atMost time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(atMost):
		t.Fatalf("has not ended after %v:\n%s", atMost, p.output())
	}
	return p.ProcessState.ExitCode()
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	testkit.Must(t, p.Process.Signal(s))
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
	p := prepare(t, map[string]string{"RETRY_WORKER_OPS_ADDR": taken.Addr().String()}, "serve")
	p.start(t)
	p.ends(t, patience)
	result{p.output(), p.stderr.String(), p.ProcessState.ExitCode()}.fails(t, exitFailed,
		"listen for metrics and probes: listen tcp "+taken.Addr().String()+": bind: address already in use; choose another RETRY_WORKER_OPS_ADDR")
}

func TestServeStopsAtASignal(t *testing.T) {
	for _, sent := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sent.String(), func(t *testing.T) {
			g := gateway.New(t, gateway.Options{})
			slow := g.Inject(gateway.Fault{Method: gateway.CompleteJob, Delay: 300 * time.Millisecond})
			key := g.AddJob(analyze(`{"claimId":"CLM-1-1","submissionError":"TIMEOUT"}`))
			p := serve(t, map[string]string{"ZEEBE_ADDRESS": g.Addr()}, "serve")
			testkit.Must(t, g.WaitFor(wait.Context(t), func(gateway.Counts) bool { return slow.Fired() > 0 }))
			p.signal(t, sent)
			if code := p.ends(t, 10*time.Second); code != exitDone { // a poll takes 2 s, a stop may take 25 s
				t.Errorf("exit %d, want 0: %s", code, p.stderr.String())
			}
			if job, _ := g.Job(key); job.State != gateway.Completed {
				t.Errorf("the job that had begun is %v, want it completed", job.State)
			}
			if p.stderr.Len() > 0 {
				t.Errorf("standard error: %s", p.stderr.String())
			}
			for line := range strings.Lines(p.output()) {
				if !json.Valid([]byte(line)) {
					t.Errorf("the log line %q is no JSON", line)
				}
			}
		})
	}
}

func TestServeOnTheConsole(t *testing.T) {
	p := prepare(t, map[string]string{"ZEEBE_ADDRESS": gateway.Nowhere(t), "RETRY_WORKER_LOG_FORMAT": "console"}, "serve")
	p.start(t)
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
	p.signal(t, syscall.SIGTERM)
	p.ends(t, 10*time.Second)
	const atStart = 2 // the ledger's head, and the teams without an address
	if lines := strings.Count(p.output(), `"event":`); lines != jobs+atStart {
		t.Errorf("%d log lines with an event, want one for each of %d jobs", lines, jobs)
	}
	seen += p.output() + p.stderr.String()
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
