package main

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// asProgram makes the test binary the program.
const asProgram = "DEV_TEST_IS_PROGRAM"

func TestMain(m *testing.M) {
	harness.Main(m, harness.Child(asProgram, func(string) error { main(); return nil }))
}

// process is a program in a process group of its own, as a terminal starts one; temporary is its TMPDIR, and all that it
// starts has mark in its environment.
type process struct {
	t         *testing.T
	cmd       *exec.Cmd
	out       harness.Log
	temporary string
	mark      string
	ended     chan struct{}
}

func start(t *testing.T, temporary, program string, args ...string) *process {
	t.Helper()
	harness.SkipIfShort(t)
	p := &process{t: t, cmd: exec.Command(program, args...), temporary: temporary, mark: "DEV_TEST_RUN=" + rand.Text(),
		ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), "TMPDIR="+temporary, p.mark)
	if program == os.Args[0] {
		p.cmd.Env = append(p.cmd.Env, asProgram+"=1")
	}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.WaitDelay = &p.out, &p.out, time.Second
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	testkit.Must(t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() { // ended long ago, unless the test failed
		p.signal(syscall.SIGINT)
		p.exit()
	})
	return p
}

// signal reaches the whole group, as a terminal's does.
func (p *process) signal(s syscall.Signal) { _ = syscall.Kill(-p.cmd.Process.Pid, s) }

func (p *process) exit() int {
	select {
	case <-p.ended:
	case <-wait.Context(p.t).Done():
		p.t.Errorf("it did not end within %v; it printed:\n%s", wait.Limit, p.out.Text())
		p.signal(syscall.SIGKILL)
		<-p.ended
	}
	return p.cmd.ProcessState.ExitCode()
}

// sees waits for what is printed to hold some words, and returns what it matched. Compiling takes longer than what other tests
// wait for.
func (p *process) sees(words string) (m []string) {
	p.t.Helper()
	pattern, tooLate := regexp.MustCompile(words), time.After(harness.FetchTime)
	for m == nil {
		ended := false
		select {
		case <-p.ended:
			ended = true
		case <-tooLate:
			ended = true
		case <-time.After(20 * time.Millisecond):
		}
		if m = pattern.FindStringSubmatch(p.out.Text()); m == nil && ended {
			p.t.Fatalf("%q was not seen; it printed:\n%s", words, p.out.Text())
		}
	}
	return m
}

// processes returns how many of this run there are; Linux only.
func (p *process) processes() (n int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		if environ, err := os.ReadFile(path); err == nil && bytes.Contains(environ, []byte(p.mark)) {
			n++
		}
	}
	return n
}

// nothingLeft waits until neither a process of the run is there nor anything in the temporary folder.
func (p *process) nothingLeft() {
	p.t.Helper()
	wait.Until(p.t, "an end of all it started", func() bool {
		files, _ := filepath.Glob(filepath.Join(p.temporary, "*"))
		return p.processes() == 0 && len(files) == 0
	})
}

// TestItEndsWithAllThatItStarted at each stage, whatever ends it.
func TestItEndsWithAllThatItStarted(t *testing.T) {
	for stage, args := range map[string][]string{
		"console is at":   nil,
		"moves the clock": nil,
		"engine ready":    {"--engine-only", "--grpc", "127.0.0.1:0"},
	} {
		for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGKILL} {
			t.Run(stage+", "+s.String(), func(t *testing.T) {
				t.Parallel()
				p := start(t, t.TempDir(), os.Args[0], args...)
				p.sees(stage)
				pid := p.cmd.Process.Pid
				testkit.Must(t, syscall.Kill(pid, s))
				want := map[syscall.Signal]int{syscall.SIGKILL: -1}[s] // the others in order
				if code := p.exit(); code != want {
					t.Errorf("exit code %d, expected %d; it printed:\n%s", code, want, p.out.Text())
				}
				p.nothingLeft()
			})
		}
	}
}

func TestWhatFailsIsSaidOnOneLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	testkit.Must(t, os.WriteFile(file, nil, 0o600))
	noClock := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(noClock, "clock"), []byte("soon"), 0o600))
	taken := start(t, t.TempDir(), os.Args[0], "--engine-only", "--rest", "127.0.0.1:0", "--data", t.TempDir())
	address := taken.sees("rest=(.*)")[1]
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"now", exitUsage, `unexpected argument "now"; `},
		{"--port 1", exitUsage, "unknown flag: --port; "},
		{"--engine-only --samples-only", exitUsage, "expected one at most; "},
		{"--engine-only", exitUsage, "expected --grpc, --rest or --control beside it; "},
		{"--grpc 127.0.0.1:0", exitUsage, "--grpc is given, expected beside --engine-only only; "},
		{"--clock-url http://127.0.0.1:9600", exitUsage, "--clock-url is given, expected beside --samples-only only; "},
		{"--samples-only --data " + file, exitUsage, "--samples-only keeps nothing; "},
		{"--samples-only --api-url ftp://console", exitUsage, "--api-url is no URL of a console"},
		{"--samples-only --token-file /nowhere", exitFailed, "--token-file /nowhere cannot be read: no such file or directory; "},
		{"--engine-only --grpc 127.0.0.1:0 --shape 8.7", exitUsage, `--shape is "8.7", expected 8.6 or 8.8; `},
		{"--engine-only --grpc localhost", exitUsage, `--grpc is "localhost", expected host:port, such as 127.0.0.1:26500; `},
		{"--engine-only --rest " + address, exitFailed, "open --rest: listen tcp " + address + ": bind: address already in use; "},
		{"--engine-only --grpc 127.0.0.1:0 --data " + taken.cmd.Args[len(taken.cmd.Args)-1], exitFailed, "is in use by another engine; "},
		{"--data " + file, exitFailed, file + ": not a directory"},
		{"--data " + noClock, exitFailed, `time: invalid duration "soon", expected how far the clock is ahead`},
	} {
		var out, errOut strings.Builder
		if code := run(strings.Fields(c.args), &out, &errOut); code != c.code {
			t.Errorf("%s: exit code %d, expected %d", c.args, code, c.code)
		}
		if text := errOut.String(); !strings.Contains(text, c.want) || strings.Count(text, "\n") != 1 || out.Len() > 0 {
			t.Errorf("%s: it said %q and printed %q, expected one line with %q", c.args, text, out.String(), c.want)
		}
	}
}

// TestHelp names each flag.
func TestHelp(t *testing.T) {
	var out, errOut strings.Builder
	if code := run([]string{"--help"}, &out, &errOut); code != exitDone || errOut.Len() > 0 {
		t.Errorf("exit code %d, and it said %q", code, errOut.String())
	}
	for line := range strings.Lines(out.String()) {
		if len([]rune(line)) > 121 {
			t.Errorf("too wide: %s", line)
		}
	}
	for _, flag := range []string{"data", "engine-only", "grpc", "rest", "control", "fsync", "shape", "max-in-flight", "tenants",
		"samples-only", "api-url", "token-file", "clock-url"} {
		if !strings.Contains(out.String(), "\n      --"+flag+" ") {
			t.Errorf("--%s is missing in:\n%s", flag, out.String())
		}
	}
}

// TestRealRun is `make run` as a newcomer meets it: what the first and the last line say, the pages, what a person does there,
// and that a run which Ctrl-C ends leaves nothing.
func TestRealRun(t *testing.T) {
	v := viewer{process: start(t, t.TempDir(), "make", "--no-print-directory", "-C", "../..", "run")}
	v.console = v.sees(`(?m)^The console is at (http://127\.0\.0\.1:\d+)/dead-letters; `)[1]
	v.sees(`Console +` + regexp.QuoteMeta(v.console) + `/dead-letters: [^\n]*\n$`)
	v.waitsAreMinutes()
	v.reviews()
	v.signal(syscall.SIGINT)
	v.exit()
	v.nothingLeft()
	for _, want := range []string{
		box, "What became of them:", "Nothing is kept", "Waiting for your review: 24 of SUB_06, 1 of WHATSAPP_MESSAGE.",
		"\nSUB_06: 52 claims", "\nWHATSAPP_MESSAGE: 7 messages", "\nFAILED_JOB: 5 jobs", "\nJOB_QUEUE: 8 jobs",
		"decided: Transient error, retry 1 of 5, in ", "decided: Permanent error, not retried; goes to cadastro",
		"rejected: " + string(decision.InvalidRetryCount), "review by cadastro (dead letter ", "accepted by the portal", " min ahead. ---",
	} {
		if !strings.Contains(v.out.Text(), want) {
			t.Errorf("%q is missing in:\n%s", want, v.out.Text())
		}
	}
	if strings.Contains(v.out.Text(), "has not ended") {
		t.Errorf("samples have not ended:\n%s", v.out.Text())
	}
}

