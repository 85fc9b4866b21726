package scenarios

import (
	"testing"

	"retry-worker/internal/worker"
)

// TestAskedBeforeItIsSentTwice: the portal took a claim and did not answer (R33). Where it is asked it is not sent again, and
// otherwise a person closes what comes back as a duplicate. The worker is killed while the claims wait, and while people do.
func TestAskedBeforeItIsSentTwice(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{byGRPC, byREST} {
		t.Run(protocol, func(t *testing.T) { inBubble(t, protocol, asksFirst) })
	}
}

func asksFirst(t *testing.T, s *world) {
	s.serve()
	h := s.startPortal(s.worker, submitClaim, checkSubmission)
	killed := func() {
		h.by.Store(nil)
		s.worker.kill()
		h.by.Store(s.serve())
	}
	taken, ask := failing(timedOut, "DUPLICATE_CLAIM"), map[string]any{"checkBeforeResend": true}
	taken.Taken, taken.Review.Accept = "2026/0001-7", true
	unknown := taken
	unknown.Unsure = true
	var keys []int64
	all := []struct {
		claim
		extra         map[string]any
		ends, state   string
		status        string
		submissions   int
		checks        int
		attemptsCount []string
	}{
		{taken, ask, "already_accepted", "accepted", "entregue", 1, 1, []string{"RETRY"}},
		{failing(timedOut), ask, submissions.recorded, "recovered", "entregue", 2, 1, []string{"RETRY"}},
		{unknown, ask, "accepted", "accepted", "entregue", 2, 1, []string{"RETRY", "PERMANENT_ERROR"}},
		{taken, nil, "accepted", "accepted", "entregue", 2, 0, []string{"RETRY", "PERMANENT_ERROR"}},
	}
	for n, c := range all {
		keys = append(keys, s.submit(s.claimID(n), c.claim, c.extra))
	}
	s.awaitTimers(keys, 1)
	killed()
	s.fire(keys...)
	s.awaitAll(keys[2:], "a review", func(i *instance) bool { return len(i.of(worker.RetryReview)) > 0 })
	killed()
	s.awaitEnded(keys...)
	for n, c := range all {
		s.expectEnd(submissions, keys[n], c.ends, c.submissions)
		i := s.instance(keys[n])
		if checks := len(i.of(checkSubmission)); checks != c.checks {
			t.Errorf("claim %d: the portal was asked %d times, expected %d", n, checks, c.checks)
		}
		s.expectRemembered(submissions, s.claimID(n), c.state, c.status, c.attemptsCount...)
		if c.state == "accepted" {
			want := map[string]string{"protocolNumber": jsonOf(taken.Taken)}
			if c.ends == "accepted" {
				want["reviewDecision"], want["possiblyAccepted"] = `"accepted"`, "true"
			}
			s.expectVariables(i, want)
		}
	}
	s.expectAnsweredOnce(keys)
	s.done("the portal is asked before it is sent twice", "4 claims that it may have taken, 2 kills: 1 found, 1 not, 2 closed by a person")
}
