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
	"retry-worker/internal/config"
	"retry-worker/internal/reload"
	"retry-worker/internal/testkit"
)

// edited is the default catalogue with another base and limit for failed-job.
func edited(s *world, base string, maxRetries int) string {
	s.t.Helper()
	before, policy, found := strings.Cut(testkit.Read(s.t, "../../internal/catalogue/default.yaml"), "\n  failed-job:\n")
	_, after, both := strings.Cut(policy, "\n  job-queue:\n")
	if !found || !both {
		s.t.Fatal("the default catalogue has no failed-job before job-queue")
	}
	return before + fmt.Sprintf(`
  failed-job:
    id: {variable: jobId, pattern: '^JOB-.+$'}
    error: {variable: jobError}
    maxRetries: %d
    backoff: {constant: %s}
    limitTeam: ti

  job-queue:
`, maxRetries, base) + after
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
	time.Sleep(2 * reload.LookEvery)
}

// expectDecided waits for the next decision on an instance: scheduled after wait, by a catalogue; or dead where wait is
// empty.
func (s *scenario) expectDecided(w *process, key int64, made int, wait string, of int, catalogue string) {
	s.t.Helper()
	s.awaitAll([]int64{key}, "the decision", func(i *instance) bool {
		return len(i.of("analyze-retry")) == made+1 && (i.waiting() || len(i.of("retry-review")) > 0)
	})
	want := map[string]string{"maxRetries": strconv.Itoa(of), "shouldRetry": "false"}
	if wait != "" {
		want["shouldRetry"], want["backoffDuration"] = "true", jsonOf(wait)
	}
	s.expectVariables(s.instance(key), want)
	if line := w.Log.About(s.t, key, made+1)[made]; line.Text("catalogue") != catalogue {
		s.t.Errorf("the decision was made by the catalogue %q, expected %s: %v", line.Text("catalogue"), catalogue, line)
	}
}

// TestCatalogueIsTakenUpWhileRunning: a swapped file changes the next decision, of instances under way too; a broken one
// changes nothing and is told of; the mended one is taken up.
func TestCatalogueIsTakenUpWhileRunning(t *testing.T) {
	inBubble(t, byREST, takeUpCatalogues)
}

func takeUpCatalogues(t *testing.T, s *world) {
	file := filepath.Join(s.folder, "policies.yaml")
	harness.Replace(t, file, edited(s, "20m", 3))
	w := s.serve(func(c *config.Settings) { c.PoliciesFile = file })
	s.startPortal(w, runJob)
	c := failedJob.fails(repeat(jobFailure, 2)...)
	c.Review.Discard = true
	first := w.catalogue(t)
	under := s.run(failedJob, s.id("JOB", 1), c, nil)
	s.expectDecided(w, under, 0, "PT20M", 3, first)

	s.swap(file, edited(s, "40m", 1))
	second := w.catalogue(t)
	fresh := s.run(failedJob, s.id("JOB", 2), c, nil)
	s.expectDecided(w, fresh, 0, "PT40M", 1, second)
	s.fire(under)
	s.expectDecided(w, under, 1, "", 1, second) // the second failure is beyond the new limit

	s.swap(file, strings.Replace(edited(s, "5m", 7), "maxRetries: 7", "maxRetries: -7", 1))
	s.expectMetrics(w, map[string]float64{"retry_worker_catalogue_rejected": 1})
	s.expectBrokenIsTold(w, file)
	kept := s.run(failedJob, s.id("JOB", 3), c, nil)
	s.expectDecided(w, kept, 0, "PT40M", 1, second)

	s.swap(file, edited(s, "5m", 7))
	third := w.catalogue(t)
	s.expectMetrics(w, map[string]float64{"retry_worker_catalogue_rejected": 0})
	last := s.run(failedJob, s.id("JOB", 4), c, nil)
	s.expectDecided(w, last, 0, "PT5M", 7, third)

	s.fire(last)
	s.expectDecided(w, last, 1, "PT5M", 7, third)
	s.fire(fresh, kept)
	s.expectDecided(w, kept, 1, "PT5M", 7, third) // the limit was raised meanwhile
	s.fire(kept)
	keys := []int64{under, fresh, kept, last}
	s.awaitEnded(keys...)
	s.expectEnd(failedJob, under, "discarded", 2)
	s.expectCounts(counts{
		"run-job error thrown": 2 * 4, "run-job completed": 3, "analyze-retry completed": 1 + 2*3, "analyze-retry error thrown": 1,
		"retry-review completed": 1, "record-retry-outcome completed": 3, "timers triggered": 1 + 2*3, "processes completed": 4,
	})
	s.done("catalogue taken up while running", "3 contents in force one after the other, 1 broken one kept out, no restart")
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
