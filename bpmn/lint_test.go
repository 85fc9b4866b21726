package bpmn_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"retry-worker/e2e/harness"
)

const (
	tools = "../scripts/models"
	// installTime bounds the one download of the tools, toolTime one run of one of them.
	installTime = 5 * time.Minute
	toolTime    = time.Minute
	// unavailable is how install.mjs ends where the machine lacks something (its first comment).
	unavailable = 69
)

// answer is what a tool said and how it ended.
type answer struct {
	code int
	text string
}

// runNode runs one of the scripts; code −1 says that it could not be started or did not end in time.
func runNode(limit time.Duration, script string, args ...string) answer {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join(tools, script)}, args...)...)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	a := answer{text: string(out)}
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return answer{-1, "not finished after " + limit.String() + ": " + a.text}
	case errors.As(err, &ended):
		a.code = ended.ExitCode()
	case err != nil:
		return answer{-1, err.Error()}
	}
	return a
}

var install = sync.OnceValue(func() answer {
	if _, err := exec.LookPath("node"); err != nil {
		return answer{unavailable, "node is not installed"}
	}
	return runNode(installTime, "install.mjs")
})

// needTools provides the npm tools. Where this machine cannot, the test says so and is skipped, or
// fails where CI=true.
func needTools(t *testing.T) {
	t.Helper()
	a := install()
	if a.code == unavailable {
		why, _, _ := strings.Cut(strings.TrimSpace(a.text), "\n")
		harness.LeaveOut(t, "lint of the BPMN models and validation of the element templates ("+why+
			") — install with: apt-get install -y nodejs npm (Node 20 or newer, and an npm registry in reach)")
	}
	if a.code != 0 {
		t.Fatalf("installing the model tools: %s", a.text)
	}
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: found %v (%v), expected files", pattern, files, err)
	}
	return files
}

func TestModelsPassTheLinterOfEveryEngineVersion(t *testing.T) {
	needTools(t)
	if a := runNode(toolTime, "lint.mjs", glob(t, "*.bpmn")...); a.code != 0 {
		t.Error(a.text)
	} else if !strings.Contains(a.text, "7 rule sets, 0 finding(s)") {
		t.Errorf("the linter said %q, expected 7 rule sets (recommended, 8.5 to 8.10) without a finding", a.text)
	}
}

func TestTemplatesPassTheOfficialSchema(t *testing.T) {
	needTools(t)
	if a := runNode(toolTime, "validate.mjs", glob(t, templateFolder+"/*.json")...); a.code != 0 {
		t.Error(a.text)
	}
}
