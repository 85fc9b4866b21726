package console_test

import (
	"context"
	"encoding/json"
	"strings"
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
	held   map[string]chan struct{}
}

func startPortal(e *engine.Engine) (*portal, error) {
	client, err := zeebe.Dial(zeebe.Options{Address: e.GatewayAddress(), Plaintext: true, PlainErrors: true}, zap.NewNop())
	if err != nil {
		return nil, err
	}
	h := &portal{client: client, visits: map[string]int{}, held: map[string]chan struct{}{}}
	w := worker.New(client, worker.Config{
		Name: "portal", JobTimeout: time.Minute, PollTimeout: 500 * time.Millisecond, MaxJobsActive: 32, Concurrency: 8,
	}, []worker.Subscription{{JobType: "submit-claim", Begin: worker.Always(h.submit, "claimId", "failures")}}, worker.NoHooks(), zap.NewNop())
	stop, cancel := context.WithCancel(context.Background())
	h.stop = cancel
	h.ends.Go(func() { w.Run(stop, context.Background()) })
	return h, nil
}

// large is a failure whose text has 1 MB, a little below what the worker takes; it is too long to travel in the claim.
const large = "1 MB"

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
	if held := h.held[claim.ClaimID]; held != nil {
		h.mu.Unlock()
		<-held
		h.mu.Lock()
	}
	n := h.visits[claim.ClaimID]
	h.visits[claim.ClaimID]++
	h.mu.Unlock()
	if n >= len(claim.Failures) {
		return worker.Reply{Action: worker.Completed, Variables: "{}"}
	}
	text := claim.Failures[n]
	if text == large {
		text = "AUTHORIZATION_DENIED \x1b[31m" + strings.Repeat("<b>A</b>", 1_000_000/8)
	}
	variables, err := json.Marshal(map[string]any{"submissionError": text})
	if err != nil {
		panic(err)
	}
	return worker.Reply{Action: worker.Thrown, Error: worker.BPMNError{Code: "SUBMISSION_FAILED", Message: "refused", Variables: string(variables)}}
}

// hold has a claim's submissions wait until release is called: what a page says of a claim that is on its way is read before
// it fails again.
func (h *portal) hold(claimID string) (release func()) {
	held := make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held[claimID] = held
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.held, claimID)
		close(held)
	}
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
