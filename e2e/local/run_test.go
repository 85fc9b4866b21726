package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/e2e/harness/zeebe"
	"retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// local is a program in a process group of its own, as a terminal starts one; temporary is its TMPDIR, and all that it
// starts has mark in its environment.
type local struct {
	t         *testing.T
	cmd       *exec.Cmd
	out       harness.Log
	temporary string
	mark      string
	ended     chan struct{}
}

func start(t *testing.T, cmd *exec.Cmd, temporary string) *local {
	t.Helper()
	l := &local{t: t, cmd: cmd, temporary: temporary, mark: "LOCAL_TEST_RUN=" + rand.Text(), ended: make(chan struct{})}
	cmd.Env = append(cmd.Env, "TMPDIR="+temporary, l.mark)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &l.out, &l.out, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	testkit.Must(t, cmd.Start())
	go func() {
		_ = cmd.Wait()
		close(l.ended)
	}()
	t.Cleanup(func() { // ended long ago, unless the test failed
		l.signal(syscall.SIGINT)
		l.exit()
	})
	return l
}

// signal reaches the whole group, as a terminal's does.
func (l *local) signal(s syscall.Signal) { _ = syscall.Kill(-l.cmd.Process.Pid, s) }

func (l *local) exit() int {
	select {
	case <-l.ended:
	case <-wait.Context(l.t).Done():
		l.t.Errorf("it did not end within %v; it printed:\n%s", wait.Limit, l.out.Text())
		l.signal(syscall.SIGKILL)
		<-l.ended
	}
	return l.cmd.ProcessState.ExitCode()
}

// sees waits for what is printed to hold some words, and returns what it matched. A whole run takes longer than what
// other tests wait for.
func (l *local) sees(words string) (m []string) {
	l.t.Helper()
	pattern, tooLate := regexp.MustCompile(words), time.After(10*time.Minute)
	for m == nil {
		ended := false
		select {
		case <-l.ended:
			ended = true
		case <-tooLate:
			ended = true
		case <-time.After(20 * time.Millisecond):
		}
		if m = pattern.FindStringSubmatch(l.out.Text()); m == nil && ended {
			l.t.Fatalf("%q was not seen; it printed:\n%s", words, l.out.Text())
		}
	}
	return m
}

// processes returns those of this run, by their programs' names; Linux only.
func (l *local) processes() map[string]int {
	all := make(map[string]int)
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environ, []byte(l.mark)) {
			continue
		}
		if program, err := os.Readlink(filepath.Join(filepath.Dir(path), "exe")); err == nil {
			name := strings.TrimSuffix(filepath.Base(program), " (deleted)") // another run has built it anew
			all[name], _ = strconv.Atoi(filepath.Base(filepath.Dir(path)))
		}
	}
	return all
}

// nothingLeft waits until no process of the run is there, and in the temporary folder only what others still use.
func (l *local) nothingLeft(others int) {
	l.t.Helper()
	wait.Until(l.t, "an end of all it started", func() bool {
		files, _ := filepath.Glob(filepath.Join(l.temporary, "*"))
		return len(l.processes()) == 0 && len(files) == others
	})
}

// TestRealRun is `make run` as a newcomer meets it, twice at a time: what the first and the last line say, the pages, what a
// person does there, and what is left of a run that Ctrl-C ends, and of one that is killed.
func TestRealRun(t *testing.T) {
	zeebe.Require(t, zeebe.Versions[0])
	temporary := t.TempDir()
	first, second := makeRun(t, temporary), makeRun(t, temporary)
	console := first.sees(`^[^\n]*(http://127\.0\.0\.1:\d+)/dead-letters; `)[1]
	if other := second.sees(`^[^\n]*(http://127\.0\.0\.1:\d+)/dead-letters; `)[1]; other == console {
		t.Errorf("both consoles are at %s", console)
	}
	second.sees("gateway at")
	pid := second.processes()["local"]
	if pid == 0 { // that would be this test's own group
		t.Fatalf("the second run is not among %v", second.processes())
	}
	testkit.Must(t, syscall.Kill(pid, syscall.SIGKILL))
	if second.exit() == 0 {
		t.Error("a run that was killed has exit code 0")
	}
	second.nothingLeft(1)
	v := viewer{first, console}
	v.sees(`Console +` + regexp.QuoteMeta(console) + `/dead-letters: [^\n]*\n$`)
	v.waitsAreMinutes()
	v.reviews()
	v.signal(syscall.SIGINT)
	v.exit()
	v.nothingLeft(0)
	wanted := []string{"Compiling;", "retry 1 of 5", "retry 1 of 3", "WAITING", "moves the clock", "What became of them:", "Nothing is left",
		"Waiting for your review: 23 of SUB_06, 1 of WHATSAPP_MESSAGE."}
	for process, samples := range map[string]string{"SUB_06": "50 claims", "WHATSAPP_MESSAGE": "7 messages", "FAILED_JOB": "5 jobs", "JOB_QUEUE": "8 jobs"} {
		wanted = append(wanted, process+" version 1 deployed", "\n"+process+": "+samples)
	}
	for _, want := range wanted {
		if !strings.Contains(v.out.Text(), want) {
			t.Errorf("%q is missing in:\n%s", want, v.out.Text())
		}
	}
	if strings.Contains(v.out.Text(), "has not ended") {
		t.Errorf("samples have not ended:\n%s", v.out.Text())
	}
}