// TestDataAreThereAfterAKill: the next start goes on, by the same clock.
func TestDataAreThereAfterAKill(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "data")
	begin := func() viewer {
		v := viewer{process: start(t, t.TempDir(), os.Args[0], "--data", folder)}
		v.console = v.sees(`The console is at (http://127\.0\.0\.1:\d+)/dead-letters; `)[1]
		return v
	}
	v := begin()
	v.sees(`(?s) min ahead.* min ahead`) // some are on their way yet
	v.signal(syscall.SIGKILL)
	v.exit()
	v = begin()
	v.sees("(?s)were started before go on.*Waiting for your review: 24 of SUB_06, 1 of WHATSAPP_MESSAGE")
	v.waitsAreMinutes()
	v.reviews()
	v.signal(syscall.SIGTERM)
	if code := v.exit(); code != exitDone || !strings.Contains(v.out.Text(), folder+" keeps engine and journal") {
		t.Errorf("exit code %d, expected %d; it printed:\n%s", code, exitDone, v.out.Text())
	}
	v.nothingLeft()
}

// viewer reads what the program prints, and does what it asks for.
type viewer struct {
	*process
	console string
}

// asks the API behind the console; body nil: by GET.
func (v *viewer) asks(path string, body, answer any) error {
	return harness.Ask(v.t.Context(), v.console, "", path, body, answer)
}

func (v *viewer) deadLetters() []api.DeadLetter {
	v.t.Helper()
	var list api.Page[api.DeadLetter]
	if testkit.Must(v.t, v.asks("/dead-letters", nil, &list)); len(list.Items) != 25 {
		v.t.Fatalf("%d dead letters are open, expected 25: %+v", len(list.Items), list.Items)
	}
	return list.Items
}

// waitsAreMinutes: a claim that went through the whole ladder took its 5, 10, 20, 40 and 80 minutes by the worker's clock.
func (v *viewer) waitsAreMinutes() {
	v.t.Helper()
	for _, d := range v.deadLetters() {
		first, _ := decision.ParseInstant(*d.FirstFailure)
		if dead, _ := decision.ParseInstant(d.CreatedAt); d.RetryCount == 5 && dead.Sub(first) < 125*time.Minute {
			v.t.Errorf("%s went through the ladder in %v, want at least 125 min", d.Subject.ID, dead.Sub(first))
		}
	}
}

// reviews reads what is left, of which 20 have one cause, and sends one of another cause again. What follows shows.
func (v *viewer) reviews() {
	v.t.Helper()
	if status, page := testkit.Get(v.t, v.console+"/dead-letters"); status != http.StatusOK {
		v.t.Fatalf("the console's page: %d, %s", status, page)
	}
	var groups api.Page[api.DeadLetterGroup]
	if testkit.Must(v.t, v.asks("/dead-letters/groups", nil, &groups)); len(groups.Items) == 0 || groups.Items[0].Count != 20 {
		v.t.Errorf("the causes are %+v, expected one with 20 dead letters first", groups.Items)
	}
	all := v.deadLetters()
	d := all[slices.IndexFunc(all, func(d api.DeadLetter) bool { return !d.ForceNeeded && !strings.Contains(d.Error, "credencial") })]
	if err := v.asks("/dead-letters/"+d.ID+"/retry", map[string]any{"reason": "dados corrigidos"}, &api.DeadLetter{}); err != nil || d.Process != "waiting" {
		v.t.Errorf("%s, for which %s waits: %v", d.Subject.ID, d.Process, err)
	}
	v.sees(`(?s)` + d.Subject.ID + ` +reviewed by local: "dados corrigidos"; the process goes on .*` + "accepted by [^\n]* after your review")
	wait.Until(v.t, "recovered: "+d.Subject.ID, func() bool {
		return v.asks("/dead-letters/"+d.ID, nil, &d) == nil && d.State == "recovered"
	})
}
