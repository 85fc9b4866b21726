package scenarios

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	"retry-worker/internal/access"
	"retry-worker/internal/config"
	"retry-worker/internal/smallfile"
	"retry-worker/internal/testkit/tlstest"
)

// edited is the built-in catalogue with another limit, and longer waits, for failed-job.
func edited(maxRetries int) string {
	return fmt.Sprintf("extends: built-in\npolicies: {failed-job: {maxRetries: %d, backoff: {constant: 20m}}}\n", maxRetries)
}

var catalogueInfo = regexp.MustCompile(`(?m)^retry_worker_catalogue_info\{.*version="([0-9a-f]{12})".*\} 1$`)

// catalogue is the version of the one in force, as the metrics say.
func (p *process) catalogue(t *testing.T) string {
	t.Helper()
	m := catalogueInfo.FindStringSubmatch(p.get(t, p.Ops+"/metrics"))
	if m == nil {
		t.Fatalf("the metrics do not tell the catalogue's version")
	}
	return m[1]
}

// swap replaces the worker's catalogue, and returns when it was taken up or refused, and no poll goes by the one before.
func (s *world) swap(file, content string) {
	s.t.Helper()
	harness.Replace(s.t, file, content)
	time.Sleep(3 * smallfile.LookEvery)
}

// expectDecided waits for the next decision on an instance: scheduled, or dead; by a catalogue.
func (s *scenario) expectDecided(w *process, key int64, made int, retried bool, of int, catalogue string) {
	s.t.Helper()
	s.awaitAll([]int64{key}, "the decision", func(i *instance) bool {
		return len(i.of("analyze-retry")) == made+1 && (i.waiting() || len(i.of("retry-review")) > 0)
	})
	s.expectVariables(s.instance(key), map[string]string{"maxRetries": strconv.Itoa(of), "shouldRetry": strconv.FormatBool(retried)})
	if line := w.Log.About(s.t, key, made+1)[made]; line.Text("catalogue") != catalogue {
		s.t.Errorf("the decision was made by the catalogue %q, expected %s: %v", line.Text("catalogue"), catalogue, line)
	}
}

// TestCatalogueIsTakenUpWhileRunning: a swapped file changes the next decision, of instances under way too; a broken one
// changes nothing and is told of, as broken tokens and a broken certificate are; the mended one is taken up.
func TestCatalogueIsTakenUpWhileRunning(t *testing.T) {
	inBubble(t, byREST, func(t *testing.T, s *world) {
		file := filepath.Join(s.folder, "policies.yaml")
		harness.Replace(t, file, edited(3))
		tokens, certificate, key := filepath.Join(s.folder, "tokens"), filepath.Join(s.folder, "tls.crt"), filepath.Join(s.folder, "tls.key")
		harness.Issue(t, tokens, map[string]access.Role{"ana": access.Admin})
		tlstest.NewAuthority(t).Issue(t, certificate, key, "console")
		w := s.serve(func(c *config.Settings) {
			c.PoliciesFile, c.AuthTokensFile, c.TLSCertFile, c.TLSKeyFile = file, tokens, certificate, key
		})
		s.startPortal(w, runJob)
		fails := func(n int) int64 {
			return s.run(failedJob, s.id("JOB", n), left(failedJob.fails(jobFailure, jobFailure)), nil)
		}
		first := w.catalogue(t)
		under := fails(1)
		s.expectDecided(w, under, 0, true, 3, first)
		s.swap(file, edited(1))
		second := w.catalogue(t)
		s.fire(under)
		s.expectDecided(w, under, 1, false, 1, second) // the second failure is beyond the new limit
		harness.Replace(t, tokens, "neither this nor that")
		harness.Replace(t, certificate, "neither this nor that")
		s.swap(file, edited(-7))
		s.expectMetrics(w, map[string]float64{
			"retry_worker_catalogue_rejected": 1, "retry_worker_tokens_rejected": 1, "retry_worker_certificate_rejected": 1,
		})
		s.expectBrokenIsTold(w, file)
		kept := fails(2)
		s.expectDecided(w, kept, 0, true, 1, second)
		s.swap(file, edited(7))
		third := w.catalogue(t)
		s.expectMetrics(w, map[string]float64{"retry_worker_catalogue_rejected": 0})
		s.fire(kept)
		s.expectDecided(w, kept, 1, true, 7, third) // the limit was raised meanwhile
		s.done("catalogue taken up while running", "3 contents in force one after the other, 1 broken one kept out, no restart")
	})
}

// expectBrokenIsTold holds that the log and /readyz name the file, the line and what is wrong with it.
func (s *scenario) expectBrokenIsTold(w *process, file string) {
	s.t.Helper()
	if text := w.get(s.t, w.Ops+"/readyz"); !strings.Contains(text, "maxRetries") {
		s.t.Errorf("/readyz answers %q, expected what is wrong with the catalogue", text)
	}
	w.Log.Await(s.t, "the worker's log to tell of the broken catalogue", func(lines []harness.Line) bool {
		for _, l := range lines {
			if told := jsonOf(l); strings.Contains(told, filepath.Base(file)) && strings.Contains(told, "maxRetries") {
				return true
			}
		}
		return false
	})
}
