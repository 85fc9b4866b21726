package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
	content := catalogue.Default().Effective()
	if !bytes.Contains(content, []byte(old)) {
		t.Fatalf("the built-in catalogue has no %q", old)
	}
	return bytes.Replace(content, []byte(old), []byte(new), 1)
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
		s := settings(t, testkit.Nowhere(t))
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
