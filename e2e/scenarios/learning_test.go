package scenarios

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	views "retry-worker/internal/api"
	"retry-worker/internal/config"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// TestWhatCameOfItIsLearnt: claims fail of two causes, each with its retry in vain. Both are said to be hopeless, with one
// click to teach it, and are retried all the same. One is taught: it is permanent from then on, though the worker is
// killed. Process, journal and page agree.
func TestWhatCameOfItIsLearnt(t *testing.T) {
	const hopeless, taught, n = "setor %d aguarda o auditor", "lote %d sem remessa", 30
	inBubble(t, byREST, func(t *testing.T, s *world) {
		policies := filepath.Join(s.folder, "policies.yaml")
		testkit.Must(t, os.WriteFile(policies, []byte("extends: built-in\npolicies: {tiss-submission: {maxRetries: 1}}\n"), 0o600))
		life := func(c *config.Settings) { c.PoliciesFile = policies }
		w := s.serve(life)
		s.startPortal(nil, submitClaim)
		claims := func(from, count int, text string) []int64 {
			return s.createAll("SUB_06", count, func(i int) map[string]any {
				words := fmt.Sprintf(text, 10_000+from+i) // no HTTP status
				return submissions.variables(s.claimID(from+i), failing(words, words), nil)
			})
		}
		dead := func(i *instance) bool { return len(i.of(worker.RetryReview)) > 0 }
		first := append(claims(0, n, hopeless), claims(n, n, taught)...)
		s.awaitAll(first, "the first claims to wait for their retry", (*instance).waiting)
		s.fire(first...)
		s.awaitAll(first, "the first claims to be given up", dead)

		about := func(pattern string) (c views.Cause) {
			var causes struct{ Items []views.Cause }
			testkit.Must(t, json.Unmarshal([]byte(w.get(t, w.API+"/api/v1/causes")), &causes))
			for _, c := range causes.Items {
				if strings.HasPrefix(c.Pattern, pattern) {
					return c
				}
			}
			return c
		}
		w.kill() // one that begins reads at once what is learnt from
		w = s.serve(life)
		if !about("setor").Learnt.Hopeless || !about("lote").Learnt.Hopeless {
			t.Errorf("learnt is %+v and %+v", about("setor").Learnt, about("lote").Learnt)
		}
		if page := w.get(t, w.API+"/causes/"+about("setor").ID); !strings.Contains(page, "0 de 30 guias com esta causa foram aceitas em um reenvio. Tratar como permanente?") {
			t.Errorf("the page of a hopeless cause gives no advice:\n%s", page)
		}
		testkit.Must(t, api{worker: w}.ask(t.Context(), "/causes/"+about("lote").ID+"/teach",
			map[string]string{"classification": "PERMANENT", "team": "cadastro", "reason": "a operadora confirmou"}, &views.Cause{}))
		next := claims(2*n, 3, hopeless)
		w.kill()
		next = append(next, claims(2*n+3, 3, taught)...)
		w = s.serve(life)
		s.awaitAll(next, "the next claims to be decided", func(i *instance) bool { return dead(i) || i.waiting() })
		for i, key := range next {
			id := s.claimID(2*n + i)
			var v views.View
			testkit.Must(t, json.Unmarshal([]byte(w.get(t, w.API+"/api/v1/subjects/tiss-submission/"+id)), &v))
			if len(v.Attempts) != 1 {
				t.Fatalf("%s has %d attempts, expected 1", id, len(v.Attempts))
			}
			a, process := &v.Attempts[0], s.instance(key)
			if said := process.variables["retryReason"]; said != string(decision.Text(a.RetryReason)) {
				t.Errorf("%s: the process has %s, the journal %q", id, said, a.RetryReason)
			}
			if i < 3 && a.Outcome != decision.Retry ||
				i >= 3 && (a.Taught == 0 || a.Outcome != decision.PermanentError || a.ResponsibleTeam == nil || *a.ResponsibleTeam != "cadastro") {
				t.Errorf("%s: %+v", id, a)
			}
		}
		s.audited()
		s.done("what came of it is learnt", "%d claims, %d of a cause that was taught", len(first)+len(next), 3)
	})
}
