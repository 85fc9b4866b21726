package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/e2e/engine"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

// submitClaim is the job type of the hospital's own worker.
const submitClaim = "submit-claim"

// claim is what everybody around the worker will say to one claim. It travels in the instance, so that whoever
// takes a job knows, whatever was forgotten meanwhile.
type claim struct {
	// Failures are the variables of the error that each submission ends with, one after the other; the
	// submission after the last one is accepted.
	Failures []map[string]any `json:"failures"`
	// Retried is how many retries the instance starts with.
	Retried int `json:"retried"`
	// Review is what the people do with the dead letter.
	Review review `json:"review"`
}

// review is a decision of a person: to discard, or to send the claim again after a pause.
type review struct {
	Discard bool          `json:"discard"`
	Pause   time.Duration `json:"pause"`
}

// failing is a claim that fails with texts, one a submission.
func failing(texts ...string) claim {
	var c claim
	for _, text := range texts {
		c.Failures = append(c.Failures, map[string]any{"submissionError": text})
	}
	return c
}

// seen are the variables that a worker of another author asks for: all of the contract's, and its own.
var seen = []string{
	"scenario", "claimId", "submissionError", "retryCount", "lastSubmissionTime", "shouldRetry", "maxRetries", "backoffMinutes",
	"backoffDuration", "nextRetryTime", "retryReason", "errorClassification", "originalError", "retryPolicy", "deadLetterId",
	"responsibleTeam", "reviewDecision", "reviewReason", "reviewedBy",
}

// hospital plays the portal and the people. It throws plain BPMN errors, whose variables only the
// boundary event maps, as other clients do. What it says follows from the process's variables alone: a broker
// that was killed may forget an answer that it had taken, and give the next job another's key.
type hospital struct {
	broker *engine.Broker

	mu      sync.Mutex
	visited map[int64][]map[string]string // variables that the jobs of an instance saw, in order
	given   map[int64]int64               // the instance of each job that came, by the job's key
}

// openHospital plays it until the test ends.
func openHospital(t *testing.T, b *engine.Broker) *hospital {
	t.Helper()
	client, err := zeebe.Dial(zeebe.Options{Address: b.GatewayAddress(), Plaintext: true, PlainErrors: true}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	h := &hospital{broker: b, visited: make(map[int64][]map[string]string), given: make(map[int64]int64)}
	w := worker.New(client, worker.Config{
		Name: "hospital", JobTimeout: 10 * time.Second, PollTimeout: 500 * time.Millisecond, MaxJobsActive: 32, Concurrency: 8,
	}, []worker.Subscription{
		{JobType: submitClaim, Variables: seen, Handler: h.answer(h.submit)},
		{JobType: worker.RetryReview, Variables: seen, Handler: h.answer(h.review)},
	}, worker.NoHooks(), zap.NewNop())
	stop, close := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.Run(stop, context.Background()) })
	t.Cleanup(func() {
		close()
		running.Wait()
		_ = client.Close()
	})
	return h
}

// answer makes a handler of what is to be said to a claim after so many retries.
func (h *hospital) answer(say func(context.Context, claim, int) worker.Reply) worker.Handler {
	return func(ctx context.Context, j *worker.Job) worker.Reply {
		raw := make(map[string]json.RawMessage)
		var c claim
		if err := json.Unmarshal([]byte(j.Variables), &raw); err != nil {
			panic(err)
		}
		if err := json.Unmarshal(raw["scenario"], &c); err != nil {
			panic(err) // an instance that is none of the scenarios'
		}
		variables := make(map[string]string)
		for name, value := range raw {
			variables[name] = string(value)
		}
		h.mu.Lock()
		h.visited[j.ProcessInstanceKey] = append(h.visited[j.ProcessInstanceKey], variables)
		h.given[j.Key] = j.ProcessInstanceKey
		h.mu.Unlock()
		retries, err := strconv.Atoi(variables["retryCount"])
		if err != nil { // none yet, or a wrong one
			retries = c.Retried
		}
		return say(ctx, c, retries)
	}
}

func (h *hospital) submit(_ context.Context, c claim, retries int) worker.Reply {
	n := max(retries-c.Retried, 0)
	if n >= len(c.Failures) {
		return worker.Reply{Action: worker.Completed, Variables: "{}"}
	}
	return worker.Reply{Action: worker.Thrown, Error: worker.BPMNError{
		Code: "SUBMISSION_FAILED", Message: "the portal did not accept the claim", Variables: jsonOf(c.Failures[n]),
	}}
}

func (h *hospital) review(ctx context.Context, c claim, retries int) worker.Reply {
	if c.Review.Discard {
		return worker.Reply{Action: worker.Completed, Variables: jsonOf(map[string]any{
			"reviewDecision": "discard", "reviewReason": "not worth it", "reviewedBy": "e2e",
		})}
	}
	now := time.Now()
	if c.Review.Pause > 0 { // it shall be waited for, wherever the broker's clock is
		var err error
		if now, err = h.broker.Time(ctx); err != nil {
			panic(err)
		}
	}
	return worker.Reply{Action: worker.Completed, Variables: jsonOf(map[string]any{
		"reviewDecision": "reprocess", "reviewReason": "data corrected", "reviewedBy": "e2e", "shouldRetry": true,
		"retryCount": retries + 1, "backoffMinutes": int(c.Review.Pause.Minutes()), "backoffDuration": fmt.Sprintf("PT%dM", int(c.Review.Pause.Minutes())),
		"nextRetryTime": now.Add(c.Review.Pause).UTC().Truncate(time.Second).Format(time.RFC3339),
	})}
}

// visits are the variables that the jobs of an instance saw, in order.
func (h *hospital) visits(instance int64) []map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]map[string]string(nil), h.visited[instance]...)
}

// forgotten is how many jobs came that the broker knows nothing of, or knows as another instance's: it gives
// jobs out before they are safe from a crash.
func (h *hospital) forgotten(s *scene) int {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for key, instance := range h.given {
		if j := s.history.jobs[key]; j == nil || j.instance != instance {
			n++
		}
	}
	return n
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
