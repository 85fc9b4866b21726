package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"retry-worker/internal/decision"
	"retry-worker/internal/journal"
	"retry-worker/internal/testkit"
	"retry-worker/internal/testkit/gateway"
	"retry-worker/internal/testkit/wait"
	"retry-worker/internal/worker"
)

// stub is the gateway with the claims that were put into it.
type stub struct {
	*gateway.Gateway
	t    *testing.T
	name string // of its claims
	// outcomes are reported of the claims that have used up the retries they are to have.
	outcomes bool

	mu   sync.Mutex // held while jobs are put in
	jobs []job
	open []int // those of jobs that may be followed by another one
	next int   // number of the next claim
}

// job is one analysis that was asked for.
type job struct {
	key      int64
	claim    string
	number   int   // the claim's
	instance int64 // its process
	count    int64
	problem  string
	outcome  bool // no analysis: it reports that the claim's retry succeeded
}

// values of the job as the gateway takes it.
func (j *job) values() gateway.Job {
	if j.outcome {
		return gateway.Job{
			Type: worker.RecordRetryOutcome, ProcessInstanceKey: j.instance,
			Variables: fmt.Sprintf(`{"claimId":%q,"retryOutcome":"success"}`, j.claim),
		}
	}
	return gateway.Job{
		Type: worker.AnalyzeRetry, ProcessInstanceKey: j.instance,
		Variables: fmt.Sprintf(`{"claimId":%q,"submissionError":%q,"retryCount":%d}`, j.claim, j.problem, j.count),
	}
}

func newStub(t *testing.T, name string) *stub {
	t.Helper()
	s := &stub{Gateway: gateway.New(t, gateway.Options{}), t: t, name: name}
	return s
}

// The errors by which a claim's analysis ends in one way or another.
const (
	passing   = "TIMEOUT - no answer"
	permanent = "INVALID_PATIENT_DATA"
	refused   = " " // no text at all (R11)
)

// problemOf a claim: four of ten are retried for ever, three once before they are given up, two given up at
// once, one is no input at all.
func problemOf(claim int, count int64) string {
	switch claim % 10 {
	case 0, 1, 2, 3:
		return passing
	case 4, 5, 6:
		if count == 0 {
			return passing
		}
		return permanent
	case 7, 8:
		return permanent
	default:
		return refused
	}
}

// claims puts in n claims that fail for the first time.
func (s *stub) claims(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(s.fresh(n))
}

// fresh are n claims that fail for the first time; mu is held.
func (s *stub) fresh(n int) []job {
	fresh := make([]job, n)
	for i := range fresh {
		fresh[i] = job{claim: fmt.Sprintf("CLM-%s-%d", s.name, s.next), number: s.next, problem: problemOf(s.next, 0)}
		s.next++
	}
	return fresh
}

// put puts jobs in at one instant; mu is held.
func (s *stub) put(fresh []job) {
	values := make([]gateway.Job, len(fresh))
	for i := range fresh {
		values[i] = fresh[i].values()
	}
	for i, key := range s.AddJobs(values...) {
		fresh[i].key = key
		if record, _ := s.Job(key); fresh[i].instance == 0 {
			fresh[i].instance = record.ProcessInstanceKey
		}
		s.open = append(s.open, len(s.jobs)+i)
	}
	s.jobs = append(s.jobs, fresh...)
}

// followUps lets the claims whose analysis scheduled a retry fail once more, in the same process with the count
// that it was given, up to most retries each.
func (s *stub) followUps(most int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if again := s.failAgain(most, math.MaxInt); len(again) > 0 {
		s.put(again)
	}
}

// failAgain are followUps' jobs, no more than limit; mu is held.
func (s *stub) failAgain(most int64, limit int) []job {
	var again []job
	var still []int
	for _, i := range s.open {
		j := &s.jobs[i]
		record, _ := s.Job(j.key)
		switch {
		case !record.State.Settled(), len(again) == limit:
			still = append(still, i)
		case j.outcome || record.State != gateway.Completed:
		case j.count >= most && s.outcomes:
			again = append(again, job{claim: j.claim, number: j.number, instance: j.instance, outcome: true})
		case j.count < most:
			again = append(again, job{claim: j.claim, number: j.number, instance: j.instance, count: j.count + 1, problem: problemOf(j.number, j.count+1)})
		}
	}
	s.open = still
	return again
}

// asked is how many jobs were put in.
func (s *stub) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.jobs)
}

// settle waits until nobody has anything more to do with any job. What a dead worker's poll took with it comes
// back by the engine's clock, which is moved where nothing else happens.
func (s *stub) settle() {
	s.t.Helper()
	before, deadline := -1, time.Now().Add(wait.Limit)
	for s.soon(time.Second, func(c gateway.Counts) bool { return c.Settled >= s.asked() }) != nil {
		now := s.Counts().Settled
		if time.Now().After(deadline) {
			s.t.Fatalf("jobs are stuck: %+v", s.Counts())
		}
		if now == before {
			s.Advance(jobTimeout)
		}
		before = now
	}
}

