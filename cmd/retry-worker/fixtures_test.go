package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// result is what a run of the program returned.
type result struct {
	stdout, stderr string
	code           int
}

// retryWorker runs the program in this process.
func retryWorker(args ...string) result {
	var stdout, stderr bytes.Buffer
	code := run(args, &stdout, &stderr)
	return result{stdout.String(), stderr.String(), code}
}

// fails checks that the run ended with code and printed nothing but these lines of errors, each after the program's
// name.
func (r result) fails(t *testing.T, code int, lines ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit %d, want %d", r.code, code)
	}
	if r.stdout != "" {
		t.Errorf("standard output: %q, want nothing", r.stdout)
	}
	r.says(t, lines...)
}

// says checks that standard error has exactly these lines, each after the program's name.
func (r result) says(t *testing.T, lines ...string) {
	t.Helper()
	var want strings.Builder
	for _, line := range lines {
		want.WriteString("retry-worker: " + line + "\n")
	}
	if r.stderr != want.String() {
		t.Errorf("standard error:\n%swant:\n%s", r.stderr, want.String())
	}
}

// object returns standard output, which must be one JSON object.
func (r result) object(t *testing.T) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &o); err != nil {
		t.Fatalf("standard output %q is no JSON object: %v", r.stdout, err)
	}
	if strings.Count(r.stdout, "\n") != 1 || !strings.HasSuffix(r.stdout, "}\n") {
		t.Errorf("standard output %q, want one line", r.stdout)
	}
	return o
}

// patience bounds what must happen; only a failing test reaches it.
const patience = wait.Limit

// TestDocumentsNameCommandsThatExist holds the commands and flags that the documents tell people to type.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "deploy/helm/*/*.md"} {
		more, err := filepath.Glob(filepath.Join("../..", pattern))
		testkit.Must(t, err)
		pages = append(pages, more...)
	}
	typed := regexp.MustCompile("(?m)(?:`|^(?:\\$ )?|RETRY_WORKER_\\S+ )(?:bin/)?retry-worker((?: [a-z][a-z-]*)*)([^`#\n]*)")
	seen := 0
	for _, page := range pages {
		for _, m := range typed.FindAllStringSubmatch(testkit.Read(t, page), -1) {
			words := strings.Fields(m[1])
			if len(words) == 0 {
				continue
			}
			seen++
			command, rest, err := (&cli{}).root().Find(words)
			if err != nil || command.HasSubCommands() && len(rest) > 0 {
				t.Errorf("%s: %q: no such command (%v)", page, m[0], err)
				continue
			}
			command.InitDefaultHelpFlag()
			known := pflag.NewFlagSet("", pflag.ContinueOnError)
			known.AddFlagSet(command.Flags())
			known.AddFlagSet(command.InheritedFlags())
			for _, flag := range regexp.MustCompile(`--([a-z][a-z-]*)`).FindAllStringSubmatch(m[2], -1) {
				if known.Lookup(flag[1]) == nil {
					t.Errorf("%s: %q: no flag --%s", page, m[0], flag[1])
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("%d commands were found; this test looks for the wrong thing", seen)
	}
}
