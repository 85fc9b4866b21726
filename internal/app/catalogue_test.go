package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"retry-worker/internal/app"
	"retry-worker/internal/catalogue"
	"retry-worker/internal/clock"
	"retry-worker/internal/config"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
)

// policiesFile is a policies file that a test changes as an editor does: whole, by a rename.
type policiesFile string

func newPoliciesFile(t *testing.T, content []byte) policiesFile {
	t.Helper()
	f := policiesFile(filepath.Join(t.TempDir(), "policies.yaml"))
	f.becomes(t, content)
	return f
}

func (f policiesFile) becomes(t *testing.T, content []byte) {
	t.Helper()
	fresh := string(f) + ".new"
	testkit.Must(t, os.WriteFile(fresh, content, 0o600))
	testkit.Must(t, os.Rename(fresh, string(f)))
}

// edited is the built-in catalogue with something else in it.
func edited(t *testing.T, old, new string) []byte {
	t.Helper()
	content := catalogue.Default().YAML()
	if !bytes.Contains(content, []byte(old)) {
		t.Fatalf("the built-in catalogue has no %q", old)
	}
	return bytes.Replace(content, []byte(old), []byte(new), 1)
}

func versionIn(t *testing.T, f policiesFile) string {
	t.Helper()
	c, err := catalogue.Load(string(f))
	testkit.Must(t, err)
	return c.Version
}

func TestPoliciesFileIsRefusedAtTheStart(t *testing.T) {
	missing := policiesFile(filepath.Join(t.TempDir(), "missing.yaml"))
	broken := newPoliciesFile(t, bytes.Replace(edited(t, "maxRetries: 5", "maxRetries: -5"), []byte("totalLimit: 48h"), []byte("totalLimit: soon"), 1))
	for _, tt := range []struct {
		file policiesFile
		want []string // in each line, after the setting and the file
	}{
		{missing, []string{": the catalogue cannot be read: no such file"}},
		{broken, []string{": policies.tiss-submission.maxRetries: found ", ": policies.tiss-submission.totalLimit: found "}},
	} {
		leavesNothing(t)
		s := settings(t, gateway.Nowhere(t))
		s.PoliciesFile = string(tt.file)
		_, err := app.New(app.Options{Settings: s, Build: buildInfo, Clock: clock.Machine{}, Log: log})
		problems, ok := errors.AsType[config.Problems](err)
		if !ok || len(problems) != len(tt.want) {
			t.Fatalf("got %v, want %d problems", err, len(tt.want))
		}
		for i, line := range problems {
			if !strings.HasPrefix(line, "RETRY_WORKER_POLICIES_FILE: "+string(tt.file)) || !strings.Contains(line, tt.want[i]) || strings.Contains(line, "\n") {
				t.Errorf("problem %d is %q, want one of the file with %q", i+1, line, tt.want[i])
			}
		}
		if _, err := os.Stat(strings.TrimPrefix(s.DatabaseURL, "sqlite:")); err == nil {
			t.Error("a journal was made for a worker that does not start")
		}
	}
}

func TestBuiltInCatalogue(t *testing.T) {
	g := gateway.New(t, gateway.Options{})
	r := serve(t, settings(t, g.Addr()))
	if !r.metric(t, `retry_worker_catalogue_info{version="`+catalogue.Default().Version+`"} 1`) || !r.metric(t, "retry_worker_catalogue_rejected 0") {
		t.Error("the metrics do not name the built-in catalogue")
	}
	for _, p := range catalogue.Default().Policies.Names() {
		if !r.metric(t, fmt.Sprintf(`max_retries_exceeded_total{policy=%q} 0`, p)) {
			t.Errorf("no series of the policy %s", p)
		}
	}
	wait.Until(t, "the log names the catalogue", func() bool {
		lines := logged.with(t, "message", "policy catalogue in force")
		return len(lines) == 1 && lines[0]["catalogue"] == catalogue.Default().Version && lines[0]["source"] == catalogue.DefaultSource
	})
	wait.Until(t, "the log names the teams that nobody is told for", func() bool {
		lines := logged.with(t, "event", "nobody_told")
		return len(lines) == 1 && fmt.Sprint(lines[0]["teams"]) == "[atendimento cadastro faturamento ti]"
	})
}

// reloading is a service with a policies file, and a log of its own: the file is looked at every 10 s, so that these
// tests run side by side.
type reloading struct {
	*service
	*gateway.Gateway
	file policiesFile
	log  *sink
}

// skipIfShort leaves out with -short what waits for seconds.
func skipIfShort(t *testing.T, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip(why)
	}
}

func serveReloading(t *testing.T) *reloading {
	t.Helper()
	skipIfShort(t, "waits for the policies file to be looked at, every 10 s")
	t.Parallel()
	r := &reloading{Gateway: gateway.New(t, gateway.Options{}), file: newPoliciesFile(t, catalogue.Default().YAML()), log: &sink{}}
	s := settings(t, r.Addr())
	s.PoliciesFile = string(r.file)
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{LevelKey: "level", MessageKey: "message", EncodeLevel: zapcore.LowercaseLevelEncoder})
	r.service = serveLogging(t, s, zap.New(zapcore.NewCore(encoder, zapcore.AddSync(r.log), zapcore.InfoLevel)))
	return r
}

