package scenarios

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"retry-worker/e2e/harness"
	views "retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// fewLearnt claims fail, where PROOF_LEARN does not say otherwise.
const fewLearnt = 60

// TestWhatCameOfItIsLearnt: two thirds of the claims fail of one cause, each with its retry in vain; the others that fail of it
// are given to people at once, but for a few. A cause that an admin teaches is permanent from then on. The worker is killed
// while those claims come. Process, journal, figures and page agree.
func TestWhatCameOfItIsLearnt(t *testing.T) {
	const hopeless, taught = "setor %d aguarda o auditor", "lote %d sem remessa"
	s := onProcesses(t, byREST)
	s.deploy()
	n := harness.Setting(t, "PROOF_LEARN", fewLearnt)
	policies, database := filepath.Join(t.TempDir(), "policies.yaml"), "sqlite:"+filepath.Join(t.TempDir(), "journal.db")
	testkit.Must(t, os.WriteFile(policies, []byte("extends: built-in\npolicies: {tiss-submission: {maxRetries: 1, learning: {handOver: decide}}}\n"), 0o600))
	settings := []string{"RETRY_WORKER_POLICIES_FILE=" + policies, "RETRY_WORKER_DATABASE_URL=" + database}
	w := s.serve("life", settings...)
	s.startPortal(nil, submitClaim)
	claims := func(from, count int, text string) []int64 {
		return s.createAll("SUB_06", count, func(i int) map[string]any {
			words := fmt.Sprintf(text, 10_000+from+i) // no HTTP status
			return submission(s.claimID(from+i), failing(words, words), nil)
		})
	}
	dead := func(i *instance) bool { return len(i.of(worker.RetryReview)) > 0 }
	first := append(claims(0, 2*n/3, hopeless), claims(2*n/3, 1, taught)...)
	s.awaitAll(first, "the first claims to wait for their retry", (*instance).waiting)
	s.fire(first...)
	s.awaitAll(first, "the first claims to be given up", dead)

	var causes struct{ Items []views.Cause }
	about := func(pattern string) (c views.Cause) {
		testkit.Must(t, json.Unmarshal([]byte(w.get(t, w.API+"/api/v1/causes")), &causes))
		for _, c := range causes.Items {
			if strings.HasPrefix(c.Pattern, pattern) {
				return c
			}
		}
		return c
	}
	wait.Until(t, "the outcomes to be learnt", func() bool { return about("setor").Learnt.Hopeless })
	testkit.Must(t, api{worker: w}.ask(t.Context(), "/causes/"+about("lote").ID+"/teach",
		map[string]string{"classification": "PERMANENT", "team": "cadastro", "reason": "a operadora confirmou"}, &views.Cause{}))

	from := 2*n/3 + 1
	next := claims(from, n/4, hopeless)
	w.kill()
	next = append(next, claims(from+n/4, n/4, taught)...)
	w = s.serve("next life", settings...)
	wait.Until(t, "the outcomes to be read", func() bool { return about("setor").Learnt.Closed > 0 })
	later := claims(from+n/4+n/4, n/4, hopeless)
	next = append(next, later...)
	s.awaitAll(next, "the next claims to be decided", func(i *instance) bool { return dead(i) || i.waiting() })

	handed, explored := 0, 0
	for i, key := range next {
		id := s.claimID(from + i)
		var v views.View
		testkit.Must(t, json.Unmarshal([]byte(w.get(t, w.API+"/api/v1/subjects/tiss-submission/"+id)), &v))
		if len(v.Attempts) != 1 {
			t.Fatalf("%s has %d attempts, expected 1", id, len(v.Attempts))
		}
		a, process := &v.Attempts[0], s.instance(key)
		said := process.variables["retryReason"]
		if said != string(decision.Text(a.RetryReason)) {
			t.Errorf("%s: the process has %s, the journal %q", id, said, a.RetryReason)
		}
		switch {
		case i >= n/4 && i < 2*(n/4):
			if a.Taught == 0 || a.Outcome != decision.PermanentError || a.ResponsibleTeam != "cadastro" {
				t.Errorf("%s, of the cause that was taught: %+v", id, a)
			}
		case a.Reason == decision.ReasonNoRecovery:
			handed++
		case a.Learnt.Explored:
			explored++
		case i >= n/4: // a worker that was just begun may not have read the outcomes yet
			t.Errorf("%s was neither given up early nor retried all the same: %+v", id, a)
		}
	}
	if handed == 0 || explored > n/5 {
		t.Errorf("%d claims were given up early, %d retried all the same", handed, explored)
	}
	var kpis views.KPIs
	testkit.Must(t, json.Unmarshal([]byte(w.get(t, w.API+"/api/v1/kpis")), &kpis))
	if len(kpis.Learning) != 1 || kpis.Learning[0].HandedOver != int64(handed) || kpis.Learning[0].SavedRetries != int64(handed) {
		t.Errorf("the figures tell %+v, expected %d claims given up early", kpis.Learning, handed)
	}
	if page := w.get(t, w.API+"/causes/"+about("lote").ID); !strings.Contains(page, "Cadastro") {
		t.Error("the page of the cause that was taught does not name its team")
	}
	s.command(database, "audit", "verify")
	s.done("what came of it is learnt", "%d claims, %d given up early, %d retried all the same, %d of a cause that was taught", len(first)+len(next),
		handed, explored, n/4)
}
