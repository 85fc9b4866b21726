package main

import (
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"retry-worker/internal/testkit/golden"
)

func TestHelp(t *testing.T) {
	environment(t, nil)
	for _, command := range []string{"retry-worker", "serve", "deploy", "demo", "decide", "plan", "calendar", "calendar show", "calendar check", "simulate", "policies", "policies check", "policies show", "policies diff", "policies schema",
		"history", "audit", "kpi", "journal", "journal rebuild", "journal purge", "journal erase", "dead-letters", "dead-letters list", "dead-letters groups", "dead-letters show", "dead-letters retry", "dead-letters discard",
		"dead-letters runs", "dead-letters runs list", "dead-letters runs show", "dead-letters runs items", "dead-letters runs watch", "dead-letters runs pause",
		"dead-letters runs resume", "dead-letters runs cancel",
		"causes", "causes list", "causes show", "causes teach", "causes forget", "causes export",
		"destinations", "destinations list", "destinations show", "destinations hold", "destinations release", "destinations probe", "ready", "check", "version"} {
		t.Run(command, func(t *testing.T) {
			args := append(strings.Fields(command), "--help")
			if command == "retry-worker" {
				args = args[1:]
			}
			r := retryWorker(args...)
			if r.code != exitDone || r.stderr != "" {
				t.Errorf("exit %d, standard error %q, want 0 and nothing", r.code, r.stderr)
			}
			golden.Check(t, "testdata/help/"+strings.ReplaceAll(command, " ", "-")+".txt", r.stdout)
		})
	}
}

// Issue 3, item 5, and the contract: every command of this slice is listed, and has -o.
func TestHelpListsEveryCommand(t *testing.T) {
	help := retryWorker("--help").stdout
	for _, command := range []string{"serve", "deploy", "demo", "decide", "plan", "calendar", "simulate", "policies", "history", "audit", "kpi", "journal", "dead-letters", "causes", "destinations", "notify", "token", "ready", "check", "version"} {
		if !strings.Contains(help, "\n  "+command+" ") {
			t.Errorf("the help does not list %s", command)
		}
		formats := "text or json"
		if command == planName || command == simulateName {
			formats = "text, json or svg"
		}
		if text := retryWorker(command, "--help").stdout; !regexp.MustCompile(`-o, --output string +how to print: ` + formats).MatchString(text) {
			t.Errorf("%s has no -o", command)
		}
	}
}

// Nothing is served, and no journal is made, by who only types the program's name.
func TestWithoutACommandHelpIsPrinted(t *testing.T) {
	t.Chdir(t.TempDir())
	environment(t, nil)
	if r, help := retryWorker(), retryWorker("--help"); r != help || r.code != exitDone {
		t.Errorf("got %+v, want %+v", r, help)
	}
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("it leaves %v behind (%v)", files, err)
	}
}

func TestVersion(t *testing.T) {
	r := retryWorker("version")
	if want := "retry-worker dev (commit unknown of unknown, " + runtime.Version() + ")\n"; r.stdout != want || r.code != exitDone {
		t.Errorf("got %q, exit %d, want %q", r.stdout, r.code, want)
	}
	o := retryWorker("version", "-o", "json").object(t)
	if o["version"] != "dev" || o["commit"] != "unknown" || o["date"] != "unknown" || o["goVersion"] != runtime.Version() || len(o) != 4 {
		t.Errorf("got %v", o)
	}
}

// Errors are lines that begin with the program's name, and nothing of them gets into standard output.
func TestErrorsGoToStandardError(t *testing.T) {
	environment(t, map[string]string{"ZEEBE_ADDRESS": "nonsense", "RETRY_WORKER_OPS_ADDR": "nonsense"})
	for _, command := range []string{"serve", "deploy", "demo", "ready"} {
		for _, format := range []string{"text", "json"} {
			r := retryWorker(strings.Fields(command + " -o " + format)...)
			if r.code != exitUsage || r.stdout != "" || r.stderr == "" {
				t.Errorf("%q: exit %d, standard output %q, standard error %q", command, r.code, r.stdout, r.stderr)
			}
			for line := range strings.Lines(r.stderr) {
				if !strings.HasPrefix(line, "retry-worker: ") {
					t.Errorf("%q: the line %q does not begin with the program's name", command, line)
				}
			}
		}
	}
}

func TestAllBadSettingsAreSaidAtOnce(t *testing.T) {
	environment(t, map[string]string{
		"ZEEBE_ADDRESS": "nonsense", "RETRY_WORKER_OPS_ADDR": "9095", "RETRY_WORKER_JOB_TIMEOUT": "10", "RETRY_WORKER_LOGLEVEL": "debug",
	})
	retryWorker("serve").fails(t, exitUsage,
		`RETRY_WORKER_JOB_TIMEOUT is "10", expected a duration from 1s to 1h0m0s, such as 10s`,
		"RETRY_WORKER_LOGLEVEL is set, expected one of the names that `retry-worker serve --help` lists; did you mean RETRY_WORKER_LOG_LEVEL?",
		`RETRY_WORKER_OPS_ADDR is "9095", expected host:port, such as 127.0.0.1:9095`,
		`ZEEBE_ADDRESS is "nonsense", expected host:port, such as 127.0.0.1:26500`)
}
