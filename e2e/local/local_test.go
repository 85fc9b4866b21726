package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestCtrlCAtAnyMomentLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		trouble string
		without string // what is not in the cache
		moment  func(l *local) bool
		signal  os.Signal
	}{
		"while Zeebe is fetched":           {trouble: "maven:hangs", without: "bin", moment: func(l *local) bool { return l.runs("maven") }},
		"while Zeebe starts":               {trouble: "broker:hangs", moment: func(l *local) bool { return l.runs("broker") }},
		"while the models go in":           {trouble: "deploy:hangs", moment: func(l *local) bool { return l.runs("deploy") }},
		"while the worker starts":          {trouble: "serve:hangs", moment: func(l *local) bool { return l.runs("serve") }},
		"in the demo":                      {trouble: "demo:hangs", moment: func(l *local) bool { return l.runs("demo") }},
		"in the demo, by SIGTERM":          {trouble: "demo:hangs", moment: func(l *local) bool { return l.runs("demo") }, signal: syscall.SIGTERM},
		"in the demo, the terminal closed": {trouble: "demo:hangs", moment: func(l *local) bool { return l.runs("demo") }, signal: syscall.SIGHUP},
		"after the demo":                   {moment: func(l *local) bool { return l.printed("it removes the logs")() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := prepare(t, c.trouble)
			if c.without != "" {
				if err := os.RemoveAll(filepath.Join(l.zeebe, c.without)); err != nil {
					t.Fatal(err)
				}
			}
			if c.signal == nil {
				c.signal = os.Interrupt
			}
			l.start()
			l.until("the moment", func() bool { return c.moment(l) })
			l.signal(c.signal)
			code, took := l.exit()
			if code != 0 {
				t.Errorf("exit code %d, expected 0; it printed:\n%s", code, &l.out)
			}
			l.nothingRuns()
			l.nothingLeft()
			t.Logf("ended in %v", took)
		})
	}
}

func TestStopAsksInReverseOrder(t *testing.T) {
	t.Parallel()
	l := prepare(t, "")
	l.start()
	l.until("over", l.printed("it removes the logs"))
	l.signal(os.Interrupt)
	l.exit()
	if got, err := os.ReadFile(filepath.Join(l.pids, asked)); err != nil || string(got) != "demo serve broker " {
		t.Errorf("asked to end: %q (%v), expected the demo, the worker, then Zeebe", got, err)
	}
}

func TestSecondCtrlCEndsItHard(t *testing.T) {
	for _, role := range []string{"demo", "serve", "broker"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			l := prepare(t, role+":"+deaf)
			l.start()
			l.until("over", l.printed("it removes the logs"))
			l.signal(os.Interrupt)
			l.until("stopping", l.printed("Stopping the worker and Zeebe"))
			l.signal(os.Interrupt)
			code, took := l.exit()
			if took > 8*time.Second { // the first waits for 12
				t.Errorf("it took %v to end hard", took)
			}
			if code != exitKilled {
				t.Errorf("exit code %d, expected %d", code, exitKilled)
			}
			l.nothingRuns()
			l.nothingLeft()
		})
	}
}

func TestItEndsWithWhoStartedIt(t *testing.T) {
	t.Parallel()
	l := prepare(t, "")
	local := l.cmd.Args
	l.cmd.Path, l.cmd.Args = "/bin/sh", append([]string{"sh", "-c", `"$@" & echo $! > "$` + pidsName + `/local"; wait`, "sh"}, local...)
	l.start()
	l.until("over", l.printed("it removes the logs"))
	l.signal(os.Kill)
	l.until("stopped", l.printed("Stopped."))
	l.exit()
	l.nothingLeft()
	l.until("gone", func() bool { return !l.alive("local") })
	l.nothingRuns()
}

