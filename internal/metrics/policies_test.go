package metrics_test

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/decision/decisiontest"
	"retry-worker/internal/metrics"
)

// jobQueue is a policy with everything that tiss-submission has not.
func jobQueue() *decision.Policy {
	p := decisiontest.TISSSubmission()
	p.Name, p.LimitTeam, p.UnknownError = "job-queue", "ti", decision.GiveUpUnknown
	p.Own = &decision.OwnVariables{MaxAttempts: "maxAttempts", Delay: "delayBetweenAttempts", NonRetryable: "nonRetryable"}
	p.Rules = decisiontest.Rules(decisiontest.Permanent("INVALID_REQUEST", "ti"), decisiontest.Transient("TIMEOUT"))
	return p
}

func decideBy(t *testing.T, m *metrics.Metrics, p *decision.Policy, v decision.Variables) {
	t.Helper()
	v.ID = `"CLM-1-1"`
	f, rejection := p.Read(v)
	if rejection != nil {
		t.Fatal(rejection)
	}
	d := decision.Decide(&f, p, decision.Past{}, analysed)
	m.Hooks().Decided(&d, time.Millisecond)
}

// TestDecisionsWhileTheCatalogueChanges: decisions by policies that nobody announced are counted too, every one, while
// reloads announce others (run it with -race).
func TestDecisionsWhileTheCatalogueChanges(t *testing.T) {
	m, url := served(t)
	const writers, decisions = 4, 100
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for i := range decisions {
				d := *decide(t, "TIMEOUT", 0)
				d.Policy = "policy-" + strconv.Itoa(i%10)
				m.Hooks().Decided(&d, time.Millisecond)
			}
		})
	}
	all.Go(func() {
		for i := range 20 {
			p := jobQueue()
			p.Name = "policy-" + strconv.Itoa(i)
			m.StartPolicies(decision.Policies{p.Name: p})
			m.SetCatalogue("version-" + strconv.Itoa(i))
		}
	})
	all.Wait()
	if got := sum(families(t, scrape(t, url))["submission_retry_total"]); got != writers*decisions {
		t.Errorf("%v retries are counted, want %d", got, writers*decisions)
	}
}
