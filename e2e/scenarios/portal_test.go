package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
	"retry-worker/internal/zeebe"
)

// The job types of the portal's own workers.
const (
	submitClaim       = "submit-claim"          // SUB_06
	checkSubmission   = "check-submission"      // SUB_06
	sendMessage       = "send-whatsapp-message" // WHATSAPP_MESSAGE
	runJob            = "run-job"               // FAILED_JOB
	checkDependencies = "check-dependencies"    // JOB_QUEUE
	runQueuedJob      = "run-queued-job"        // JOB_QUEUE
)

// errorCodes are the BPMN errors that failed work throws.
var errorCodes = map[string]string{submitClaim: "SUBMISSION_FAILED", sendMessage: "SEND_FAILED", runJob: "JOB_FAILED", runQueuedJob: "JOB_FAILED"}

// claim is what everybody around the worker will say to one claim, message or job. It travels in the instance, so that
// whoever takes a job knows, whatever was forgotten meanwhile.
type claim struct {
	// Failures are the variables of the error that each submission ends with, one after the other; the
	// submission after the last one is accepted.
	Failures []map[string]any `json:"failures"`
	// Open are the dependencies that are open before each run; one is resolved between two looks.
	Open []int `json:"open"`
	// Taken is the number under which the portal took the first submission; empty where it did not. Unsure tells that it
	// cannot be asked.
	Taken  string `json:"taken"`
	Unsure bool   `json:"unsure"`
	// Retried is how many retries the instance starts with.
	Retried int `json:"retried"`
	// Review is what the people do with its dead letters.
	Review review `json:"review"`
}

// failing is a claim that fails with texts, one a submission.
func failing(texts ...string) claim { return submissions.fails(texts...) }

// seen are the variables that a worker of another author asks for: all of the contract's, and its own.
var seen = []string{
	"scenario", "claimId", "submissionError", "retryCount", "lastSubmissionTime", "shouldRetry", "maxRetries", "backoffMinutes",
	"backoffDuration", "nextRetryTime", "retryReason", "errorClassification", "originalError", "retryPolicy", "possiblyAccepted", "deadLetterId",
	"responsibleTeam", "reviewDecision", "reviewReason", "reviewedBy",
	"messageId", "sendError", "httpStatus", "jobId", "jobError", "maxAttempts", "delayBetweenAttempts", "nonRetryable", "jobStatus", "openDependencies",
}

// portal plays the outside systems and the people. It throws plain BPMN errors, whose variables only the
// boundary event maps, as other clients do. What it says follows from the process's variables alone: an engine
// that was killed may forget an answer that it had taken, and give the next job another's key.
type portal struct {
	down atomic.Bool             // whatever is submitted times out
	by   atomic.Pointer[process] // the worker by which people decide; nil: they do not

	mu     sync.Mutex
	claims map[string]claim // of the jobs that came, by the subject's id
	wrong  []error          // what people were told that they should not be
}

// startPortal plays the workers of these job types until the test ends, and the people, who decide by that worker's API; nil:
// they do not.
func (s *scenario) startPortal(by *process, jobTypes ...string) *portal {
	s.t.Helper()
	h := &portal{claims: make(map[string]claim)}
	h.by.Store(by)
	s.play(h.subscriptions(jobTypes)...)
	stop, cancel := context.WithCancel(context.Background())
	decided, since := make(chan struct{}), s.clock.Now()
	go func() {
		defer close(decided)
		h.decide(stop, since)
	}()
	s.t.Cleanup(func() {
		cancel()
		<-decided
		testkit.Must(s.t, errors.Join(h.wrong...))
	})
	return h
}

// play plays workers of other authors until the test ends.
func (s *scenario) play(subscriptions ...worker.Subscription) {
	s.t.Helper()
	s.reach.PlainErrors = true
	client, err := zeebe.Dial(s.reach, zap.NewNop())
	testkit.Must(s.t, err)
	w := worker.New(client, worker.Config{
		Name: "portal", JobTimeout: s.jobTimeout, PollTimeout: 500 * time.Millisecond, MaxJobsActive: 32, Concurrency: 8,
	}, subscriptions, worker.NoHooks(), zap.NewNop())
	stop, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.Run(stop, context.Background())
	}()
	s.t.Cleanup(func() {
		cancel()
		<-ended
		testkit.Must(s.t, client.Close())
	})
}

func (h *portal) subscriptions(jobTypes []string) []worker.Subscription {
	always := func(say func(context.Context, *worker.Job, claim, int) worker.Reply) func() worker.Activation {
		return worker.Always(h.answer(say), seen...)
	}
	var all []worker.Subscription
	for _, jobType := range jobTypes {
		say := h.work
		switch jobType {
		case checkDependencies:
			say = h.check
		case checkSubmission:
			say = found
		case worker.SubmissionGate:
			say = pass
		}
		all = append(all, worker.Subscription{JobType: jobType, Begin: always(say)})
	}
	return all
}

// answer makes a handler of what is to be said to a claim after so many retries.
func (h *portal) answer(say func(context.Context, *worker.Job, claim, int) worker.Reply) worker.Handler {
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
		for _, name := range []string{"claimId", "messageId", "jobId"} {
			var id string
			if json.Unmarshal(raw[name], &id) == nil && id != "" {
				h.claims[id] = c
			}
		}
		h.mu.Unlock()
		retries, err := strconv.Atoi(variables["retryCount"])
		if err != nil { // none yet, or a wrong one
			retries = c.Retried
		}
		return say(ctx, j, c, retries)
	}
}

// check says how many dependencies are open: as many as the scenario wants before this run, then one less each time.
func (h *portal) check(_ context.Context, j *worker.Job, c claim, retries int) worker.Reply {
	var known struct{ OpenDependencies *int }
	if err := json.Unmarshal([]byte(j.Variables), &known); err != nil {
		panic(err)
	}
	open := 0
	switch {
	case known.OpenDependencies != nil:
		open = *known.OpenDependencies - 1
	case retries < len(c.Open):
		open = c.Open[retries]
	}
	return worker.Reply{Action: worker.Completed, Variables: jsonOf(map[string]any{"openDependencies": open})}
}

// found says whether the portal has a claim.
func found(_ context.Context, _ *worker.Job, c claim, _ int) worker.Reply {
	if c.Unsure {
		return worker.Reply{Action: worker.Thrown, Error: worker.BPMNError{Code: "CHECK_FAILED", Message: "cannot be asked", Variables: "{}"}}
	}
	variables := map[string]any{"submissionFound": c.Taken != ""}
	if c.Taken != "" {
		variables["protocolNumber"] = c.Taken
	}
	return worker.Reply{Action: worker.Completed, Variables: jsonOf(variables)}
}

// pass lets a claim through, where no worker runs that would.
func pass(context.Context, *worker.Job, claim, int) worker.Reply {
	return worker.Reply{Action: worker.Completed, Variables: "{}"}
}

// work fails as the scenario wants, or succeeds.
func (h *portal) work(_ context.Context, j *worker.Job, c claim, retries int) worker.Reply {
	n := max(retries-c.Retried, 0)
	if h.down.Load() {
		c.Failures, n = failing(timedOut).Failures, 0
	}
	if n >= len(c.Failures) {
		return worker.Reply{Action: worker.Completed, Variables: "{}"}
	}
	return worker.Reply{Action: worker.Thrown, Error: worker.BPMNError{
		Code: errorCodes[j.Type], Message: "the work failed", Variables: jsonOf(c.Failures[n]),
	}}
}

func jsonOf(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
