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

	"retry-worker/e2e/harness"
	views "retry-worker/internal/api"
	"retry-worker/internal/config"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// fewDue claims are due on the day that the portal shuts, where PROOF_DUE does not say otherwise.
const fewDue = 24

// dueClaim is one with its deadline and what it is worth.
type dueClaim struct {
	deadline time.Time
	cents    int64
}

// TestClaimsGoBeforeThePortalShuts: an operator takes files from the 1st to the 5th until 18:00, one a minute, and is down
// on the 5th, for three hours where there are 200 claims. Once it is back what is due first goes first, and of that what
// is worth most; what cannot go is a dead letter an hour before, and its team is told what that is worth.
func TestClaimsGoBeforeThePortalShuts(t *testing.T) {
	inBubble(t, byREST, func(t *testing.T, s *world) {
		n := harness.Setting(t, "PROOF_DUE", fewDue)
		notices := &inbox{}
		shut := nextFifth(s.clock.Now()).Add(18 * time.Hour)
		back := shut.Add(-10*time.Minute - time.Duration(n)*50*time.Second) // there is no time for all
		const arrives = 54 * time.Second                                    // 200 in three hours
		start := back.Add(-time.Duration(n) * arrives)
		p := &downPortal{now: s.clock.Now, down: start.Add(-time.Hour), up: back, fails: down}
		s.play(p.subscription())
		s.clock.MoveTo(start.Add(-time.Minute))
		w := s.serve(s.takesUntilTheFifth(s.receive(notices)))
		due := map[string]dueClaim{}
		for i := range int64(n) {
			s.clock.MoveTo(start.Add(time.Duration(i) * arrives))
			c := dueClaim{deadline: shut.Add(6 * time.Hour), cents: (1 + i*37%int64(n)) * 12345}
			if i%4 == 0 {
				c.deadline = shut.Add(-10 * time.Minute)
			}
			id := s.claimID(int(i))
			due[id] = c
			s.create("SUB_06", map[string]any{"claimId": id, "scenario": left(claim{}), "operadora": "unimed-sp",
				"submissionDeadline": c.deadline, "valor": decision.Amount(c.cents)})
		}
		s.passUntil(shut, func(i *instance) bool { return i.over() || len(i.of(worker.RetryReview)) > 0 })
		sent := p.sentInOrder(t, due)
		worth := s.expectDue(t, w, due, n-sent, shut)
		if want := fmt.Sprintf("%d worth %s", n-sent, worth); notices.last() != want {
			t.Errorf("the team was told of %s, expected %s", notices.last(), want)
		}
		s.done("a portal that shuts", "%d claims, %d sent in order, %d given up in time, worth %s", n, sent, n-sent, worth)
	})
}

// nextFifth is midnight of the next 5th in São Paulo, one day ahead at least.
func nextFifth(now time.Time) time.Time {
	at := time.Date(now.Year(), now.Month(), 5, 3, 0, 0, 0, time.UTC)
	for at.Before(now.Add(24 * time.Hour)) {
		at = at.AddDate(0, 1, 0)
	}
	return at
}

func (s *world) takesUntilTheFifth(webhook string) func(*config.Settings) {
	secret, policies := filepath.Join(s.folder, "secret"), filepath.Join(s.folder, "policies.yaml")
	testkit.Must(s.t, os.WriteFile(secret, []byte("whsec_"+"c2VncmVkb3NlZ3JlZG9zZWdyZWRvc2VncmVkbw=="), 0o600))
	testkit.Must(s.t, os.WriteFile(policies, fmt.Appendf(nil, `extends: built-in
teams: {faturamento: {webhook: {url: %q, secretFile: %s}}}
policies: {tiss-submission: {context: {valor: {label: Valor, type: money}}}}
destinations:
  unimed-sp:
    pace: {most: 1/min}
    calendar: {windows: [{days: 1-5, hours: 08:00-18:00}]}
`, webhook, secret), 0o600))
	return func(c *config.Settings) { c.PoliciesFile, c.Notify.Interval = policies, time.Minute }
}

// sentInOrder holds the claims that were sent the first time they went against their order, and returns how many were
// sent.
func (p *downPortal) sentInOrder(t *testing.T, due map[string]dueClaim) (sent int) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	tried, last := map[string]bool{}, ""
	var before time.Time
	for _, x := range p.all {
		if x.ok {
			if sent++; sent > 2 && x.at.Sub(before) > 2*time.Minute { // the second waits for the canary's outcome
				t.Errorf("%s is sent %v after the one before it, expected one a minute", x.claim, x.at.Sub(before))
			}
			before = x.at
		}
		if x.ok && !tried[x.claim] && !x.canary {
			a, b := due[last], due[x.claim]
			if last != "" && (b.deadline.Before(a.deadline) || b.deadline.Equal(a.deadline) && b.cents > a.cents) {
				t.Errorf("%s (%v, %d cents) goes after %s (%v, %d cents)", x.claim, b.deadline, b.cents, last, a.deadline, a.cents)
			}
			last = x.claim
		}
		tried[x.claim] = true
	}
	if sent < len(due)/5 {
		t.Errorf("%d of %d claims were sent", sent, len(due))
	}
	return sent
}

// expectDue holds the dead letters against the claims that were not sent, and returns what they are worth.
func (s *world) expectDue(t *testing.T, w *process, due map[string]dueClaim, n int, shut time.Time) string {
	t.Helper()
	var found struct{ Items []views.DeadLetter }
	testkit.Must(t, json.Unmarshal([]byte(w.get(t, w.API+"/api/v1/dead-letters?limit=200")), &found))
	worth := int64(0)
	for _, d := range found.Items {
		at, _ := decision.ParseInstant(d.CreatedAt)
		if d.State != journal.DeadLetterOpen || d.Reason != decision.ReasonDeadline || !at.Before(shut) ||
			d.Context.Cents() != due[d.Subject.ID].cents {
			t.Errorf("expected a dead letter of a missed deadline before %v with its amount: %+v", shut, d)
		}
		worth += d.Context.Cents()
	}
	if len(found.Items) != n || n == 0 {
		t.Errorf("%d dead letters, expected one of each of %d claims that were not sent", len(found.Items), n)
	}
	return decision.Amount(worth)
}

// inbox takes webhooks. Safe for concurrent use.
type inbox struct {
	mu  sync.Mutex
	got []string // the bodies
}

func (i *inbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.got = append(i.got, string(body))
}

// text is the newest message; empty where there is none.
func (i *inbox) text() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return strings.Join(i.got[max(0, len(i.got)-1):], "")
}

// last is what the newest message says of what is open.
func (i *inbox) last() string {
	var notice struct {
		Data struct {
			Open struct {
				Count  int
				Amount string
			}
		}
	}
	if json.Unmarshal([]byte(i.text()), &notice) != nil {
		return "nothing"
	}
	return fmt.Sprintf("%d worth %s", notice.Data.Open.Count, notice.Data.Open.Amount)
}