// told waits for the one line of an event.
func (r *reloading) told(t *testing.T, event string) map[string]any {
	t.Helper()
	wait.Until(t, "the log has "+event, func() bool { return len(r.log.with(t, "event", event)) > 0 })
	lines := r.log.with(t, "event", event)
	if len(lines) != 1 {
		t.Errorf("%d lines of %s, want 1", len(lines), event)
	}
	return lines[0]
}

// decided is the log line of a claim that timed out for the fourth time, analysed now; the claim is another each time.
func (r *reloading) decided(t *testing.T, claim string) map[string]any {
	t.Helper()
	r.AddJob(analyze(claim, "TIMEOUT", 3))
	wait.Until(t, claim+" is decided", func() bool { return len(r.log.with(t, "claimId", claim)) > 0 })
	return r.log.with(t, "claimId", claim)[0]
}

// decidedBy waits for a claim that the catalogue of that version decides. The poll that was open while it came brings
// the first to the one before.
func (r *reloading) decidedBy(t *testing.T, version, claim string) map[string]any {
	t.Helper()
	for i := range 3 {
		if line := r.decided(t, fmt.Sprintf("%s-%d", claim, i)); line["catalogue"] == version {
			return line
		}
	}
	t.Fatalf("three failures are not decided by %s:\n%s", version, r.log)
	return nil
}

func (r *reloading) wantMetrics(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !r.metric(t, line) {
			t.Errorf("the metrics have no line %s", line)
		}
	}
}

// TestReloadWhileServing: editing the policies file changes the next decision; the log says what changed, and the series
// of what is gone stay.
func TestReloadWhileServing(t *testing.T) {
	r := serveReloading(t)
	first := versionIn(t, r.file)
	if line := r.decidedBy(t, first, "CLM-1"); line["event"] != "retry_scheduled" || line["maxRetries"] != 5.0 {
		t.Errorf("before: decided %v", line)
	}
	content := bytes.Replace(edited(t, "maxRetries: 5", "maxRetries: 2"), []byte("\n  no-retry:"), []byte("\n  never:"), 1)
	r.file.becomes(t, content)
	second := versionIn(t, r.file)
	told := r.told(t, "catalogue_changed")
	for field, want := range map[string]any{
		"oldVersion": first, "newVersion": second, "source": string(r.file), "added": "[never]", "removed": "[no-retry]", "changed": "[tiss-submission]", "level": "info",
	} {
		if fmt.Sprint(told[field]) != want {
			t.Errorf("the log says of the change: %s is %v, want %v", field, told[field], want)
		}
	}
	r.wantMetrics(t, `retry_worker_catalogue_info{version="`+second+`"} 1`, `retry_worker_catalogue_rejected 0`,
		`max_retries_exceeded_total{policy="never"} 0`, `max_retries_exceeded_total{policy="no-retry"} 0`, `submission_retry_total{policy="tiss-submission"} 1`)
	if line := r.decidedBy(t, second, "CLM-2"); line["event"] != "max_retries_exceeded" || line["maxRetries"] != 2.0 {
		t.Errorf("after: decided %v", line)
	}
}

// TestBrokenPoliciesFileWhileServing: it changes nothing but what is told of it, until it is right again.
func TestBrokenPoliciesFileWhileServing(t *testing.T) {
	r := serveReloading(t)
	version := versionIn(t, r.file)
	r.file.becomes(t, []byte("version: 1\npolicies: none\n"))
	told := r.told(t, "catalogue_rejected")
	if problems, _ := told["problems"].([]any); told["level"] != "error" || told["catalogue"] != version || len(problems) == 0 ||
		!strings.Contains(fmt.Sprint(problems...), string(r.file)+":2: policies") {
		t.Errorf("the log says %v", told)
	}
	wait.Until(t, "ready", func() bool { return r.ready(t) })
	status, body := r.get(t, "/readyz")
	if status != http.StatusOK || !strings.HasPrefix(body, "ok\ncatalogue rejected: "+string(r.file)+":") || !strings.Contains(body, "; version "+version+" stays in force\n") {
		t.Errorf("/readyz with a broken file: %d %q", status, body)
	}
	inForce := `retry_worker_catalogue_info{version="` + version + `"} 1`
	r.wantMetrics(t, "retry_worker_catalogue_rejected 1", inForce)
	r.decidedBy(t, version, "CLM-1")

	r.file.becomes(t, catalogue.Default().YAML())
	if told := r.told(t, "catalogue_recovered"); told["catalogue"] != version {
		t.Errorf("the log says %v", told)
	}
	if status, body := r.get(t, "/readyz"); status != http.StatusOK || strings.Contains(body, "catalogue") {
		t.Errorf("/readyz with the file right again: %d %q", status, body)
	}
	r.wantMetrics(t, "retry_worker_catalogue_rejected 0", inForce)
	if n := len(r.log.with(t, "event", "catalogue_changed")); n != 0 {
		t.Errorf("%d changes are told, want none", n)
	}
}
