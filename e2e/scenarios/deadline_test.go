package scenarios

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"retry-worker/e2e/harness"
	views "retry-worker/internal/api"
	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

const (
	// fewDue claims are due on the day that the portal shuts, where PROOF_DUE does not say otherwise.
	fewDue = 24
	// lostTime is after what a job comes again that a busy engine gave to a poll that was over: the clock stands meanwhile, but
	// for this machine's own time.
	lostTime = 30 * time.Second
)

// dueClaim is one with its deadline and what it is worth.
type dueClaim struct {
	deadline time.Time
	cents    int64
}

// TestClaimsGoBeforeThePortalShuts: an operator takes files from the 1st to the 5th until 18:00, one a minute, and is down
// on the 5th, for three hours where there are 200 claims. Once it is back what is due first goes first, and of that what
// is worth most; what cannot go is a dead letter an hour before, and its team is told what that is worth.
func TestClaimsGoBeforeThePortalShuts(t *testing.T) {
	s := beginAlone(t, "load")
	n := harness.Setting(t, "PROOF_DUE", fewDue)
	notices := &inbox{}
	receiver := httptest.NewServer(notices)
	t.Cleanup(receiver.Close)
	shut := nextFifth(s.clock.Now()).Add(18 * time.Hour)
	back := shut.Add(-10*time.Minute - time.Duration(n)*50*time.Second) // there is no time for all
	arrives := 54 * time.Second                                         // 200 in three hours
	down := back.Add(-time.Duration(n) * arrives)
	testkit.Must(t, s.clock.MoveTo(t.Context(), down.Add(-time.Minute)))
	p := &downPortal{now: s.clock.Now, down: down.Add(-time.Hour), up: back,
		fails: func(*downPortal, time.Time) string { return timedOut }}
	s.submitTo(t, p, lostTime)
	w := s.serve("due", s.takesUntilTheFifth(t, receiver.URL)...)

	due := map[string]dueClaim{}
	for next := down; s.clock.Now().Before(shut) && (len(s.keys) < n || !s.allDecided()); {
		if now := s.clock.Now(); len(s.keys) < n && !now.Before(next) {
			i := int64(len(s.keys))
			c := dueClaim{deadline: shut.Add(6 * time.Hour), cents: (1 + i*37%int64(n)) * 12345}
			if i%4 == 0 {
				c.deadline = shut.Add(-10 * time.Minute)
			}
			id := s.claimID(int(i))
			due[id] = c
			s.create("SUB_06", map[string]any{"claimId": id, "scenario": left(claim{}), "operadora": "unimed-sp",
				"submissionDeadline": c.deadline, "valor": decision.Amount(c.cents)})
			next = next.Add(arrives)
		}
		s.awaitTurn(w, p)
		s.advanceTo(s.clock.Now().Add(4 * clockStep))
	}
	sent := p.sentInOrder(t, due)
	worth := s.expectDue(t, w, due, n-sent, shut)
	wait.Until(t, "the team to be told of "+worth, func() bool {
		testkit.Must(t, s.clock.MoveTo(t.Context(), s.clock.Now().Add(time.Second)))
		return notices.last() == fmt.Sprintf("%d worth %s", n-sent, worth)
	}, notices.last)
	s.done("a portal that shuts", "%d claims, %d sent in order, %d given up in time, worth %s", n, sent, n-sent, worth)
}

// awaitTurn waits for the claim that may go once the portal is up, where any is at its gate: the one that is sent ahead, and
// then one a minute. The worker must see that instant before the clock goes on, however busy the machine is.
func (s *scenario) awaitTurn(w *process, p *downPortal) {
	s.t.Helper()
	sent, last := p.sent()
	now := s.clock.Now()
	if now.Before(p.up) || sent == 0 && !testDue(s.t, w, now) || sent > 0 && now.Before(last.Add(time.Minute)) {
		return
	}
	s.await("the claim whose turn it is", func() bool {
		now, _ := p.sent()
		return now > sent || s.all(s.keys, func(i *instance) bool { return !i.atGate() })
	})
}

// testDue reports whether a claim is to be sent ahead now.
func testDue(t *testing.T, w *process, now time.Time) bool {
	t.Helper()
	var d views.DestinationDetail
	testkit.Must(t, json.Unmarshal([]byte(get(t, w.API+"/api/v1/destinations/unimed-sp")), &d))
	if d.NextTest == nil {
		return false
	}
	at, _ := decision.ParseInstant(*d.NextTest)
	return !now.Before(at)
}

// allDecided reports whether each instance has ended, or waits for people.
func (s *scenario) allDecided() bool {
	s.history.Lock()
	defer s.history.Unlock()
	return s.all(s.keys, func(i *instance) bool { return i.over() || len(i.of(worker.RetryReview)) > 0 })
}

// nextFifth is midnight of the next 5th in São Paulo, one day ahead at least.
func nextFifth(now time.Time) time.Time {
	at := time.Date(now.Year(), now.Month(), 5, 3, 0, 0, 0, time.UTC)
	for at.Before(now.Add(24 * time.Hour)) {
		at = at.AddDate(0, 1, 0)
	}
	return at
}

func (s *scenario) takesUntilTheFifth(t *testing.T, webhook string) []string {
	t.Helper()
	secret, policies := filepath.Join(t.TempDir(), "secret"), filepath.Join(t.TempDir(), "policies.yaml")
	testkit.Must(t, os.WriteFile(secret, []byte("whsec_"+"c2VncmVkb3NlZ3JlZG9zZWdyZWRvc2VncmVkbw=="), 0o600))
	testkit.Must(t, os.WriteFile(policies, fmt.Appendf(nil, `extends: built-in
teams: {faturamento: {webhook: {url: %q, secretFile: %s}}}
policies: {tiss-submission: {context: {valor: {label: Valor, type: money}}}}
destinations:
  unimed-sp:
    pace: {most: 1/min}
    calendar: {windows: [{days: 1-5, hours: 08:00-18:00}]}
`, webhook, secret), 0o600))
	return []string{"RETRY_WORKER_POLICIES_FILE=" + policies, "RETRY_WORKER_WEBHOOK_ALLOW=127.0.0.1",
		"RETRY_WORKER_NOTIFY_INTERVAL=1m", "RETRY_WORKER_JOB_TIMEOUT=" + lostTime.String()}
}

// sent returns how many claims the portal took, and when the last.
func (p *downPortal) sent() (n int, last time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.all {
		if x.ok {
			n, last = n+1, x.at
		}
	}
	return n, last
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
func (s *scenario) expectDue(t *testing.T, w *process, due map[string]dueClaim, n int, shut time.Time) string {
	t.Helper()
	var found struct{ Items []views.DeadLetter }
	testkit.Must(t, json.Unmarshal([]byte(get(t, w.API+"/api/v1/dead-letters?limit=200")), &found))
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

// inbox takes webhooks.
type inbox struct {
	mu  sync.Mutex
	got string
}

func (i *inbox) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var notice struct {
		Data struct {
			Open struct {
				Count  int
				Amount string
			}
		}
	}
	body, _ := io.ReadAll(r.Body)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.got = string(body); json.Unmarshal(body, &notice) == nil {
		i.got = fmt.Sprintf("%d worth %s", notice.Data.Open.Count, notice.Data.Open.Amount)
	}
}

func (i *inbox) last() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.got
}