func makeRun(t *testing.T, temporary string) *local {
	t.Helper()
	cmd := exec.Command("make", "--no-print-directory", "-C", "../..", "run")
	cmd.Env = os.Environ()
	return start(t, cmd, temporary)
}

// viewer reads what `make run` prints, and does what it asks for.
type viewer struct {
	*local
	console string
}

// asks the API behind the console; body nil: by GET.
func (v *viewer) asks(path string, body, answer any) error {
	return harness.Ask(v.t.Context(), v.console, "", path, body, answer)
}

func (v *viewer) deadLetters() []api.DeadLetter {
	v.t.Helper()
	var list api.Page[api.DeadLetter]
	if testkit.Must(v.t, v.asks("/dead-letters", nil, &list)); len(list.Items) != 24 {
		v.t.Fatalf("%d dead letters are open, expected 24: %+v", len(list.Items), list.Items)
	}
	return list.Items
}

// waitsAreMinutes: a claim that went through the whole ladder took its 5, 10, 20, 40 and 80 minutes by the worker's clock.
func (v *viewer) waitsAreMinutes() {
	v.t.Helper()
	for _, d := range v.deadLetters() {
		first, _ := decision.ParseInstant(*d.FirstFailure)
		if dead, _ := decision.ParseInstant(d.CreatedAt); d.RetryCount == 5 && dead.Sub(first) < 155*time.Minute {
			v.t.Errorf("%s went through the ladder in %v, want at least 155 min", d.Subject.ID, dead.Sub(first))
		}
	}
}

// reviews reads what is left, of which 20 have one cause, and decides on one of each other cause: all are sent again but one,
// which is let go. What follows shows.
func (v *viewer) reviews() {
	v.t.Helper()
	if status, page := testkit.Get(v.t, v.console+"/dead-letters"); status != http.StatusOK {
		v.t.Fatalf("the console's page: %d, %s", status, page)
	}
	var groups api.Page[api.DeadLetterGroup]
	if testkit.Must(v.t, v.asks("/dead-letters/groups", nil, &groups)); len(groups.Items) == 0 || groups.Items[0].Count != 20 {
		v.t.Errorf("the causes are %+v, expected one with 20 dead letters first", groups.Items)
	}
	discarded := false
	for _, d := range v.deadLetters() {
		how, body := "/retry", map[string]any{"reason": "dados corrigidos"}
		switch {
		case strings.Contains(d.Error, "credencial"):
			continue
		case d.ForceNeeded:
			err := v.asks("/dead-letters/"+d.ID+how, body, &api.DeadLetter{})
			if no, is := errors.AsType[*api.Refused](err); !is || no.Status != http.StatusConflict || no.Failure.Error != "max_retries_exceeded" {
				v.t.Errorf("%s at its limit: %v, expected 409 max_retries_exceeded", d.Subject.ID, err)
			}
			body["forceRetry"] = true
		case !discarded:
			discarded, how, body = true, "/discard", map[string]any{"reason": "não vale a pena"}
		}
		if err := v.asks("/dead-letters/"+d.ID+how, body, &api.DeadLetter{}); err != nil || d.Process != "waiting" {
			v.t.Errorf("%s, for which %s waits: %v", d.Subject.ID, d.Process, err)
		}
		if how == "/discard" {
			v.sees(`reviewed by local: "não vale a pena"; let go, and the process ends`)
			continue
		}
		v.sees(`(?s)` + d.Subject.ID + ` +reviewed by local: "dados corrigidos"; the process goes on .*` + "accepted by [^\n]* after your review")
		wait.Until(v.t, "recovered: "+d.Subject.ID, func() bool {
			return v.asks("/dead-letters/"+d.ID, nil, &d) == nil && d.State == "recovered"
		})
	}
}
