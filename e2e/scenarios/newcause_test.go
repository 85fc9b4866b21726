package scenarios

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	views "retry-worker/internal/api"
	"retry-worker/internal/config"
	"retry-worker/internal/notify"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
)

// TestANewCauseIsToldOnce: six claims fail of a cause that nobody has seen. The worker is killed once it has found that, and
// the next one while it tells the team: the team is told of it once all the same. A month later it is back, and told of with
// how it was before.
func TestANewCauseIsToldOnce(t *testing.T) {
	const text, n = "setor 17 aguarda o auditor", 6
	inBubble(t, byREST, func(t *testing.T, s *world) {
		came := make(chan struct{})
		box := &causesBox{told: map[string]notify.Data{}, next: came}
		life := s.tellsBilling(s.receive(box))
		w := s.serve(life)
		s.startPortal(nil, submitClaim)
		keys := s.createAll("SUB_06", n, func(i int) map[string]any {
			return submissions.variables(s.claimID(i), failing(text, text, text, text, text, text), nil)
		})
		s.awaitAll(keys, "the claims to wait for their retry", (*instance).waiting)
		wait.Until(t, "the log to tell of a new cause", func() bool { return strings.Contains(w.Log.Text(), `"event":"new_cause"`) })
		if metrics := w.get(t, w.Ops+"/metrics"); !strings.Contains(metrics, `retry_worker_new_causes_total{policy="tiss-submission"} 1`) {
			t.Error("it is not counted")
		}
		w.kill()
		w = s.serve(life)
		<-came
		w.kill()
		w = s.serve(life)
		time.Sleep(20 * time.Minute)
		first := box.now()
		if len(first) != 1 || first[0].NewCauses[0].Failures != n || first[0].NewCauses[0].Claims != n || first[0].NewCauses[0].Before != nil {
			t.Errorf("told %+v", first)
		}
		w.kill()
		s.clock.MoveTo(s.clock.Now().Add(31 * 24 * time.Hour)) // whose retries nobody decides on meanwhile
		w = s.serve(life)
		for range 180 { // its portal counts as down: one claim is sent ahead now and then
			if time.Sleep(time.Minute); len(box.now()) > 1 {
				break
			}
		}
		all := box.now()
		var causes struct{ Items []views.Cause }
		testkit.Must(t, json.Unmarshal([]byte(w.get(t, w.API+"/api/v1/causes?new=true")), &causes))
		if len(causes.Items) != 1 || causes.Items[0].New == nil || causes.Items[0].New.Before == nil {
			t.Fatalf("new are %+v", causes.Items)
		}
		before := causes.Items[0].New.Before.Failures
		if last := all[len(all)-1].NewCauses[0]; len(all) != 2 || last.Before == nil || last.Before.Failures != before || before < n {
			t.Errorf("told %+v, before were %d", all, before)
		}
		if page := w.get(t, w.API+"/"); !strings.Contains(page, `href="/causes/`+causes.Items[0].ID+`"`) {
			t.Error("the overview does not lead to it")
		}
		s.audited()
		s.done("a cause that is new, and back", "%d claims, told %d times over 4 lives", n, len(all))
	})
}

// tellsBilling returns settings by which the billing team is told by a webhook.
func (s *world) tellsBilling(webhook string) func(*config.Settings) {
	secret, policies := filepath.Join(s.folder, "secret"), filepath.Join(s.folder, "policies.yaml")
	testkit.Must(s.t, os.WriteFile(secret, []byte("whsec_"+"c2VncmVkb3NlZ3JlZG9zZWdyZWRvc2VncmVkbw=="), 0o600))
	testkit.Must(s.t, os.WriteFile(policies,
		fmt.Appendf(nil, "extends: built-in\nteams: {faturamento: {webhook: {url: %q, secretFile: %s}}}\n", webhook, secret), 0o600))
	return func(c *config.Settings) { c.PoliciesFile, c.Notify.Interval = policies, time.Minute }
}

// causesBox takes webhooks of new causes, each once however often it is sent. Safe for concurrent use.
type causesBox struct {
	mu   sync.Mutex
	told map[string]notify.Data // by the message's id
	ids  []string
	next chan struct{} // closed when the next message comes, which is not answered
}

// now returns what was told, in order.
func (b *causesBox) now() (all []notify.Data) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range b.ids {
		all = append(all, b.told[id])
	}
	return all
}

func (b *causesBox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var n notify.Notice
	if json.Unmarshal(body, &n) != nil || n.Type != notify.TypeCauses {
		return
	}
	if next := b.take(r.Header.Get("webhook-id"), n.Data); next != nil {
		close(next)
		<-r.Context().Done()
	}
}

// take returns what is closed for a message that is not answered; nil where it is.
func (b *causesBox) take(id string, told notify.Data) (next chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.told[id]; !known {
		b.ids = append(b.ids, id)
	}
	b.told[id], next, b.next = told, b.next, nil
	return next
}
