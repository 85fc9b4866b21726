package bpmn_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
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
		missing := "NOT RUN: lint of the BPMN models and validation of the element templates (" + firstLine(a.text) +
			") — install with: apt-get install -y nodejs npm (Node 20 or newer, and an npm registry in reach)"
		if os.Getenv("CI") == "true" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	if a.code != 0 {
		t.Fatalf("installing the model tools: %s", a.text)
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
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

// damage is one way to spoil a file, and what the tool is to say of it.
type damage struct{ old, new, says string }

func TestTheLinterRefusesABrokenModel(t *testing.T) {
	needTools(t)
	damages := map[string]map[string]damage{"SUB_06_submissao_cobranca.bpmn": {
		"a task without a job type": {`<zeebe:taskDefinition type="analyze-retry" retries="3" />`, "",
			"camunda-cloud-8-5: error camunda-compat/implementation at analyze_retry"},
		"an error without a code":                      {` errorCode="PERMANENT_ERROR"`, "", "camunda-cloud-8-10: error camunda-compat/error-reference"},
		"FEEL that does not parse":                     {"=shouldRetry = true", "=shouldRetry = (", "camunda-compat/feel at do_retry"},
		"a way out of a gateway without its condition": {`default="do_not_retry"`, "", "bpmnlint:recommended: error conditional-flows"},
		"an event without a name":                      {` name="Conta descartada"`, "", "bpmnlint:recommended: error label-required at discarded"},
		"an attribute that does not exist":             {`retries="1"`, `retris="1"`, "unknown attribute <retris>"},
		"no BPMN":                                      {"<bpmn:definitions", "<definitions", "not readable as BPMN"},
	}, "whatsapp_message.bpmn": {
		"a wait without its duration": {"=backoffDuration</bpmn:timeDuration>", "</bpmn:timeDuration>", "camunda-compat/timer at wait_for_retry"},
	}, "failed_job.bpmn": {
		"a boundary event that catches nothing": {`<bpmn:errorEventDefinition id="job_failed_definition" errorRef="error_job_failed" />`, "",
			"camunda-cloud-8-5: error camunda-compat/element-type at job_failed"},
	}, "job_queue.bpmn": {
		"a message without its correlation": {`<zeebe:subscription correlationKey="=jobId" />`, "", "camunda-compat/subscription at dependency_resolved"},
		"a time that is none":               {">PT1M<", ">1 minuto<", "camunda-compat/timer at recheck_time"},
	}}
	for model, all := range damages {
		for name, d := range all {
			t.Run(name, func(t *testing.T) { refused(t, "lint.mjs", model, d) })
		}
	}
}

func TestTheValidatorRefusesABrokenTemplate(t *testing.T) {
	needTools(t)
	template := filepath.Join(templateFolder, "analyze-retry.json")
	for name, d := range map[string]damage{
		"a binding that does not exist": {`"type": "zeebe:output"`, `"type": "zeebe:outptu"`, "/binding/type"},
		"an output without its source":  {`"source": "=shouldRetry"`, `"sauce": "=shouldRetry"`, "source"},
		"no name":                       {`"name": "Analisar reenvio (RN-BIL-005)",`, "", "name"},
		"a deprecated form":             {`"feel": "optional",`, `"feel": "optional", "optional": true,`, "optional"},
		"no JSON":                       {`"version": 3,`, `"version": 3,,`, "not readable as JSON"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, "validate.mjs", template, d) })
	}
}

// refused damages a copy of the file once and expects the tool to end with 1 and to say why.
func refused(t *testing.T, script, file string, d damage) {
	t.Helper()
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(whole, []byte(d.old)) {
		t.Fatalf("%s holds no %q to damage", file, d.old)
	}
	broken := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(broken, bytes.Replace(whole, []byte(d.old), []byte(d.new), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if a := runNode(toolTime, script, broken); a.code != 1 || !strings.Contains(a.text, d.says) || !strings.Contains(a.text, broken) {
		t.Errorf("%s ended with %d and said:\n%s\nexpected 1, the file and %q", script, a.code, a.text, d.says)
	}
}
