package chaos_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

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
	name string  // of its claims
	keys []int64 // the keys of their jobs
}

func newStub(t *testing.T, name string) *stub {
	t.Helper()
	return &stub{Gateway: gateway.New(t, gateway.Options{}), t: t, name: name}
}

// The errors by which a claim's analysis ends in one way or another.
const (
	passing   = "TIMEOUT - no answer"
	permanent = "INVALID_PATIENT_DATA"
)

// claims puts in n claims that fail for the first time.
func (s *stub) claims(n int) {
	all := make([]gateway.Job, n)
	for i := range all {
		all[i] = gateway.Job{Type: worker.AnalyzeRetry,
			Variables: fmt.Sprintf(`{"claimId":"CLM-%s-%d","submissionError":%q,"retryCount":0}`, s.name, len(s.keys)+i, passing)}
	}
	s.keys = append(s.keys, s.AddJobs(all...)...)
}

// settle waits until nobody has anything more to do with any job. What a dead worker's poll took with it comes
// back by the engine's clock, which is moved where nothing else happens.
func (s *stub) settle() {
	s.t.Helper()
	before, deadline := -1, time.Now().Add(wait.Limit)
	settled := func() bool {
		ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
		defer cancel()
		return s.WaitFor(ctx, func(c gateway.Counts) bool { return c.Settled >= len(s.keys) }) == nil
	}
	for !settled() {
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

// holdAgainst compares what the engine got with what the journal holds: one attempt for each job, one answer
// that it took, and every other one that was sent for it the same word for word, the time of the retry included. It returns how many
// attempts there are.
func (s *stub) holdAgainst(a *audit) (found int) {
	s.t.Helper()
	if c := s.Counts(); c.Held > 0 || c.Settled != len(s.keys) {
		s.t.Errorf("jobs are stuck: %+v", c)
	}
	for _, key := range s.keys {
		record, _ := s.Job(key)
		attempts := a.attempts[key]
		if len(attempts) != 1 {
			s.t.Errorf("the job %d has %d attempts, want one", key, len(attempts))
			continue
		}
		found++
		for _, of := range []gateway.Method{gateway.CompleteJob, gateway.ThrowError, gateway.SetVariables} {
			if different := said(record, of); len(different) > 1 {
				s.t.Errorf("the job %d was answered differently by %v: %q", key, of, different)
			}
		}
		s.holdOutputs(&record, &attempts[0])
	}
	if n := a.kinds[journal.AttemptEntry]; found != n {
		s.t.Errorf("%d jobs have attempts, the journal holds %d", found, n)
	}
	return found
}

// holdOutputs compares the one answer that the engine took with the attempt.
func (s *stub) holdOutputs(record *gateway.Record, at *journal.Attempt) {
	s.t.Helper()
	settling := 0
	var got struct {
		ShouldRetry   bool
		RetryCount    int64
		NextRetryTime string
	}
	for _, answer := range record.Answers {
		if answer.Settled {
			settling++
			testkit.Must(s.t, json.Unmarshal([]byte(answer.Variables), &got))
		}
	}
	if settling != 1 || !got.ShouldRetry || got.RetryCount != at.Decision.RetryCount || got.NextRetryTime != instant(at) || at.AnalysedCount != 0 {
		s.t.Errorf("job %d: settled by %d answers, the process got %+v, the journal holds %+v", record.Key, settling, got, at)
	}
}

// answered waits until so many jobs are settled.
func (s *stub) answered(n int) {
	s.t.Helper()
	testkit.Must(s.t, s.WaitFor(wait.Context(s.t), func(c gateway.Counts) bool { return c.Settled >= n }))
}
