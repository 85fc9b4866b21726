package worker_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"retry-worker/internal/testkit"
	"retry-worker/internal/worker"
)

// BenchmarkHandle is one job's way from its variables to its reply, for a failure that the journal knows: what is
// measured does not grow with what was decided before.
func BenchmarkHandle(b *testing.B) {
	for _, e := range []example{
		{"transient", "{}", claim(`"submissionError":"TIMEOUT - Connection timeout after 30s","retryCount":1,"lastSubmissionTime":null`)},
		{"permanent", `{"retryPolicy":"tiss-submission"}`, claim(`"submissionError":"HTTP 422: {\"code\":\"INVALID_PATIENT_DATA\"}","retryCount":0`)},
	} {
		b.Run(e.name, func(b *testing.B) {
			j := job(worker.AnalyzeRetry, e.headers, e.variables)
			clock := func() time.Time { return analysed }
			memory := testkit.StartJournal(b, testkit.NewMemory(), clock)
			h := handlerOf(j.Type, memory, analysed, worker.NoHooks(), zap.NewNop())
			b.ReportAllocs()
			for b.Loop() {
				if r := h(context.Background(), &j); r.Action == worker.Released || r.Action == worker.Failed {
					b.Fatalf("replied %+v", r)
				}
			}
		})
	}
}

// bareEngine has always jobs and takes every answer; it ends the run with the last of them.
type bareEngine struct {
	left atomic.Int64
	over context.CancelFunc
}

func (e *bareEngine) Activate(ctx context.Context, r worker.ActivateRequest) ([]worker.Job, error) {
	if ctx.Err() != nil || e.left.Load() <= 0 {
		return nil, refusal(worker.NotTaken)
	}
	return jobs(r.JobType, 1, r.MaxJobs), nil
}

func (e *bareEngine) Complete(context.Context, *worker.Job, string) error {
	if e.left.Add(-1) == 0 {
		e.over()
	}
	return nil
}

func (e *bareEngine) Throw(context.Context, *worker.Job, worker.BPMNError) error { return nil }

func (e *bareEngine) Fail(context.Context, *worker.Job, worker.Failure) error { return nil }

// BenchmarkLoop is what the loop adds to a job: its activation, its way through the queue, its answer.
func BenchmarkLoop(b *testing.B) {
	stop, cancel := context.WithCancel(context.Background())
	defer cancel()
	e := &bareEngine{over: cancel}
	e.left.Store(int64(b.N))
	w := worker.New(e, config(), one(completing), worker.NoHooks(), zap.NewNop())
	b.ReportAllocs()
	b.ResetTimer()
	w.Run(stop, context.Background())
}