// soon waits for something a short while only.
func (s *stub) soon(d time.Duration, met func(gateway.Counts) bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return s.WaitFor(ctx, met)
}

// said are the different answers of one kind that the gateway received for a job, whether or not they took
// effect.
func said(record gateway.Record, of gateway.Method) (different []string) {
	for _, a := range record.Answers {
		if a.Method != of {
			continue
		}
		text := a.ErrorCode + a.Message + a.Variables
		if len(different) == 0 || different[0] != text {
			different = append(different, text)
		}
	}
	return different
}

// answers is what holdAgainst found.
type answers struct{ attempts, rejections, outcomes int }

// holdAgainst compares what the engine got with what the journal holds: one attempt for each job, one answer
// that it took, and every other one that was sent for it the same word for word, the time of the retry included.
func (s *stub) holdAgainst(a *audit) (found answers) {
	s.t.Helper()
	for _, r := range s.Journal() {
		settling := 0
		for _, a := range r.Answers {
			if a.Settled {
				settling++
			}
		}
		if settling != 1 {
			s.t.Errorf("job %d is %v and was settled by %d answers, want one", r.Key, r.State, settling)
		}
	}
	if c := s.Counts(); c.Held > 0 || c.Settled != len(s.jobs) {
		s.t.Errorf("jobs are stuck: %+v", c)
	}
	for i := range s.jobs {
		s.holdJob(a, &s.jobs[i], &found)
	}
	if n := a.kinds[journal.AttemptEntry] - a.revisions(); found.attempts != n {
		s.t.Errorf("%d jobs have attempts, the journal holds %d", found.attempts, n)
	}
	return found
}

func (s *stub) holdJob(a *audit, j *job, found *answers) {
	s.t.Helper()
	record, _ := s.Job(j.key)
	attempts := a.attempts[j.key]
	if j.outcome {
		found.outcomes++
		if n := a.outcomes[j.claim]; n != 1 || len(attempts) != 0 || record.State != gateway.Completed {
			s.t.Errorf("the outcome of %s was recorded %d times, with %d attempts; its job %d is %v", j.claim, n, len(attempts), j.key, record.State)
		}
		return
	}
	if j.problem == refused {
		found.rejections++
		if len(attempts) != 0 || record.State != gateway.Incident {
			s.t.Errorf("the refused job %d of %s has %d attempts and is %v", j.key, j.claim, len(attempts), record.State)
		}
		return
	}
	if len(attempts) != 1 {
		s.t.Errorf("the job %d of %s (count %d) has %d attempts, want one", j.key, j.claim, j.count, len(attempts))
		return
	}
	found.attempts++
	for _, of := range []gateway.Method{gateway.CompleteJob, gateway.ThrowError, gateway.SetVariables} {
		if different := said(record, of); len(different) > 1 {
			s.t.Errorf("the job %d of %s was answered differently by %v: %q", j.key, j.claim, of, different)
		}
	}
	s.holdOutputs(j, &record, &attempts[0])
}

// outputs are those of the contract's that follow from what was recorded.
type outputs struct {
	ShouldRetry                 bool
	RetryCount                  int64
	NextRetryTime, DeadLetterID string
}

func outputsOf(t *testing.T, variables string) (o outputs) {
	t.Helper()
	if err := json.Unmarshal([]byte(variables), &o); err != nil {
		t.Errorf("the variables of an answer: %v in %s", err, variables)
	}
	return o
}

// holdOutputs compares the answer with the attempt.
func (s *stub) holdOutputs(j *job, record *gateway.Record, at *journal.Attempt) {
	s.t.Helper()
	var got outputs
	for _, answer := range record.Answers {
		if answer.Settled {
			got = outputsOf(s.t, answer.Variables)
		}
	}
	next := ""
	if at.Decision.ShouldRetry() {
		next = instant(at)
	}
	if got.ShouldRetry != at.Decision.ShouldRetry() || got.RetryCount != at.Decision.RetryCount || got.NextRetryTime != next ||
		got.DeadLetterID != at.DeadLetter || at.AnalysedCount != j.count || (at.Decision.Outcome == decision.PermanentError) != (j.problem == permanent) {
		s.t.Errorf("job %d of %s: the process got %+v, the journal holds %+v", j.key, j.claim, got, at)
	}
}

// answered waits until so many jobs are settled.
func (s *stub) answered(n int) {
	s.t.Helper()
	testkit.Must(s.t, s.WaitFor(wait.Context(s.t), func(c gateway.Counts) bool { return c.Settled >= n }))
}
