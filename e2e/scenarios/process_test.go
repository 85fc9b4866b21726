package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/zeebe"
)

// process is a running `retry-worker serve`.
type process struct {
	*harness.Process
	name string
	log  *logFile
	ops  string // address of metrics and probes
	api  string
}

// loops of one worker, each of which says when the engine answers it.
const loops = 4

// serve starts a worker against a broker and returns when each of its loops is served. settings are
// NAME=value over the defaults. It is stopped at the latest when the test ends.
func serve(t *testing.T, b *zeebe.Broker, name string, settings ...string) *process {
	t.Helper()
	p, err := startWorker(t, t.TempDir(), b, name, settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(context.Background(), stopTime) }) // one that a test has ended is not stopped again
	p.awaitReady(t)
	return p
}

func startWorker(t *testing.T, dir string, b *zeebe.Broker, name string, settings ...string) (*process, error) {
	file, err := newLogFile(filepath.Join(dir, name+".log"))
	if err != nil {
		return nil, err
	}
	env := append(environment(b), "RETRY_WORKER_OPS_ADDR=127.0.0.1:0", "RETRY_WORKER_HTTP_ADDR=127.0.0.1:0",
		"RETRY_WORKER_WORKER_NAME="+name, "RETRY_WORKER_DATABASE_URL=sqlite:"+filepath.Join(dir, name+".db"))
	p, err := harness.Start(harness.Command{Path: harness.Binary(t), Args: []string{"serve"}, Env: append(env, settings...), Output: file})
	return &process{Process: p, name: name, log: file}, err
}

// environment of the program under test: nothing of this one's.
func environment(b *zeebe.Broker) []string {
	return []string{"ZEEBE_ADDRESS=" + b.GatewayAddress(), "ZEEBE_INSECURE_CONNECTION=true"}
}

func (p *process) awaitReady(t *testing.T) {
	t.Helper()
	served := 0
	p.log.await(t, enough, "the worker "+p.name+" to be served by the engine", func() bool {
		served = 0
		for _, l := range p.log.lines {
			switch l.text("message") {
			case "serving":
				p.ops, p.api = l.text("ops"), l.text("api")
			case "engine answers polls":
				served++
			}
		}
		return served >= loops
	})
}

// terminate asks the worker to stop and returns how long it took.
func (p *process) terminate(t *testing.T) time.Duration {
	t.Helper()
	begun := time.Now()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Done():
	case <-time.After(enough):
		t.Fatalf("the worker %s did not end after SIGTERM; it said last: %s", p.name, p.LastLine())
	}
	if err := p.Err(); err != nil {
		t.Errorf("the worker %s ended with %v after SIGTERM, expected exit status 0", p.name, err)
	}
	return time.Since(begun)
}

// metrics is the worker's own text.
func (p *process) metrics(t *testing.T) string {
	t.Helper()
	response, err := http.Get("http://" + p.ops + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the worker's metrics: %s, %v", response.Status, err)
	}
	return string(text)
}

var jobsTotal = regexp.MustCompile(`(?m)^retry_worker_jobs_total\{action="(\w+)",job_type="[\w-]+"\} (\d+)$`)

// actions are what became of the worker's jobs, all types together.
func (p *process) actions(t *testing.T) map[string]int {
	t.Helper()
	all := make(map[string]int)
	for _, m := range jobsTotal.FindAllStringSubmatch(p.metrics(t), -1) {
		n, _ := strconv.Atoi(m[2]) // digits only
		if n > 0 {
			all[m[1]] += n
		}
	}
	return all
}

// logLine is a line of the worker's log.
type logLine map[string]any

func (l logLine) text(name string) string {
	s, _ := l[name].(string)
	return s
}

func (l logLine) number(name string) int64 {
	n, _ := l[name].(json.Number)
	i, _ := n.Int64()
	return i
}

// logFile takes a worker's output: a file, for the demo to follow, and its lines.
type logFile struct {
	board
	path    string
	file    *os.File
	all     bytes.Buffer
	pending []byte
	lines   []logLine
	strange []string // lines that are no JSON
}

func newLogFile(path string) (*logFile, error) {
	f, err := os.Create(path)
	return &logFile{path: path, file: f}, err
}

func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Write(b)
	l.pending = append(l.pending, b...)
	for {
		line, rest, found := bytes.Cut(l.pending, []byte("\n"))
		if !found {
			break
		}
		l.pending = rest
		l.read(line)
	}
	l.announce()
	return l.file.Write(b)
}

func (l *logFile) read(line []byte) {
	fields := make(logLine)
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if d.Decode(&fields) != nil {
		l.strange = append(l.strange, string(line))
		return
	}
	l.lines = append(l.lines, fields)
}

func (l *logFile) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// about waits until there are n events of an instance, and returns all that there are. The worker writes
// its log with a delay.
func (l *logFile) about(t *testing.T, instance int64, n int) []logLine {
	t.Helper()
	var found []logLine
	l.await(t, enough, "the worker's log", func() bool {
		found = nil
		for _, line := range l.lines {
			if line.number("processInstanceKey") == instance && line.text("event") != "" {
				found = append(found, line)
			}
		}
		return len(found) >= n
	})
	return found
}

// count is how many lines have a message.
func (l *logFile) count(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.lines {
		if line.text("message") == message {
			n++
		}
	}
	return n
}

// once runs a command of the program under test to its end.
func once(t *testing.T, b *zeebe.Broker, limit time.Duration, args ...string) (output string, code int) {
	t.Helper()
	var out strings.Builder
	p, err := harness.Start(harness.Command{Path: harness.Binary(t), Args: args, Env: environment(b), Output: &out})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	select {
	case <-p.Done():
	case <-time.After(limit):
		p.Kill()
		t.Fatalf("retry-worker %s did not end in %v; it printed\n%s", strings.Join(args, " "), limit, out.String())
	}
	if err := p.Err(); err != nil {
		if _, scanErr := fmt.Sscanf(err.Error(), "exit status %d", &code); scanErr != nil {
			t.Fatalf("retry-worker %s: %v", strings.Join(args, " "), err)
		}
	}
	return out.String(), code
}