func TestWhatFailsIsSaidOnOneLine(t *testing.T) {
	for name, c := range map[string]struct {
		trouble string
		dies    bool
		harm    func(l *local)
		want    []string
	}{
		"the worker is not built": {harm: func(l *local) { l.remove("bin", "retry-worker") }, want: []string{"there is no ", "run `make build`"}},
		"no Maven":                {harm: func(l *local) { l.remove("path", "mvn"); l.remove("cache") }, want: []string{"mvn is not on the PATH; install Maven"}},
		"Maven fails":             {trouble: "maven:fails", harm: func(l *local) { l.remove("cache") }, want: []string{"fetch Zeebe 8.5.8", "maven - out of luck", "check the network"}},
		"Zeebe does not start":    {trouble: "broker:fails", want: []string{"start Zeebe 8.5.8", "exit status 3", "broker - out of luck", "zeebe.log"}},
		"the models are refused":  {trouble: "deploy:fails", want: []string{"`retry-worker deploy` failed", "deploy - out of luck"}},
		"the worker fails":        {trouble: "serve:fails", want: []string{"the worker ended too early", "serve - out of luck", "worker.log"}},
		"the demo fails":          {trouble: "demo:fails", want: []string{"`retry-worker demo` failed", "demo - out of luck", "worker.log"}},
		"Zeebe dies":              {trouble: "broker:dies", dies: true, want: []string{"Zeebe ended too early", "broker - out of luck", "zeebe.log", "run it again"}},
		"the demo dies":           {trouble: "demo:dies", dies: true, want: []string{"the demo ended too early", "demo - out of luck", "worker.log", "run it again"}},
		"the worker dies":         {trouble: "serve:dies", dies: true, want: []string{"the worker ended too early", "serve - out of luck", "worker.log", "run it again"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := prepare(t, c.trouble)
			if c.harm != nil {
				c.harm(l)
			}
			l.start()
			if c.dies {
				l.until("over", l.printed("it removes the logs"))
				if err := os.WriteFile(filepath.Join(l.pids, "die"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			code, _ := l.exit()
			lines := strings.Split(strings.TrimSpace(l.out.String()), "\n")
			last := lines[len(lines)-1]
			if code != exitFailed {
				t.Errorf("exit code %d, expected %d", code, exitFailed)
			}
			for _, want := range c.want {
				if !strings.Contains(last, want) {
					t.Errorf("the last line has no %q; it printed:\n%s", want, &l.out)
				}
			}
			l.nothingRuns()
			if left, _ := filepath.Glob(filepath.Join(l.temporary, "retry-worker-zeebe-*")); len(left) > 0 {
				t.Errorf("Zeebe's data are left: %v", left)
			}
			if at := strings.Index(last, l.temporary); at >= 0 && !exists(strings.TrimRight(strings.Fields(last[at:])[0], ",;")) {
				t.Errorf("a log is named that is not there: %s", last)
			}
		})
	}
}

func TestOnceEndsAfterTheDemo(t *testing.T) {
	t.Parallel()
	l := prepare(t, "", "-once")
	l.start()
	if code, _ := l.exit(); code != 0 {
		t.Errorf("exit code %d, expected 0", code)
	}
	for _, want := range []string{"SUB_06 version 1 deployed", "CLM-1 decided (--api-url http://127.0.0.1:", "--clock-url http://127.0.0.1:", "--worker-log " + l.temporary, "Nothing is left"} {
		if !l.printed(want)() {
			t.Errorf("%q is missing in:\n%s", want, &l.out)
		}
	}
	l.nothingRuns()
	l.nothingLeft()
}

// The worker must meet the broker of this run, whatever the environment says, and the log must be where
// the viewer is sent.
func TestWorkerMeetsThisRunsBroker(t *testing.T) {
	t.Parallel()
	l := prepare(t, "")
	l.start()
	l.until("over", l.printed("it removes the logs"))
	_, gateway, _ := strings.Cut(l.out.String(), "gateway at ")
	gateway, _, _ = strings.Cut(gateway, ",")
	_, path, _ := strings.Cut(l.out.String(), "its log: ")
	path, _, _ = strings.Cut(path, "\n")
	log, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(log), `"engine":"`+gateway+`"`) {
		t.Errorf("the log at %q is %q (%v), expected the gateway %s", path, log, err, gateway)
	}
	_, metrics, _ := strings.Cut(l.out.String(), "Ready     ")
	metrics, _, _ = strings.Cut(metrics, "\n")
	response, err := http.Get(metrics)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", metrics, err)
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	l.signal(os.Interrupt)
	l.exit()
}

func TestTakenPortsAreReplacedAndSaid(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	port := taken.Addr().(*net.TCPAddr).Port
	var said bytes.Buffer
	s := &session{screen: newScreen(&said)}
	address, err := s.address("metrics", port)
	if err != nil {
		t.Fatal(err)
	}
	if address == taken.Addr().String() || !strings.Contains(said.String(), fmt.Sprintf("%d is taken; metrics: ", port)) {
		t.Errorf("address %s, said %q", address, &said)
	}
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{"-nonsense"}, {"more"}} {
		var out bytes.Buffer
		if code := run(t.Context(), t.Context(), args, io.Discard, &out); code != exitUsage || out.Len() == 0 {
			t.Errorf("%v: exit code %d, %q", args, code, &out)
		}
	}
}
