package console_test

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"go.uber.org/zap"

	"retry-worker/e2e/harness/engine"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

// portal plays the one that SUB_06 submits claims to: each claim brings what its submissions fail with.
type portal struct {
	stop   context.CancelFunc
	client interface{ Close() error }
	ends   sync.WaitGroup

	mu     sync.Mutex
	visits map[string]int // submissions, by claim
}

func startPortal(e *engine.Engine) (*portal, error) {
	client, err := zeebe.Dial(zeebe.Options{Address: e.GatewayAddress(), Plaintext: true, PlainErrors: true}, zap.NewNop())
	if err != nil {
		return nil, err
	}
	h := &portal{client: client, visits: map[string]int{}}
	w := worker.New(client, worker.Config{
		Name: "portal", JobTimeout: time.Minute, PollTimeout: 500 * time.Millisecond, MaxJobsActive: 32, Concurrency: 8,
	}, []worker.Subscription{{JobType: "submit-claim", Begin: worker.Always(h.submit, "claimId", "failures")}}, worker.NoHooks(), zap.NewNop())
	stop, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	h.ends.Go(func() { w.Run(stop, context.Background()) })
	return h, nil
}

// submit fails as the claim wants, or succeeds.
func (h *portal) submit(_ context.Context, j *worker.Job) worker.Reply {
	var claim struct {
		ClaimID  string
		Failures []string
	}
	if err := json.Unmarshal([]byte(j.Variables), &claim); err != nil {
		panic(err) // it is none of the tests'
	}
	h.mu.Lock()
	n := h.visits[claim.ClaimID]
	h.visits[claim.ClaimID]++
	h.mu.Unlock()
	if n >= len(claim.Failures) {
		return worker.Reply{Action: worker.Completed, Variables: "{}"}
	}
	variables, err := json.Marshal(map[string]any{"submissionError": claim.Failures[n]})
	if err != nil {
		panic(err)
	}
	return worker.Reply{Action: worker.Thrown, Error: worker.BPMNError{Code: "SUBMISSION_FAILED", Message: "refused", Variables: string(variables)}}
}

// submissions of a claim so far.
func (h *portal) submissions(claimID string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.visits[claimID]
}

func (h *portal) close() error {
	h.stop()
	h.ends.Wait()
	return h.client.Close()
}
